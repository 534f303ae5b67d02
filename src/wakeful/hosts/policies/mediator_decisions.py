"""What a pre-tool mediator, or the hook `pre_tool_call_decision`, says about a call, read strictly.

    {"action": "proceed"}
    {"action": "reject", "error": text, "metadata"?, "result"?, "complete"?}
    {"action": "replace_result", "result": object, "complete"?}
    {"action": "pending", "runtime_tool_request"?, "metadata"?, "runtime"?}

Anything else raises Unusable, and whoever asked denies the call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events.tools import Elsewhere
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.runtime_metadata import normalise_runtime
from wakeful.contracts.runtime_tools import PENDING, RuntimeToolRequest
from wakeful.gate.argument_validation import compile as compile_schema
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.service.client_tools.store import micros

PROCEED: dict[str, Any] = {"action": "proceed"}
STRICTNESS = {"proceed": 0, "pending": 1, "replace_result": 1, "reject": 2}
REJECTED = "pre_tool_mediation_rejected"


class Unusable(ValueError):
    """The answer is no decision; the text says why."""


@dataclass(frozen=True, slots=True)
class MediatorDecision:
    """A decision that can be carried out."""

    action: str
    error: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    complete: bool = False
    runtime: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)

    @property
    def error_type(self) -> str:
        named = self.metadata.get("error_type")
        return named if isinstance(named, str) and named else REJECTED


def read_decision(raw: Any) -> MediatorDecision:
    """Raises Unusable."""
    if not isinstance(raw, Mapping):
        raise Unusable(f"returned a {type(raw).__name__} instead of an object")
    action = raw.get("action")
    if action not in STRICTNESS:
        raise Unusable(f"said action={action!r}, which is none of {', '.join(STRICTNESS)}")
    result = _object(raw, "result")
    if action == "replace_result" and result is None:
        raise Unusable("said replace_result without a result")
    error = raw.get("error")
    if error is not None and not isinstance(error, str):
        raise Unusable(f"said error={error!r}, which is not a text")
    return MediatorDecision(
        str(action),
        error or "",
        _object(raw, "metadata") or {},
        result,
        bool(raw.get("complete")) and action in ("reject", "replace_result"),
        _object(raw, "runtime") or {},
        _object(raw, "runtime_tool_request") or {},
    )


class HandedOver(NamedTuple):
    """A call that somebody outside carries out."""

    elsewhere: Elsewhere
    arguments: dict[str, Any] | None = None
    """What they are to run it with, where the mediator wrote others."""
    request_id: str = ""


def handed_over(decision: MediatorDecision, tool: RuntimeToolDeclaration, call_id: str) -> HandedOver:
    """What `pending` asks for. Its request names this call and no other, and fits the tool. Raises Unusable."""
    given = decision.request
    for field_name, own in (("tool_name", tool.name), ("tool_call_id", call_id), ("status", PENDING)):
        if given.get(field_name) not in (None, own):
            raise Unusable(f"asked for a request with {field_name}={given[field_name]!r}, where the call has {own!r}")
    try:
        request = RuntimeToolRequest.normalise({**given, "tool_name": tool.name, "tool_call_id": call_id})
        timeout_at = micros(request.timeout_at) if request.timeout_at else None
    except InvalidValue as error:
        raise Unusable(f"asked for a request that is none: {error.reason}") from None
    arguments = request.parameters if "parameters" in given else None
    violations = compile_schema(tool.input_schema).check(arguments) if arguments is not None else []
    if violations:
        first = violations[0]
        raise Unusable(f"wrote parameters that do not fit: {first.path or 'parameters'}: {first.message}")
    elsewhere = Elsewhere(
        runtime=normalise_runtime({**request.runtime, **decision.runtime}),
        metadata={**request.metadata, **decision.metadata},
        timeout_at=timeout_at,
    )
    return HandedOver(elsewhere, arguments, request.request_id if given.get("request_id") else "")


def stricter(before: Any, after: Any) -> Any:
    """What stands after a later step: a reject is final, and nothing is made less strict. Raises Unusable."""
    was, now = read_decision(before), read_decision(after)
    if was.action == "reject" or STRICTNESS[now.action] < STRICTNESS[was.action]:
        return before
    return after


def _object(raw: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Unusable(f"said {name} is a {type(value).__name__}, not an object")
    try:
        copy: dict[str, Any] = plain(dict(value))
    except NotJson as error:
        raise Unusable(f"said a {name} that is not JSON: {error}") from None
    return copy
