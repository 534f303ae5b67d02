"""The door that every tool call goes through, whoever made it and wherever the tool lives. The order, written once:

     1. find the declaration        none: `tool_not_found`, and nothing else happens
     2. read the arguments          not a JSON object: `invalid_arguments`
     3. validate them               against the declared JSON Schema, with errors a model can act on
     4. verdict of the policy       deny wins; no policy is configured in this version, so what is offered is allowed
     5. the intent                  written by the runner; with a barrier when the effect is not pure
     6. run                         with a deadline, and told when nobody waits any more (`mediation.running`)
     7. shape the result            cut what is too long for a model, the whole goes to an artifact
     8. the outcome                 exactly one result or failure, with its metadata

`admit` is steps 1 to 5, without waiting for anything; `carry_out` is steps 6 to 8. A failure at any point becomes a
normal result for that call alone.
"""

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.events import AnyEvent, PermissionEvaluated, ToolFailed, ToolStarted
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.contracts.values import unchecked
from wakeful.decisions.redaction import redact_parameters, stable_hash
from wakeful.decisions.state import Call
from wakeful.mediation import validation
from wakeful.mediation.outcomes import CallRecord, failed
from wakeful.tools.function import Tool

PREVIOUS_EVENT = "@-1"
"""A reference to the event just before: its number is known only to the store."""

_tool_started = unchecked(ToolStarted)
_ALLOWED = PermissionEvaluated(
    decision="allow", decision_reason="the tool is offered in this turn and no rule forbids it"
)
_ALLOWED_DESTRUCTIVE = _ALLOWED.model_copy(update={"destructive": True})


@dataclass(slots=True)
class Dispatch:
    """A call that passed the gate."""

    call_id: str
    tool: Tool[Any]
    declaration: ToolDeclaration
    arguments: dict[str, Any]
    idempotency_key: str
    attempt: int
    step: int
    record: CallRecord


@dataclass(slots=True)
class Admission:
    """What is to be written, and what may begin once it is."""

    events: list[AnyEvent]
    dispatch: Dispatch | None


def idempotency_key(turn_id: str, call_id: str) -> str:
    """One key for one call, over retries, restarts and workers. All of one length: none is a prefix of another."""
    return "wk-" + hashlib.sha256(f"{turn_id}\n{call_id}".encode()).hexdigest()[:32]


class Mediator:
    """The gate of one turn."""

    def __init__(self, config: TurnConfig, tools: Mapping[str, Tool[Any]], turn_id: str) -> None:
        self._config = config
        self._tools = tools
        self._turn_id = turn_id

    def admit(
        self,
        call: Call,
        arguments: dict[str, Any] | None,
        *,
        now: float,
        batch_id: str,
        scheduling: Literal["parallel", "serial"],
    ) -> Admission:
        """Bring a call before the gate. `arguments` is None when the model did not write a JSON object."""
        name = call.part.name
        declaration = self._config.tool(name)
        record = CallRecord(call.call_id, name, now)
        error = self._objection(name, declaration, call, arguments)
        if error is not None or declaration is None or arguments is None:
            return self._refused(call, declaration, arguments or {}, record, error or _not_found(name, ()), batch_id)
        started = self._started(call, declaration, arguments, batch_id, scheduling, dispatched=True)
        return Admission(
            [_ALLOWED_DESTRUCTIVE if declaration.is_destructive else _ALLOWED, started],
            self.again(call, arguments, attempt=1, record=record, key=started.idempotency_key),
        )

    def again(
        self, call: Call, arguments: dict[str, Any], *, attempt: int, record: CallRecord, key: str
    ) -> Dispatch | None:
        """A call that has its intent; None when its tool is not there (any more)."""
        tool = self._tools.get(call.part.name)
        if tool is None:
            return None
        # The effect class of the intent holds, whatever the code says today.
        declaration = tool.declaration if attempt == 1 else tool.declaration.model_copy(update={"effect": call.effect})
        return Dispatch(call.call_id, tool, declaration, arguments, key, attempt, call.step, record)

    def passed_over(self, call: Call, arguments: dict[str, Any] | None, batch_id: str) -> ToolStarted:
        """The beginning of a call that will not be run: each has one, and one end."""
        declaration = self._config.tool(call.part.name) or ToolDeclaration(name=call.part.name, input_schema={})
        return self._started(call, declaration, arguments or {}, batch_id, "parallel", dispatched=False)

    def _objection(
        self, name: str, declaration: ToolDeclaration | None, call: Call, arguments: dict[str, Any] | None
    ) -> ToolError | None:
        if declaration is None or name not in self._tools:
            return _not_found(name, tuple(tool.name for tool in self._config.tools))
        if arguments is None:
            return ToolError(
                kind="invalid_arguments",
                message=f"the arguments of {name} are not a JSON object: {(call.part.raw_arguments or '')[:200]!r}",
                recovery_hint="Call the tool again with one JSON object that fits its schema.",
                retryable=True,
            )
        violations = validation.compile(declaration.input_schema).check(arguments)
        return _invalid(name, violations) if violations else None

    def _refused(
        self,
        call: Call,
        declaration: ToolDeclaration | None,
        arguments: dict[str, Any],
        record: CallRecord,
        error: ToolError,
        batch_id: str,
    ) -> Admission:
        unknown = error.kind == "tool_not_found"
        shown = declaration or ToolDeclaration(name=call.part.name, input_schema={})
        started = self._started(call, shown, arguments, batch_id, "parallel", dispatched=False)
        outcome: ToolFailed = failed(
            record,
            error,
            now=record.taken_up_at,
            status="invalid",
            category="unknown_tool"
            if unknown
            else "invalid_arguments"
            if error.kind == "invalid_arguments"
            else "schema_validation_failed",
            effects="none",
        )
        return Admission([started, outcome], None)

    def _started(
        self,
        call: Call,
        declaration: ToolDeclaration,
        arguments: dict[str, Any],
        batch_id: str,
        scheduling: Literal["parallel", "serial"],
        *,
        dispatched: bool,
    ) -> ToolStarted:
        safe = redact_parameters(arguments, declaration.input_schema, declaration.sensitive_parameters)
        return _tool_started(
            tool_name=call.part.name,
            safe_args=safe if call.part.arguments_ref is None else None,
            args_ref=call.part.arguments_ref.digest if call.part.arguments_ref is not None else None,
            args_sha256=stable_hash(safe),
            policy="allowed" if dispatched else "unavailable",
            permission_ref=PREVIOUS_EVENT if dispatched else None,
            is_read_only=declaration.is_read_only,
            is_concurrency_safe=not declaration.serial,
            is_destructive=declaration.is_destructive,
            batch_id=batch_id,
            position=call.position,
            scheduling=scheduling,
            dispatched=dispatched,
            effect=declaration.effect,
            idempotency_key=idempotency_key(self._turn_id, call.call_id),
            timeout_ms=int(declaration.timeout * 1000) if declaration.timeout is not None else None,
        )


def _not_found(name: str, offered: tuple[str, ...]) -> ToolError:
    near = difflib.get_close_matches(name, offered, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    tools = ", ".join(offered[:20]) if offered else "none"
    return ToolError(
        kind="tool_not_found",
        message=f"Tool '{name[:200]}' not found",
        recovery_hint=f"{hint}The tools of this turn are: {tools}.",
    )


def _invalid(name: str, violations: list[validation.Violation]) -> ToolError:
    """Errors in words a model can act on; the first field stands out."""
    missing = [violation.missing for violation in violations if violation.missing]
    only_missing = len(missing) == len(violations)
    details: dict[str, Any] = {"errors": [f"{violation.path}: {violation.message}" for violation in violations]}
    if violations[0].path:
        details["field"] = violations[0].path
    if missing:
        details["missing_parameters"] = missing
    return ToolError(
        kind="missing_required_parameters" if only_missing else "invalid_parameters",
        message=f"the arguments of {name} do not fit its schema: "
        + "; ".join(f"{violation.path or 'arguments'}: {violation.message}" for violation in violations[:3]),
        details=details,
        recovery_hint="Correct these fields and call the tool again.",
        retryable=True,
    )
