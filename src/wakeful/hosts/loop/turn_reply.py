"""What a turn runner returned, read once: words, calls, usage, or a failure.

A return that is not what it should be is a failed turn (`invalid_turn_result`), never an exception. Calls are taken
from `tool_calls` alone; nothing is parsed out of text. A call that is malformed stays a call, and gets its own result.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.outcomes import RunFailure
from wakeful.contracts.transcript import Message, normalise_all
from wakeful.hosts.loop.conversation_result import ConversationResult, StructuredOutputDiagnostics, ToolEvent
from wakeful.views.conversation_export import ResultEvent

INVALID = "invalid_turn_result"
LATER = ("status", "budget", "interrupted", "stalled", "approval_required", "runtime_tool_pending")
"""A turn that pauses or stops the run for a reason of its own: nothing carries that out yet."""


@dataclass(slots=True)
class RunnerCall:
    """A call of the turn, in model order."""

    call_id: str
    name: str
    """Canonical when the tool is known."""
    called_as: str
    parameters: dict[str, Any] | None
    """None when the call is malformed."""
    raw: str = ""
    problem: str = ""
    """What is wrong with the call itself."""
    given: Any = None
    """As the turn runner returned it."""


@dataclass(slots=True)
class TurnTaken:
    """One turn as its runner reported it."""

    messages: tuple[Message, ...] | None = None
    """The transcript as the runner wants it; None: as it was before the turn."""
    content: str = ""
    calls: list[RunnerCall] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    request_metadata: dict[str, Any] | None = None
    continuation: tuple[Message, ...] = ()
    provider_diagnostics: tuple[dict[str, Any], ...] = ()
    structured_output: Any = None
    structured_output_diagnostics: StructuredOutputDiagnostics | None = None
    failure: RunFailure | None = None
    failure_retryable: bool = True
    provider_failed: bool = False
    """The failure is the model's, not a mistake in what the runner returned."""
    tool_execution_results: tuple[dict[str, Any], ...] = ()
    tool_audit_events: tuple[ToolAudit, ...] = ()
    tool_events: tuple[ToolEvent, ...] = ()
    events: tuple[ResultEvent, ...] = ()


class _Wrong(Exception):
    """Where the return is not what it should be, and why."""


def read_turn(returned: Any, turn: int, resolve: Callable[[str], str], used_ids: set[str]) -> TurnTaken:
    """Read a turn runner's return. Does not raise. `used_ids` gains the ids of this turn's calls."""
    if isinstance(returned, ConversationResult):
        returned = returned.to_wire()
    if not isinstance(returned, Mapping):
        return failed_turn(turn, INVALID, f"the turn runner returned a {type(returned).__name__} instead of an object")
    try:
        return _read(returned, turn, resolve, used_ids)
    except (_Wrong, InvalidValue) as error:
        return failed_turn(turn, INVALID, str(error))


def failed_turn(turn: int, kind: str, message: str, code: str | None = None) -> TurnTaken:
    """A turn that came to nothing."""
    return TurnTaken(failure=RunFailure(type=kind, message=message[:2000], code=code, turn_count=turn))


def _read(given: Mapping[str, Any], turn: int, resolve: Callable[[str], str], used_ids: set[str]) -> TurnTaken:
    for name in LATER:
        if given.get(name):
            raise _Wrong(
                f"{name}={given[name]!r}: a turn that stops the run by itself is not available in this version"
            )
    own = given.get("messages")
    taken = TurnTaken(
        messages=normalise_all(own) if own is not None else None,
        content=_words(given, has_messages=own is not None),
        usage=_object(given, "usage"),
        request_metadata=_object(given, "request_metadata") if given.get("request_metadata") is not None else None,
        continuation=normalise_all(given.get("continuation_messages") or (), at="continuation_messages"),
        provider_diagnostics=tuple(_objects(given, "provider_diagnostics")),
        structured_output=_json(given, "structured_output"),
        structured_output_diagnostics=next(
            iter(_values(given, "structured_output_diagnostics", StructuredOutputDiagnostics)), None
        ),
        tool_execution_results=tuple(_objects(given, "tool_execution_results")),
        tool_audit_events=tuple(_values(given, "tool_audit_events", ToolAudit)),
        tool_events=tuple(_values(given, "tool_events", ToolEvent)),
        events=tuple(_values(given, "events", ResultEvent)),
    )
    failure = given.get("failure")
    if failure:
        taken.failure = _failure(failure, turn)
        taken.provider_failed = True
        if isinstance(failure, Mapping) and failure.get("retryable") is False:
            taken.failure_retryable = False
        return taken
    calls = given.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise _Wrong(f"tool_calls is a list, not a {type(calls).__name__}")
    for sequence, call in enumerate(calls, 1):
        taken.calls.append(_asked(call, turn, sequence, resolve, used_ids))
    return taken


def _failure(failure: Any, turn: int) -> RunFailure:
    if isinstance(failure, str):
        return RunFailure(type="provider_error", message=failure, turn_count=turn)
    if not isinstance(failure, Mapping):
        raise _Wrong(f"failure is an object, not a {type(failure).__name__}")
    code = failure.get("code")
    return RunFailure(
        type=str(failure.get("type") or "provider_error"),
        message=str(failure.get("message") or "the model turn failed"),
        code=str(code) if code is not None else None,
        turn_count=turn,
    )


def _words(given: Mapping[str, Any], *, has_messages: bool) -> str:
    """The turn's text. A runner that keeps the transcript itself has put its words there already."""
    content = given.get("content")
    if content is None and not has_messages:
        content = given.get("final_content")
    if content is None:
        return ""
    if not isinstance(content, str):
        raise _Wrong(f"content is a text, not a {type(content).__name__}")
    return content


def _asked(call: Any, turn: int, sequence: int, resolve: Callable[[str], str], used_ids: set[str]) -> RunnerCall:
    """A call with an id that is unique in the run, whatever else is wrong with it."""
    given = call if isinstance(call, Mapping) else {}
    own_id = given.get("id")
    call_id = (
        own_id if isinstance(own_id, str) and own_id and own_id not in used_ids else f"tool-call-{turn}-{sequence}"
    )
    while call_id in used_ids:
        call_id += "-again"
    used_ids.add(call_id)
    raw = _raw(call)
    if not isinstance(call, Mapping):
        return RunnerCall(call_id, "", "", None, raw, f"a call is an object, not a {type(call).__name__}", call)
    name = given.get("name")
    if not isinstance(name, str) or not name.strip():
        return RunnerCall(call_id, "", "", None, raw, "the call names no tool", call)
    parameters, problem = _parameters(given.get("parameters"))
    return RunnerCall(call_id, resolve(name), name, parameters, raw if problem else "", problem, call)


def _parameters(given: Any) -> tuple[dict[str, Any] | None, str]:
    if given is None:
        return {}, ""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return None, "the parameters are not valid JSON"
    if not isinstance(given, Mapping):
        return None, f"the parameters are a {type(given).__name__} instead of an object"
    try:
        parameters: dict[str, Any] = plain(dict(given))
    except NotJson as error:
        return None, f"the parameters are not JSON: {error}"
    return parameters, ""


def _raw(call: Any) -> str:
    try:
        return json.dumps(call)[:2000]
    except (TypeError, ValueError, RecursionError):
        return f"a {type(call).__name__}"


def _json(given: Mapping[str, Any], name: str) -> Any:
    try:
        return plain(given.get(name), name)
    except NotJson as error:
        raise _Wrong(str(error)) from None


def _object(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = _json(given, name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Wrong(f"{name} is an object, not a {type(value).__name__}")
    return value


def _objects(given: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = _json(given, name)
    entries = [value] if isinstance(value, dict) else value or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _Wrong(f"{name} is a list of objects")
    return entries


def _values(given: Mapping[str, Any], name: str, model: Any) -> list[Any]:
    try:
        return [model.model_validate(entry) for entry in _objects(given, name)]
    except ValidationError as error:
        raise _Wrong(f"{name}: {error.errors()[0]['msg']}") from None
