"""Deciding again: fold a turn's facts one after another, and hold every recorded decision to what is decided now.

Before each fact that stands for a decision the state is asked (`decide`, `settle`, the gate, `ending`), and the fact
has to be among the answers, with the same numbers. What came from outside (a model's words, a tool's result, a
deadline, the code) is taken as it was. The first difference ends the replay: nothing after it means anything.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    AnswerAccepted,
    AnswerRejected,
    BriefCreated,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextResolved,
    ContinuationDecided,
    CostEstimated,
    FilesTainted,
    GrantCounted,
    GrantReserved,
    HookCompleted,
    HookFailed,
    HookStarted,
    LimitChanged,
    MemoryFact,
    ModelFailed,
    ModelRequested,
    ModelWaiting,
    OutputRedacted,
    OutputSpilled,
    OutputTruncated,
    PermissionEvaluated,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
    RoutingFallbackApplied,
    SandboxApplied,
    ScratchWritten,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    ToolCatalogResolved,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnConfigChanged,
    TurnFailed,
    TurnInterruptApplied,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnTimeSkipped,
    WarningIssued,
    WorkFact,
    WorkflowNodeResolved,
)
from wakeful.decisions.differences import Difference
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.replay.calls import check_admission, check_repeat, check_taking_up, is_passed_over, reason_of
from wakeful.decisions.replay.endings import check_end, check_interrupt, check_limit, check_patience
from wakeful.decisions.replay.levels import check_child_end, check_child_start, check_fold, check_plan
from wakeful.decisions.replay.redecision import Gate, Redecision
from wakeful.decisions.replay.requests import asks_for, check_loss, check_request, check_wait
from wakeful.decisions.replay.rests import check_resumption, check_settlement, check_suspension
from wakeful.decisions.runtime_answers import ANSWERED_HERE, is_answered_here
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import (
    AskCaller,
    CheckAnswer,
    EndLevel,
    Fold,
    ResolveNode,
    SkipCall,
    StartPlanning,
    StopWork,
    TakeUp,
)
from wakeful.decisions.turn import RULES

_BESIDE_SETTLEMENTS = (
    TurnConfigChanged,
    ContextResolved,
    ToolCatalogResolved,
    WarningIssued,
    TurnTimeSkipped,
    OutputSpilled,
    OutputTruncated,
    OutputRedacted,
)
"""What may stand among the facts that settle what was open: what the code says that goes on with the turn, and what is
kept of a long result."""


class Divergence(NamedTuple):
    """The first decision that does not come out the same."""

    event_id: str
    kind: str
    recorded: str
    recomputed: str


class Replay:
    """One turn, decided again. Feed it the turn's facts in the order of the log."""

    __slots__ = ("divergence", "now", "rules")

    def __init__(self, state: TurnState, gate: Gate) -> None:
        self.now = Redecision(state, gate)
        self.divergence: Divergence | None = None
        self.rules = RULES
        """The number of the rules by which the newest of the facts were decided, as the turn says."""

    @property
    def state(self) -> TurnState:
        return self.now.state

    @property
    def checked(self) -> dict[str, int]:
        """Decisions that came out the same, by the kind of their event."""
        return self.now.checked

    def feed(self, recorded: StoredFact) -> None:
        """Take in the next fact. Nothing is taken in after a divergence."""
        if self.divergence is not None:
            return
        fact = recorded.fact
        if isinstance(fact.event, TurnStarted | TurnResumed):
            self.rules = fact.event.rules
        if fact.event.outsider and self.now.state.phase != "new":
            self.now.unseen.append(fact)
            return
        try:
            difference = self._check(fact)
            if difference is None:
                evolve(self.now.state, fact)
        except Exception as error:  # a log that was tampered with can break any step of the fold
            difference = Difference("a fact that cannot be folded", f"{type(error).__name__}: {error}")
        if difference is not None:
            self.divergence = Divergence(recorded.event_id, fact.event.kind, *difference)

    def same_page(self, recorded: StoredFact, differs: Sequence[str]) -> None:
        """A page of the conversation is what the thread's facts make of it, or differs in something."""
        kind = recorded.fact.event.kind
        if differs:
            what = f"pages that differ in {', '.join(differs)}"
            self.divergence = Divergence(recorded.event_id, kind, what, "pages with what the thread's facts come to")
        else:
            self.now.checked[kind] = self.now.checked.get(kind, 0) + 1

    def _check(self, fact: Fact) -> Difference | None:
        now, event = self.now, fact.event
        if isinstance(event, SandboxApplied | FilesTainted):
            return None  # what this machine can hold a call to, and what is in its files, is not in the log
        if now.admission:
            return check_admission(now, fact)
        if now.settlements and not isinstance(event, _BESIDE_SETTLEMENTS):
            return check_settlement(now, fact, now.settlements.pop(0))
        match event:
            case ModelRequested():
                return check_request(now, fact, event)
            case PermissionEvaluated():
                return check_taking_up(now, fact, None, event.said)
            case ToolDispatched(cause="approval"):
                return Difference("run what was approved", "nothing was asked")
            case HookStarted() | HookCompleted() | HookFailed() | WarningIssued() | ToolCatalogResolved():
                if fact.call_id is not None:
                    now.hold(lambda each: isinstance(each, TakeUp) and each.call_id == fact.call_id)
                return None  # what hooks say is outside the log; what follows from it is held to it
            case ToolStarted(dispatched=False) if is_passed_over(now, fact.call_id or ""):
                return None  # its end follows, and is held to the decision
            case ToolStarted():
                return check_taking_up(now, fact, event.scheduling if event.dispatched else None)
            case ToolFailed(status="skipped"):
                return now.one_of(fact, SkipCall(fact.call_id or "", reason_of(event)))
            case LimitChanged():
                return check_limit(now, fact, event)
            case TurnInterruptApplied():
                stop = StopWork(
                    event.cancelled_tool_call_ids,
                    event.skipped_tool_call_ids,
                    event.blocking_tool_call_ids,
                    event.cancelled_children,
                )
                return now.one_of(fact, stop) or check_interrupt(now, event)
            case AnswerRejected() if fact.level is not None:
                return now.one_of(fact, EndLevel(fact.level))  # what is wrong with it is judged by code
            case AnswerAccepted() | AnswerRejected():
                return now.one_of(fact, CheckAnswer()) or check_patience(now, event)
            case ContinuationDecided():
                return None if now.state.phase == "closing" else now.one_of(fact, AskCaller())
            case TurnCompleted() | TurnFailed():
                return check_end(now, fact, event)
            case TurnResumed():
                return check_resumption(now, event)
            case TurnSuspended():
                return check_suspension(now, fact, event)
            case SubagentStarted():
                return check_child_start(now, fact, event)
            case SubagentCompleted() | SubagentFailed():
                return check_child_end(now, fact, event)
            case WorkflowNodeResolved():
                return now.one_of(fact, ResolveNode(fact.call_id or ""))
            case CompactionStarted():
                fold = Fold(fact.level, event.trigger, event.cut, event.tokens_before)
                return now.one_of(fact, fold)
            case CompactionCompleted() | CompactionFailed():
                return check_fold(now, fact, event)
            case PlanningStarted():
                return now.one_of(fact, StartPlanning())
            case PlanningCompleted() | PlanningFailed():
                return check_plan(now, fact, event)
            case ToolDispatched():
                return check_repeat(now, fact, event)
            case ModelFailed():
                return check_loss(now, fact, event)
            case ModelWaiting():
                return check_wait(now, fact, event)
            case RoutingFallbackApplied() | CostEstimated():
                now.hold(lambda each: asks_for(each, fact))
                return None  # the request it explains follows, and is held to the decision
            case ScratchWritten() | WorkFact() | MemoryFact() | BriefCreated() | GrantReserved() | GrantCounted():
                return None  # what is decided from them follows
            case ToolResult() | ToolFailed() if _is_answered_here(now.state, event.tool_name):
                return None  # in the commit of a decision: what was decided together with it still follows
        now.decided = []  # an outcome: what is decided from here on is decided anew
        now.unmade = 0
        now.late = False
        return None


def _is_answered_here(state: TurnState, name: str) -> bool:
    """Did the loop answer calls of this tool itself, in this turn?"""
    if name not in ANSWERED_HERE:
        return False
    declared = [each for each in state.config.tools if each.name == name] if state.config is not None else []
    return not declared or is_answered_here(declared[0])
