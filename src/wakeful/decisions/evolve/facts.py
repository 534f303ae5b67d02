"""`evolve`: one fact, taken into the state of its turn.

It changes one owned state in place, deterministically. It appends; it never copies the history, so a fact costs the
same at round 10 and at round 10,000. After a crash, folding the log again is the recovery. What a fact does is said by
the modules beside this one; which of them is asked stands here, for every event there is.
"""

from typing import assert_never

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    ActionSettled,
    ActionStaged,
    AnswerAccepted,
    AnswerRejected,
    ApprovalRuleAdded,
    ApprovalRuleRevoked,
    AssistantRecorded,
    BriefCreated,
    BudgetGranted,
    BudgetNoticed,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextResolved,
    ContinuationDecided,
    CostEstimated,
    CostRecorded,
    EventExpired,
    FilesTainted,
    GrantCounted,
    GrantRenewed,
    GrantReserved,
    GrantSettled,
    HistoryImported,
    HookCompleted,
    HookFailed,
    HookStarted,
    KnowledgeRetrieved,
    LimitChanged,
    LoopFact,
    MemoryFact,
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    ModelAnswered,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
    ModelWaitEnded,
    ModelWaiting,
    OutputRedacted,
    OutputSpilled,
    OutputTruncated,
    PermissionEvaluated,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
    QuotaBlocked,
    QuotaLow,
    RateLimitHit,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingFallbackApplied,
    RoutingNotPossible,
    RoutingSingleCandidate,
    RuntimeFact,
    RuntimeToolContinued,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SandboxApplied,
    SandboxViolation,
    ScratchWritten,
    SessionStarted,
    SkillActivated,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    ThreadCheckpointed,
    ToolArgs,
    ToolCatalogResolved,
    ToolDispatched,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnConfigChanged,
    TurnFailed,
    TurnInterjected,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnInterruptRequested,
    TurnPatienceEnded,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnProviderReturned,
    TurnResumed,
    TurnRetried,
    TurnStarted,
    TurnSuspended,
    TurnTimeSkipped,
    UnknownResolved,
    UnrecognisedEvent,
    WaitCancelled,
    WaitCreated,
    WarningIssued,
    WorkFact,
    WorkflowNodeResolved,
    WorkflowStarted,
)
from wakeful.decisions.evolve.calls import (
    asked_outside,
    call_dispatched,
    call_failed,
    call_started,
    call_succeeded,
    consulted,
    outcome_known,
    said_outside,
    scratch_written,
    wait_created,
)
from wakeful.decisions.evolve.conversations import fold_ended, fold_started
from wakeful.decisions.evolve.levels import child_ended, child_started, planning_ended, planning_started
from wakeful.decisions.evolve.models import (
    asked_model,
    attempt_lost,
    cost_recorded,
    model_answered,
    reply_recorded,
    wait_began,
    wait_ended,
)
from wakeful.decisions.evolve.turns import (
    admitted,
    answer_rejected,
    context_resolved,
    grant_renewed,
    grant_reserved,
    grant_settled,
    history_imported,
    interjected,
    interrupted,
    knowledge_retrieved,
    limited,
    memory_shown,
    patience_ended,
    skill_activated,
    time_skipped,
    turn_ended,
    turn_resumed,
    turn_retried,
    turn_started,
    turn_suspended,
    work_items_changed,
)
from wakeful.decisions.state import Stop, TurnState
from wakeful.decisions.workflows.calls import begin_workflow, node_resolved


def evolve(state: TurnState, fact: Fact) -> None:
    """Take in one fact."""
    event, time, tree = fact.event, state.time, state.tree
    if fact.at > time.now:
        if time.idle:
            time.stretch_from += fact.at - time.now
        time.now = fact.at
    level = state if fact.level is None else tree.levels.get(fact.level)
    if level is None:
        return  # about a level that has ended: nothing is decided from it any more
    match event:
        case ToolResult():
            call_succeeded(state, level, fact, event)
        case ModelRequested():
            asked_model(state, level, fact, event)
        case ModelCompleted():
            model_answered(state, level, event)
        case AssistantRecorded():
            reply_recorded(state, level, fact, event)
        case ToolStarted():
            call_started(state, level, fact, event)
        case PermissionEvaluated():
            if event.said:
                consulted(state, fact, event)
        case ContextResolved():
            context_resolved(state, event)
            return
        case SkillActivated():
            skill_activated(state, event)
        case ToolProgress() | ToolArgs() | CostEstimated():
            return  # facts for readers: nothing is decided from them
        case ToolFailed():
            call_failed(state, level, fact, event)
        case CostRecorded():
            cost_recorded(state, level, event)
        case RoutingFallbackApplied() | RateLimitHit() | QuotaBlocked():
            pass  # says why; that it is so follows from the lost attempt beside it
        case RoutingCandidatesResolved() | RoutingSingleCandidate() | QuotaLow():
            pass  # says why; the decision follows
        case RoutingDecided():
            state.terms.chain = (event.selected_model_ref, *event.fallback_chain)
        case RoutingNotPossible():
            if state.stop is None:
                state.stop = Stop("failed", "routing_not_possible", event.decision_reason, applied=True)
        case ModelFailed():
            attempt_lost(state, level, fact, event)
        case ModelWaiting():
            wait_began(level, event)
        case ModelAnswered():
            level.round.told_wait = None
        case ModelWaitEnded():
            wait_ended(state, level)
        case ModelResponseAccepted():
            if level.round.request is not None:
                level.round.request.response_id = event.response_id
        case ModelResponseReattached():
            if level.round.request is not None:
                level.round.request.reattached = True
        case ToolDispatched():
            call_dispatched(state, level, fact, event)
        case MessageAdmitted():
            admitted(state, fact, event)
        case HistoryImported():
            history_imported(state, event)
        case KnowledgeRetrieved():
            knowledge_retrieved(state, fact, event)
        case TurnStarted():
            turn_started(state, fact, event)
        case TurnConfigChanged():
            state.config = state.configs.get(event.config_ref.digest)
            state.limits = event.limits
        case SubagentStarted():
            child_started(state, level, fact, event)
        case SubagentCompleted() | SubagentFailed():
            child_ended(state, level, fact, event)
        case ScratchWritten():
            scratch_written(state, level, fact, event)
        case WaitCreated():
            wait_created(state, fact, event)
        case GrantReserved():
            grant_reserved(state, event)
        case GrantSettled():
            grant_settled(state, event)
        case GrantRenewed():
            grant_renewed(state, event)
        case WorkFact():
            work_items_changed(state, fact, event)
        case MemoryFact():
            memory_shown(state, event)
        case PlanningStarted():
            planning_started(state, event)
        case PlanningCompleted() | PlanningFailed():
            planning_ended(state, event)
        case WorkflowStarted():
            state.tree.calls.update({call.call_id: call for call in begin_workflow(state)})
        case WorkflowNodeResolved():
            node_resolved(state.tree.calls[fact.call_id or ""], event)
        case CompactionStarted():
            fold_started(state, level, event)
        case CompactionCompleted() | CompactionFailed():
            fold_ended(state, level, event)
        case TurnInterjected():
            interjected(state, fact, event)
        case TurnPauseRequested():
            state.rest.is_paused = True
        case TurnTimeSkipped():
            time_skipped(state, fact, event)
        case TurnPauseLifted():
            state.rest.is_paused = False
        case TurnInterruptRequested():
            interrupted(state, fact, event)
        case TurnInterruptIgnored():
            if event.interrupt_id in state.unheeded:
                state.unheeded.remove(event.interrupt_id)
        case TurnInterruptApplied():
            if state.stop is not None:
                state.stop.applied = True
        case LimitChanged():
            limited(state, fact, event)
        case AnswerAccepted():
            level.answer.is_checked = True
            level.answer.accepted = event
        case AnswerRejected():
            answer_rejected(state, level, event)
        case ContinuationDecided():
            level.round.go_on = event.go_on
            if event.go_on:
                level.phase = "ready"
        case TurnSuspended():
            turn_suspended(state, fact, event)
        case TurnProviderReturned():
            pass  # the turn is due; what asks again then follows from `turn.resumed`
        case TurnPatienceEnded():
            patience_ended(state, fact, event)
        case TurnResumed():
            turn_resumed(state, fact, event)
        case TurnCompleted() | TurnFailed():
            turn_ended(state, event)
        case TurnRetried():
            turn_retried(state, fact, event)
        case UnknownResolved():
            outcome_known(state, event)
        case ActionRequired() | RuntimeToolRequested():
            asked_outside(state, level, fact, event)
        case ActionResolved() | RuntimeToolResolved():
            said_outside(state, fact, event)
        case ApprovalRuleRevoked():
            state.rules.revoked.add(event.rule_id)
        case (
            SessionStarted()
            | LoopFact()
            | RuntimeFact()
            | MessageDeferred()
            | MessageExpired()
            | ThreadCheckpointed()
            | ToolCatalogResolved()
            | RuntimeToolContinued()
            | ActionStaged()
            | ActionSettled()
            | ApprovalRuleAdded()
            | BriefCreated()
            | BudgetNoticed()
            | WaitCancelled()
            | BudgetGranted()
            | GrantCounted()
            | SandboxApplied()
            | SandboxViolation()
            | FilesTainted()
            | HookStarted()
            | HookCompleted()
            | HookFailed()
            | OutputSpilled()
            | OutputRedacted()
            | OutputTruncated()
            | EventExpired()
            | WarningIssued()
            | UnrecognisedEvent()
        ):
            pass
        case _:
            assert_never(event)
    tree.touched(level)
    time.idle = bool(tree.waiting or tree.away) and not tree.in_flight and not tree.able
    if not event.outsider:
        time.worked_until = fact.at
