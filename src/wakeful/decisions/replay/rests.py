"""Rest and recovery, decided again: what a turn waits for, why it goes on, and what becomes of what was open."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ModelFailed,
    ModelResponseReattached,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    TurnResumed,
    TurnSuspended,
)
from wakeful.contracts.tasks import PROMOTED
from wakeful.decisions.differences import Difference
from wakeful.decisions.recovery import (
    CloseUnknown,
    LoseAttempt,
    ProbeStep,
    Reattach,
    Rerun,
    Settlement,
    resume_cause,
    settle,
    unknown_among,
)
from wakeful.decisions.replay.redecision import Redecision
from wakeful.decisions.step import Suspend


def check_suspension(now: Redecision, fact: Fact, event: TurnSuspended) -> Difference | None:
    """Which code was there is not in the log; what could not be settled without it is."""
    now.see_all()
    if event.reason != "tool_missing" and event.reason != "agent_missing":
        now.decided = []
        return now.one_of(fact, Suspend(event.reason, event.waiting_for, event.next_try))
    needed = sorted({_tool_of(now, each) for each in settle(now.state) if isinstance(each, Rerun | ProbeStep)})
    now.decided = []
    if set(event.waiting_for) <= set(needed):
        return None
    return Difference(f"wait for {', '.join(event.waiting_for)}", f"only {', '.join(needed) or 'nothing'} is open")


def _tool_of(now: Redecision, settlement: Rerun | ProbeStep) -> str:
    return now.state.tree.calls[settlement.call_id].part.name


def check_resumption(now: Redecision, event: TurnResumed) -> Difference | None:
    now.see_all()  # whoever takes a turn up reads all of it first
    cause = resume_cause(now.state)
    settlements = settle(now.state, from_late_owner=event.taken_from == "late")
    closing = unknown_among(settlements) if cause == "recovery" and event.cause == "closing" else []
    if event.cause != cause and not closing:
        return Difference(f"resumed: {event.cause}", f"resumed: {cause}")
    now.settlements = [*(closing or settlements)]
    now.decided = []
    now.unmade = 0
    now.checked["turn.resumed"] = now.checked.get("turn.resumed", 0) + 1
    return None


def check_settlement(now: Redecision, fact: Fact, settlement: Settlement) -> Difference | None:
    """The facts with which a recovery closes or repeats what was open, in its order."""
    written = _settlement(fact)
    # Whether the model that is there today can take an answer up again is not in the log: it may be lost, too.
    if isinstance(settlement, LoseAttempt | Reattach) and isinstance(written, LoseAttempt):
        asked, event = now.level(settlement.level).round.request, fact.event
        assert isinstance(event, ModelFailed) and asked is not None
        here = (fact.level, fact.step, event.candidate, event.attempt)
        there = (settlement.level, asked.step, asked.candidate, asked.attempt)
        return Difference(f"lose {here}", f"lose {there}") if here != there else now.same(fact)
    wanted: Settlement = settlement
    if isinstance(settlement, ProbeStep):  # asking the probe begins like a repeat
        wanted = Rerun(settlement.call_id, now.state.tree.calls[settlement.call_id].dispatches + 1)
    if isinstance(settlement, CloseUnknown) and _says_that_it_is_a_task(fact, settlement.call_id):
        return now.same(fact)  # which commands had become tasks is in the rows of the tasks, not in the turn
    if written != wanted:
        return Difference(str(written) if written else f"{fact.event.kind} {fact.call_id or ''}", str(settlement))
    return now.same(fact)


def _says_that_it_is_a_task(fact: Fact, call_id: str) -> bool:
    event = fact.event
    is_task = isinstance(event, ToolResult) and event.details.get("disposition") == PROMOTED
    return is_task and fact.call_id == call_id


def _settlement(fact: Fact) -> Settlement | None:
    """What a fact settles, if it settles anything."""
    call_id, event = fact.call_id or "", fact.event
    match event:
        case ModelFailed(stage="crash"):
            return LoseAttempt(fact.level)
        case ModelResponseReattached():
            return Reattach(event.response_id, fact.level)
        case ToolDispatched(cause="recovery"):
            return Rerun(call_id, event.attempt)
        case ToolFailed(effects="unknown", status="interrupted"):
            reason = (event.tool_error.details or {}).get("reason")
            return CloseUnknown(call_id, reason if reason in ("crash_loop", "late_owner") else "interrupted")
    return None
