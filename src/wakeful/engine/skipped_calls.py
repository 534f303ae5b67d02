"""Calls that are not run: what they are told, by why."""

from collections.abc import Callable

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    RuntimeToolRequested,
    RuntimeToolResolved,
)
from wakeful.contracts.events.tools import AbortReason, ErrorCategory
from wakeful.contracts.tools import Effects, ToolError
from wakeful.decisions.levels import Call, OutsideRequest
from wakeful.decisions.step import DEPENDENCY_FAILED, Because
from wakeful.decisions.turn import CALLED_OFF
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import CallRecord
from wakeful.gate.outcomes import failed
from wakeful.gate.outside_answers import unanswered
from wakeful.views.approval_record import cancelled as withdrawn

_SKIPPED: dict[Because, tuple[str, str, ErrorCategory, AbortReason | None]] = {
    "cancelled": ("skipped", "the turn was told to stop before this call began", "canceled", "user_interrupt"),
    "budget": ("budget_exceeded", "a limit of the turn was reached before this call began", "canceled", "budget"),
    "dependency": (DEPENDENCY_FAILED, "a node that it depends on did not succeed", "sibling_canceled", None),
    "sibling": ("sibling_canceled", CALLED_OFF, "sibling_canceled", "sibling_failed"),
    "completed": ("sibling_skipped", "the run was complete before this call began", "sibling_canceled", None),
}
"""What a call is told that was not run, by why."""
_ANSWERED_TOO_LATE: dict[Because, str] = {
    "cancelled": "cancelled",
    "budget": "budget_exceeded",
    "completed": "sibling_canceled",
    "sibling": "sibling_canceled",
    "dependency": "sibling_canceled",
}
"""What a call is told whose client had run it when the turn was over."""
_WITHDRAWN: dict[Because, str] = {"cancelled": "run_cancelled", "sibling": "sibling_failed"}
"""What is said of a question that nobody has to answer any more; of any other: `run_ended`."""


def skipped(work: TurnWork, call: Call, because: Because, passed_over: Callable[[], AnyEvent]) -> list[Fact]:
    """The facts with which a call ends that was not run. `passed_over` is the verdict on one that nobody was asked
    about.
    """
    kind, message, category, _ = _SKIPPED[because]
    now = work.now()
    if call.pending is not None and isinstance(call.pending.asked, RuntimeToolRequested):
        return _unanswered(work, call, call.pending, because)
    outcome = failed(
        _record(work, call, now),
        ToolError(kind=kind, message=message),
        now=now,
        status="skipped",
        category=category,
        effects="none",
        abort_reason=_abort_reason(work, because),
    )
    events: list[AnyEvent] = []
    if call.pending is None:
        events.append(passed_over())
    elif call.is_waiting:
        events.append(withdrawn(call.pending, _WITHDRAWN.get(because, "run_ended")))
    return [work.fact(event, call.step, call.call_id, call.level) for event in (*events, outcome)]


def _abort_reason(work: TurnWork, because: Because) -> AbortReason | None:
    stop = work.state.stop
    return stop.abort if because == "cancelled" and stop is not None else _SKIPPED[because][-1]


def _unanswered(work: TurnWork, call: Call, pending: OutsideRequest, because: Because) -> list[Fact]:
    """A client was asked to run the call, and the turn ends before an answer was taken in."""
    now = work.now()
    record = CallRecord(call, call.started_at / 1_000_000 or now)
    events: list[AnyEvent] = []
    said = pending.said
    if said is None:
        said = withdrawn(pending, _WITHDRAWN.get(because, "run_ended"))
        events.append(said)
    assert isinstance(said, RuntimeToolResolved)
    if said.status == "runtime_tool_completed" and said.success:
        _, _, category, _ = _SKIPPED[because]
        error = ToolError(
            kind=_ANSWERED_TOO_LATE[because],
            message=f"the client ran {call.part.name}, and the turn was over before its answer was taken in",
        )
        effects: Effects = "none" if call.effect == "pure" else "possible"
        outcome = failed(
            *(record, error),
            now=now,
            status="cancelled",
            category=category,
            effects=effects,
            abort_reason=_abort_reason(work, because),
        )
    else:
        outcome = unanswered(record, said, call.effect, now)
    return [work.fact(event, call.step, call.call_id, call.level) for event in (*events, outcome)]


def _record(work: TurnWork, call: Call, now: float) -> CallRecord:
    """What is on record about a call that will not be run: a person may have been asked about it."""
    record = CallRecord(call, now)
    if call.pending is None:
        return record
    if isinstance(call.pending.asked, ActionRequired):
        record.approval_id = call.pending.action_id
        said = call.pending.said
        record.approval_status = said.status if isinstance(said, ActionResolved) else "rejected"
    record.permission_ref = work.place.known.refs_of(call.call_id).permission
    return record
