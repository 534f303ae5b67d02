"""From a turn at rest to the result its caller gets."""

from collections.abc import Sequence
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.agents.output import AnswerRejected as DoesNotFit
from wakeful.contracts.envelope import Recorded
from wakeful.contracts.events import ToolFailed, ToolStarted, TurnFailed, UnknownResolved
from wakeful.decisions.state import TurnState
from wakeful.ports import TurnRow
from wakeful.service.results import RunResult, RunStatus, UnknownOutcome


def report(
    row: TurnRow, state: TurnState, facts: Sequence[Recorded], agent: Agent[Any, Any] | None, location: str
) -> RunResult[Any]:
    """The result. Without the agent's code, a structured answer is plain JSON data."""
    terminal = state.terminal
    suspended = state.suspended_for
    status: RunStatus = terminal.status if terminal is not None else "incomplete"
    if suspended is not None and suspended.reason in ("approval_required", "runtime_tool_pending"):
        status = suspended.reason
    message = terminal.message if isinstance(terminal, TurnFailed) else ""
    reason: str = terminal.stop_reason if terminal is not None else "suspended"
    if suspended is not None and terminal is None:
        message, reason = f"it waits for {', '.join(suspended.waiting_for)}", suspended.reason
    return RunResult(
        turn_id=row.turn_id,
        agent=row.agent_name,
        agent_id=row.agent_id,
        thread=row.thread_id,
        status=status,
        stop_reason=reason,
        retryable=terminal.retryable if terminal is not None else False,
        final_content=state.last_text,
        output=_output(state, agent) if status == "completed" else None,
        usage=state.usage,
        model_calls=state.model_calls,
        tool_calls=state.tool_calls,
        turn_count=state.step,
        duration_ms=terminal.duration_ms if terminal is not None else state.active_ms(),
        message=message,
        unknown=unknown_outcomes(facts),
        failure_artifact=terminal.failure_artifact if isinstance(terminal, TurnFailed) else None,
        items=state.items,
        facts=facts,
        config=state.config,
        location=location if location != ":memory:" else "",
    )


def _output(state: TurnState, agent: Agent[Any, Any] | None) -> Any:
    if not state.structured:
        return state.final_text
    if agent is not None and agent.output_schema is not None:
        try:
            return agent.parse_output(state.final_text)
        except DoesNotFit:
            pass  # the type has changed since: what was accepted then is still the answer
    return state.answer_value.value if state.answer_value is not None else state.final_text


def unknown_outcomes(facts: Sequence[Recorded]) -> list[UnknownOutcome]:
    """Calls whose outcome is still open, oldest first."""
    started: dict[str, ToolStarted] = {}
    unknown: dict[str, UnknownOutcome] = {}
    for recorded in facts:
        fact = recorded.fact
        event = fact.event
        if isinstance(event, ToolStarted):
            started[fact.call_id or ""] = event
        elif isinstance(event, ToolFailed) and event.effects == "unknown":
            call_id = fact.call_id or ""
            arguments = started[call_id].safe_args if call_id in started else None
            unknown[call_id] = UnknownOutcome(
                call_id=call_id, tool=event.tool_name, arguments=arguments or {}, reason=event.message
            )
        elif isinstance(event, UnknownResolved):
            unknown.pop(event.call_id, None)
    return list(unknown.values())
