"""Facts as the loop's own events: their names and payloads, spelled as hosts know them.

Every event is made from one fact of the log, so their order is the log's. Which fact has which name is said by the one
mapping of all views. Parameters in them are redacted.
"""

from typing import Any, NamedTuple

from wakeful.contracts.envelope import Recorded
from wakeful.contracts.events import (
    ActionRequired,
    AssistantRecorded,
    CompletionBlocked,
    Event,
    InterruptReceived,
    LimitChanged,
    LoopFact,
    ModelRequested,
    RuntimeToolRequested,
    ToolResult,
    ToolResultDiagnosed,
    ToolStarted,
    TranscriptClosed,
    TranscriptLockContended,
    TurnFailed,
)
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.views.conversation_export import ResultEvent, event_of
from wakeful.views.mapping import VIEWS


class LoopEvent(NamedTuple):
    """A name and its payload."""

    name: str
    payload: dict[str, Any]


class HostIds(NamedTuple):
    """How the host calls this run; empty where it said nothing."""

    run_id: str = ""
    session_id: str = ""


def _name(event: Event | type[Event]) -> str:
    """What hosts call a fact. Only those that have a name there are told."""
    name = VIEWS[event.kind].loop
    assert name is not None, event.kind
    return name


def turn_started(turn: int, max_turns: int, message_count: int) -> LoopEvent:
    return LoopEvent(_name(ModelRequested), {"turn": turn, "max_turns": max_turns, "message_count": message_count})


def tool_call(turn: int, tool_name: str, tool_call_id: str, envelope: dict[str, Any]) -> LoopEvent:
    """`envelope` is the redacted form of the parameters with its hash."""
    return LoopEvent(
        _name(ToolStarted), {"turn": turn, "tool_name": tool_name, "tool_call_id": tool_call_id, **envelope}
    )


def tool_result(turn: int, tool_name: str, tool_call_id: str, *, success: bool) -> LoopEvent:
    payload = {"turn": turn, "tool_name": tool_name, "tool_call_id": tool_call_id, "success": success}
    return LoopEvent(_name(ToolResult), payload)


def approval_required(turn: int, tool_name: str, tool_call_id: str, action_id: str) -> LoopEvent:
    payload = {"turn": turn, "tool_name": tool_name, "tool_call_id": tool_call_id, "action_id": action_id}
    return LoopEvent(_name(ActionRequired), payload)


def runtime_tool_pending(turn: int, request: RuntimeToolRequest) -> LoopEvent:
    named = {"tool_name": request.tool_name, "tool_call_id": request.tool_call_id, "request_id": request.request_id}
    return LoopEvent(_name(RuntimeToolRequested), {"turn": turn, **named})


def continuation_message_added(turn: int, role: str) -> LoopEvent:
    return LoopEvent(_name(AssistantRecorded), {"turn": turn, "role": role})


def failed(error: str, turn: int | None = None) -> LoopEvent:
    return LoopEvent(_name(TurnFailed), {"error": error} if turn is None else {"turn": turn, "error": error})


def budget_exceeded(event: LimitChanged, budgets: RunBudgets) -> LoopEvent:
    """`current` is what was used; the one after was refused."""
    budget = budgets.reached(event)
    figures = {"budget": budget.name, "dimension": budget.dimension}
    return LoopEvent(_name(event), {**figures, "current": budget.current, "ceiling": budget.ceiling})


def noted(event: LoopFact) -> LoopEvent:
    """What the loop itself noted, with what it holds. What a payload need not have is absent."""
    payload = event.model_dump(mode="json", exclude_none=True)
    match event:
        case TranscriptLockContended():
            payload = {"session_id": event.session_id}
        case CompletionBlocked():
            payload = {**payload.pop("rule"), **payload}
        case ToolResultDiagnosed():
            payload = {**payload.pop("diagnostics"), **payload}
        case InterruptReceived():
            message = payload.pop("message", None) or {}
            payload = {**payload.pop("details"), **payload, "message": message.get("content", "")}
        case _:
            pass
    return LoopEvent(_name(event), payload)


def completed(event: TranscriptClosed) -> LoopEvent:
    """The loop ended; `run_outcome` tells whether the work is done."""
    return LoopEvent(
        _name(event),
        {
            "turn": event.turn,
            "message_count": event.message_count,
            "tool_results": event.tool_results,
            "run_outcome": event.run_outcome.model_dump(mode="json", exclude_none=True),
        },
    )


def as_result_event(event: LoopEvent, recorded: Recorded, ids: HostIds) -> ResultEvent:
    """An event as the result lists it, with its place in the log."""
    own = {"run_id": ids.run_id, "session_id": ids.session_id}
    return event_of(
        recorded, type=event.name, metadata=event.payload, **{name: each for name, each in own.items() if each}
    )
