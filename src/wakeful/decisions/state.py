"""The state of a turn: a fold over its facts.

`evolve` changes one owned state in place, by one fact, deterministically. It appends; it never copies the history, so
a fact costs the same at round 10 and at round 10,000. After a crash, folding the log again is the recovery.

The state is the root level, and below it the levels that calls and the runtime made. What the whole tree shares (its
limits, what it has spent, what it has seen, why it has to stop) is here once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, assert_never

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.authority import lowest
from wakeful.contracts.budgets import AUTONOMOUS, Limits
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import ToolItem, UserItem
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
    BudgetGranted,
    BudgetNoticed,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextResolved,
    ContinuationDecided,
    CostEstimated,
    CostRecorded,
    HistoryImported,
    HookCompleted,
    HookFailed,
    HookStarted,
    KnowledgeRetrieved,
    LimitChanged,
    LoopFact,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
    OutputSpilled,
    OutputTruncated,
    PermissionEvaluated,
    PlanArtifact,
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
    RuntimeToolContinued,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SandboxApplied,
    SandboxViolation,
    ScratchWritten,
    SessionStarted,
    SkillActivated,
    StopCause,
    StopRule,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
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
    TurnPauseLifted,
    TurnPauseRequested,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    UnknownResolved,
    Unrecognised,
    WarningIssued,
    WorkflowNodeResolved,
    WorkflowStarted,
)
from wakeful.contracts.events.context import WindowStart
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.events.turns import Terminal
from wakeful.contracts.models import ProviderAttemptRecord
from wakeful.contracts.skills import ActiveSkill
from wakeful.contracts.spending import WindowPassed
from wakeful.decisions.compaction import item_tokens, measured, summary_config, transcript
from wakeful.decisions.delegation import REMINDER, TASK_KEY, child_config
from wakeful.decisions.guards import CallSeen, IdenticalFailureTracker, SpinDetector
from wakeful.decisions.ledger import Ledger
from wakeful.decisions.level_ends import unsatisfied
from wakeful.decisions.levels import Asked, Begun, Call, ChildEnd, Heard, Kept, Level, Pending, Phase
from wakeful.decisions.planning import planner_config
from wakeful.decisions.policy.provenance import NOTHING_SEEN, Exposure, begun, exposed, merged, what_it_does
from wakeful.decisions.retries import MAX_ATTEMPTS
from wakeful.decisions.runtime_answers import FINISH
from wakeful.decisions.workflows.calls import begin_workflow, let_follow, node_resolved, workflow_words

LAST_CALL = UserItem(
    parts=(
        Text(
            "This is the last reply there is room for in the budget of this piece of work: call no more tools, and "
            "answer now with what you have. Say what is missing."
        ),
    ),
    origin="runtime",
)
"""What a model is told with the last request that the budget has room for."""


@dataclass(slots=True)
class Stop:
    """Why the turn is to end before it ended by itself."""

    status: Literal["incomplete", "failed", "cancelled"]
    reason: StopCause
    message: str
    interrupt_id: str | None = None
    requested_at: int = 0
    applied: bool = False
    """Running work was told."""
    abort: AbortReason = "budget"
    """What is said of the calls that end with it."""
    is_overdue: bool = False
    """The turn's time is over, too: what was to be let finish is told as well."""

    @property
    def told_as(self) -> str:
        """The id under which it is carried out."""
        if self.is_overdue:
            return "limit:wall_clock"
        return self.interrupt_id or f"limit:{self.reason}"


@dataclass(slots=True)
class TurnState(Level):
    """Everything that deciding needs to know about one turn: its root level, and what its whole tree shares."""

    configs: Mapping[str, TurnConfig] = field(default_factory=dict)
    """Configurations by digest, loaded before folding."""
    levels: dict[str, Level] = field(default_factory=dict)
    """The open levels below the root, by id."""
    levels_opened: int = 0
    calls: dict[str, Call] = field(default_factory=dict)
    """Calls of every level's newest round, by id."""
    waiting: dict[str, Call] = field(default_factory=dict)
    """Those that wait for somebody outside."""
    able: dict[str | None, Level] = field(default_factory=dict, compare=False, repr=False)
    """Levels that may have something to do (`Level.can_step`)."""
    in_flight: int = 0
    """Calls that run and requests that are under way, in the whole tree. A call that waits for children is none."""
    chain: tuple[str, ...] = ()
    """The models that were decided on, in the order they are tried; empty in a log of before there was routing."""
    limits: Limits = AUTONOMOUS
    ledger: Ledger = field(default_factory=Ledger)
    stop_rule: StopRule = "natural"
    structured: bool = False
    turn_index: int = 0
    started_at: int = 0
    now: int = 0
    """The newest fact's time: the only clock that deciding has."""
    worked_until: int = 0
    """The time of the newest fact the owner wrote: where a stretch that was cut off ended."""
    stretch_from: int = 0
    active_us: int = 0
    """Work before the current stretch."""
    idle: bool = False
    """Nothing works, and somebody outside is waited for: that time is nobody's."""
    tree_answered: int = 0
    """Model calls of all levels that were answered. Their `usage` is the root's, too: that is the turn's."""
    cost: Decimal = Decimal(0)
    """Of the attempts whose price is known, lost ones included."""
    priced: int = 0
    """How many answered ones those are."""
    derived_from: str = "operator_instruction"
    """The lowest authority among the turn's messages."""
    exposure: Exposure = NOTHING_SEEN
    """What the conversation has seen: untrusted input, private data, acts."""
    standing_rules: list[dict[str, Any]] = field(default_factory=list)
    """Rules that people added while deciding about calls of this turn."""
    revoked_rules: set[str] = field(default_factory=set)
    """Ids of rules that were taken back while this turn was open."""
    completed_by: str | None = None
    """The call with which a mediator declared the run complete."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Calls whose outcome nobody knows, and their tools."""
    compaction_id: str | None = None
    """The newest summary the conversation rests on."""
    skills: dict[str, ActiveSkill] = field(default_factory=dict)
    """Skills that completed turns of the thread used before, by their `SKILL.md`."""
    opened: dict[str, ActiveSkill] = field(default_factory=dict)
    """Those that this turn used: the next one's, if it completes."""
    begins: list[Begun] = field(default_factory=list)
    """Where the turns of the thread begin among the items."""
    context: ContextResolved | None = None
    """What the requests rest on, as it was last written down."""
    plan: PlanArtifact | None = None
    planned: bool = False
    """Planning is behind it, with a plan or without."""
    paused: bool = False
    """Somebody asked the turn to rest, and nobody said since that it may go on."""
    full_window: WindowPassed | None = None
    """A spend window that had no room for a request: the turn comes to rest until it turns."""
    stop: Stop | None = None
    unheeded: list[str] = field(default_factory=list)
    """Requests to stop that came after another one, and were not answered yet."""
    to_call_off: dict[str, None] = field(default_factory=dict)
    """Running calls and levels that have to be told that they were called off."""
    suspended_for: TurnSuspended | None = None
    rested_from: Phase = "ready"
    """The root's phase when the turn was suspended: where it goes on."""
    terminal: Terminal | None = None

    def active_ms(self) -> float:
        """Time spent working, up to the newest fact."""
        return (self.active_us + max(0, self.now - self.stretch_from)) / 1000

    def chain_of(self, level: Level) -> tuple[str, ...]:
        """The models of a level, in the order they are tried. A level with models of its own is not routed."""
        config, own = level.config, self.config
        if config is None:
            return ()
        named = (config.model_ref, *config.fallbacks)
        if not self.chain or own is None or config.agent_name != own.agent_name:
            return named
        return self.chain if named == (own.model_ref, *own.fallbacks) else named

    def model_at(self, candidate: int, level: Level) -> str | None:
        """The model at a place of the chain. A round that was cut off keeps its place when the chain gets shorter."""
        chain = self.chain_of(level)
        return chain[min(candidate, len(chain) - 1)] if chain else None

    def has_model_after(self, candidate: int, level: Level) -> bool:
        """Whether another model follows it."""
        return candidate + 1 < len(self.chain_of(level))

    def level(self, level_id: str | None) -> Level:
        """The level of that id; None is the root."""
        return self if level_id is None else self.levels[level_id]

    def all_open_calls(self) -> list[Call]:
        """Calls without an answer in the whole tree, the root's first."""
        if not self.levels:
            return self.open_calls()
        return [call for level in (self, *self.levels.values()) for call in level.open_calls()]


def after(before: TurnState, configs: Mapping[str, TurnConfig]) -> TurnState:
    """The thread's next turn: it goes on with the same conversation, and with what that has seen."""
    return TurnState(
        configs=configs,
        items=before.items,
        exposure=replace(before.exposure, acted=""),
        heard=before.heard,
        references=before.references,
        conserved=before.conserved,
        advised=before.advised,
        compactions=before.compactions,
        compaction_id=before.compaction_id,
        begins=before.begins,
        skills={**before.skills, **before.opened} if isinstance(before.terminal, TurnCompleted) else before.skills,
    )


def evolve(state: TurnState, fact: Fact) -> None:
    """Take in one fact."""
    event = fact.event
    if fact.at > state.now:
        if state.idle:
            state.stretch_from += fact.at - state.now
        state.now = fact.at
    level = state if fact.level is None else state.levels.get(fact.level)
    if level is None:
        return  # about a level that has ended: nothing is decided from it any more
    match event:
        case ToolResult():
            if event.artifact_refs or event.details:
                _refers(level, fact, event)
            if event.tool_name == FINISH and level.output_schema is not None:
                level.has_finished, level.payload = True, (event.details or {}).get("payload")
            elif event.result_ref is not None and (answered := state.calls.get(fact.call_id or "")) is not None:
                answered.whole = event.result_ref
            _answered_call(state, level, fact, event.item)
        case ModelRequested():
            _asked(state, level, fact, event)
        case ModelCompleted():
            _model_answered(state, level, event)
        case AssistantRecorded():
            _recorded(state, level, fact, event)
        case ToolStarted():
            _started_call(state, level, fact, event)
        case PermissionEvaluated():
            if event.said:
                _heard(state, fact, event)
        case ContextResolved():
            state.context = event
            return
        case SkillActivated():
            skill = ActiveSkill(
                name=event.skill,
                entrypoint_path=event.entrypoint_path,
                state="restored",
                load_reason=event.load_reason,
            )
            state.opened.setdefault(event.entrypoint_path, skill)
        case ToolProgress() | ToolArgs() | CostEstimated():
            return  # facts for readers: nothing is decided from them
        case ToolFailed():
            _failed_call(state, level, fact, event)
        case CostRecorded():
            amount = Decimal(event.amount)
            state.cost += amount
            state.priced += not event.lost
            state.ledger.cost(level.asked, amount, lost=event.lost)
        case RoutingFallbackApplied() | RateLimitHit() | QuotaBlocked():
            pass  # says why; that it is so follows from the lost attempt beside it
        case RoutingCandidatesResolved() | RoutingSingleCandidate() | QuotaLow():
            pass  # says why; the decision follows
        case RoutingDecided():
            state.chain = (event.selected_model_ref, *event.fallback_chain)
        case RoutingNotPossible():
            if state.stop is None:
                state.stop = Stop("failed", "routing_not_possible", event.decision_reason, applied=True)
        case ModelFailed():
            _lost(state, level, fact, event)
        case ModelResponseAccepted():
            if level.asked is not None:
                level.asked.response_id = event.response_id
        case ModelResponseReattached():
            if level.asked is not None:
                level.asked.reattached = True
        case ToolDispatched():
            _dispatched_again(state, level, fact, event)
        case MessageAdmitted():
            if not state.begins or state.begins[-1].turn_id != fact.turn_id:
                state.begins.append(Begun(fact.turn_id or "", len(state.items), len(state.items)))
            state.heard.append(Heard(len(state.items), event.message_id, event.authority_class, fact.turn_id or ""))
            state.items.append(event.item)
            state.derived_from = lowest((event.authority_class, event.derived_from or event.authority_class))
            state.exposure = merged(state.exposure, begun(state.derived_from))
        case HistoryImported():
            # The message opens its turn and is stored first; in the conversation it comes after what it follows.
            state.items[-1:-1] = event.items
            newest = state.heard.pop()
            state.heard.append(newest._replace(place=len(state.items) - 1))
        case KnowledgeRetrieved():
            state.items.append(event.item)
            if event.untrusted:
                state.exposure = merged(state.exposure, Exposure(untrusted=", ".join(event.collections)))
        case TurnStarted():
            _started(state, fact, event)
        case TurnConfigChanged():
            state.config = state.configs.get(event.config_ref.digest)
            state.limits = event.limits
        case SubagentStarted():
            _child_started(state, level, fact, event)
        case SubagentCompleted() | SubagentFailed():
            _child_ended(state, level, fact, event)
        case ScratchWritten():
            level.scratch[event.key] = level.written[event.key] = event.value
            if (writer := state.calls.get(fact.call_id or "")) is not None:
                writer.wrote[event.key] = event.value
        case PlanningStarted():
            _planning_started(state, event)
        case PlanningCompleted() | PlanningFailed():
            _planning_ended(state, event)
        case WorkflowStarted():
            state.calls.update({call.call_id: call for call in begin_workflow(state)})
        case WorkflowNodeResolved():
            node_resolved(state.calls[fact.call_id or ""], event)
        case CompactionStarted():
            _folding(state, level, event)
        case CompactionCompleted() | CompactionFailed():
            _folded(state, level, event)
        case TurnInterjected():
            _interjected(state, event)
        case TurnPauseRequested():
            state.paused = True
        case TurnPauseLifted():
            state.paused = False
        case TurnInterruptRequested():
            _interrupted(state, fact, event)
        case TurnInterruptIgnored():
            if event.interrupt_id in state.unheeded:
                state.unheeded.remove(event.interrupt_id)
        case TurnInterruptApplied():
            if state.stop is not None:
                state.stop.applied = True
        case LimitChanged():
            _limited(state, fact, event)
        case AnswerAccepted():
            level.answer_checked = True
            level.answer_value = event
        case AnswerRejected():
            _rejected(state, level, event)
        case ContinuationDecided():
            level.go_on = event.go_on
            if event.go_on:
                level.phase = "ready"
        case TurnSuspended():
            if state.phase != "suspended":
                state.rested_from = state.phase
            state.phase = "suspended"
            state.suspended_for = event
            state.active_us += max(0, fact.at - state.stretch_from)
            state.stretch_from = fact.at
        case TurnResumed():
            _resumed(state, fact)
        case TurnCompleted() | TurnFailed():
            state.phase = "ended"
            state.terminal = event
            # What a person said and no request took along stays in the conversation: the thread's next turn reads it.
            state.items.extend(note for note in state.notes if note.origin == "person")
        case UnknownResolved():
            _resolved_unknown(state, event)
        case ActionRequired() | RuntimeToolRequested():
            _asked_outside(state, level, fact, event)
        case ActionResolved() | RuntimeToolResolved():
            _said_outside(state, fact, event)
        case ApprovalRuleRevoked():
            state.revoked_rules.add(event.rule_id)
        case (
            SessionStarted()
            | LoopFact()
            | ToolCatalogResolved()
            | RuntimeToolContinued()
            | ActionStaged()
            | ActionSettled()
            | ApprovalRuleAdded()
            | BudgetNoticed()
            | BudgetGranted()
            | SandboxApplied()
            | SandboxViolation()
            | HookStarted()
            | HookCompleted()
            | HookFailed()
            | OutputSpilled()
            | OutputTruncated()
            | WarningIssued()
            | Unrecognised()
        ):
            pass
        case _:
            assert_never(event)
    if level.can_step:
        state.able[level.id] = level
    else:
        state.able.pop(level.id, None)
    state.idle = bool(state.waiting) and not state.in_flight and not state.able
    if not event.outsider:
        state.worked_until = fact.at


def _touched(state: TurnState, level: Level) -> None:
    """A fact about one level changed what another may do."""
    if level.can_step:
        state.able[level.id] = level
    else:
        state.able.pop(level.id, None)


# --- the turn --------------------------------------------------------------------------------------------------------


def _started(state: TurnState, fact: Fact, event: TurnStarted) -> None:
    state.phase = "ready"
    state.config = state.configs.get(event.config_ref.digest)
    state.limits = event.limits
    state.stop_rule = event.stop_rule
    state.structured = event.structured
    state.turn_index = event.turn_index
    state.started_at = state.stretch_from = fact.at


def _resumed(state: TurnState, fact: Fact) -> None:
    """A new stretch of work: what lay between the last fact and this one was downtime."""
    state.full_window = None
    if state.phase == "suspended":
        state.suspended_for = None
        state.phase = state.rested_from
    elif not state.idle:
        state.active_us += max(0, state.worked_until - state.stretch_from)
    state.stretch_from = fact.at
    for call in state.all_open_calls():
        if not call.dispatches and not call.is_waiting and call.taken_up:
            call.taken_up = False  # nothing of it has begun: through the gate again
            call.level.untaken += 1
            _touched(state, call.level)


def _interrupted(state: TurnState, fact: Fact, event: TurnInterruptRequested) -> None:
    """The first request holds; of any other one it is told that it changes nothing."""
    if state.phase == "ended":
        return
    if state.stop is not None and state.stop.interrupt_id is not None:
        state.unheeded.append(event.interrupt_id)
        return
    cause: StopCause = "cancelled"
    message = f"{event.requested_by} asked the turn to stop"
    if event.reason == "superseded":
        cause, message = "superseded", f"a newer message of {event.requested_by} took its place"
    elif event.reason == "runtime_shutdown":
        cause = "interrupted"
    state.stop = Stop("cancelled", cause, message, event.interrupt_id, fact.at, abort=event.reason)


def _limited(state: TurnState, fact: Fact, event: LimitChanged) -> None:
    stop = state.stop
    if stop is not None and stop.interrupt_id is not None and event.limit_name == "wall_clock":
        stop.is_overdue, stop.applied = True, False
    if event.window is not None and not event.window.is_hopeless:
        state.full_window = event.window
    elif stop is None:
        if event.limit_name == "context_budget":
            state.final_text = state.last_text = event.what  # a stop like this is a result, and says so in words
        state.stop = Stop(
            "incomplete",
            event.limit_name,
            _limit_words(event),
            applied=event.limit_name != "wall_clock" and not state.levels,
            requested_at=fact.at,
        )


def _limit_words(event: LimitChanged) -> str:
    if event.limit_name == "context_budget":
        return event.what
    of = f" ({event.what})" if event.what else ""
    return f"the limit {event.limit_name}={event.limit:g} was reached{of}"


def _interjected(state: TurnState, event: TurnInterjected) -> None:
    """The next request takes it along; a turn that was about to end with its answer makes that request."""
    if state.phase == "ended":
        return
    state.notes.append(event.item)
    if _is_last_round(state):
        return  # whichever of the two came first; the thread's next turn reads it
    if state.phase == "answered":
        state.phase = "ready"
        state.answer_checked = False
    elif state.phase == "suspended" and state.rested_from == "answered":
        state.rested_from = "ready"
        state.answer_checked = False


# --- the model -------------------------------------------------------------------------------------------------------


def _asked(state: TurnState, level: Level, fact: Fact, event: ModelRequested) -> None:
    step = fact.step or 0
    _round_of(level, step)
    # A note may stand in the log before facts whose writer had not seen it. The request itself says what it took along,
    # so that the conversation is the same whoever folds it.
    last_words = event.final and not level.told_last
    taken = event.items - len(level.items) - last_words
    if taken > 0:
        level.items.extend(level.notes[:taken])
        del level.notes[:taken]
    if last_words:
        level.items.append(LAST_CALL)
        level.told_last = True
    if level.phase != "asking":
        state.in_flight += 1
    level.phase = "asking"
    level.asked = Asked(step, event.candidate, event.attempt, event.model_ref, fact.at, event.backoff_ms)
    state.ledger.hold(level.asked, event)
    level.go_on = None


def _round_of(level: Level, step: int) -> None:
    if step != level.step:
        level.step = step
        level.attempts.clear()


def _model_answered(state: TurnState, level: Level, event: ModelCompleted) -> None:
    level.answered += 1
    state.tree_answered += 1
    usage = level.last_usage = event.token_usage
    if usage is not None:
        level.usage = level.usage + usage
        level.usage_reported = True
        if level is not state:
            state.usage = state.usage + usage
            state.usage_reported = True
    state.ledger.answered(level.asked, usage)


def _lost(state: TurnState, level: Level, fact: Fact, event: ModelFailed) -> None:
    asked = level.asked
    if level.phase in ("ready", "lost"):
        # Turned down before anything was sent: there was no request, and none is counted.
        _round_of(level, fact.step or 0)
        level.asked = asked = Asked(level.step, event.candidate, event.attempt, event.model_ref, fact.at)
    elif level.phase == "asking":
        state.in_flight -= 1
    if asked is None:
        return
    state.ledger.lost(asked, event)
    asked.failure = event
    level.phase = "lost"
    if event.stage == "crash":
        return  # our own death is none of the provider's attempts
    level.attempts.append(attempt_record(event, asked.backoff_ms))


def attempt_record(event: ModelFailed, backoff_ms: int = 0) -> ProviderAttemptRecord:
    """A lost attempt as the timeline keeps it."""
    exhausted = event.attempt >= MAX_ATTEMPTS
    return ProviderAttemptRecord(
        provider=event.model_ref.partition(":")[0],
        model_ref=event.model_ref,
        attempt=event.attempt,
        max_attempts=MAX_ATTEMPTS,
        started_at=event.started_at,
        completed_at=event.completed_at,
        duration_ms=event.duration_ms,
        failure_kind=event.failure_kind,
        disposition=event.disposition,
        outcome="retrying"
        if event.disposition == "retry"
        else "retries_exhausted"
        if exhausted
        else "fail_fast_aborted",
        advanced_to_fallback=event.disposition == "fallback",
        backoff_ms=backoff_ms or None,
        token_usage=event.token_usage,
        transport_diagnostics=event.transport_diagnostics,
    )


def _recorded(state: TurnState, level: Level, fact: Fact, event: AssistantRecorded) -> None:
    item = event.item
    level.items.append(item)
    if level.phase == "asking":
        state.in_flight -= 1
    state.ledger.recorded(level.asked)
    level.asked = None
    level.attempts.clear()
    text = item.text
    if text:
        level.last_text = text
    level.final_text = text
    window = level.config.context_window if level.config is not None else None
    if window is not None or state.limits.history_tokens is not None:
        measured(level, level.last_usage)  # nobody asks how long it is where nothing is held to it
    _advise(level)
    level.continuation = event.continuation
    for call in level.batch:
        state.calls.pop(call.call_id, None)
    level.batch = [
        Call(part, fact.step or 0, position, asked.malformed, level)
        for position, (part, asked) in enumerate(zip(item.calls, event.calls, strict=True))
    ]
    for call in level.batch:
        state.calls[call.call_id] = call
    level.front = 0
    level.running = 0
    level.untaken = len(level.batch)
    level.calls_off = False
    level.answer_checked = False
    if level.called_off:
        for call in level.batch:
            _off(state, call)
    if level.batch:
        level.phase = "acting"
        level.snapshot = dict(level.scratch)
    else:
        _round_complete(state, level)


def _round_complete(state: TurnState, level: Level) -> None:
    """Every call of the round is answered: what waited for that goes into the conversation."""
    goes_on = bool(level.batch or level.continuation)
    if level.continuation:
        level.items.extend(level.continuation)
        level.continuation = ()
    for call in level.batch:
        if call.wrote or call.children:  # visible when all of the round have settled; the later call wins
            noted = call.noted
            level.scratch.update(noted)
            level.written.update(noted)
    if level.nudge:
        level.items.append(UserItem(parts=(Text(level.nudge),), origin="runtime"))
        level.nudge = ""
    if level is not state:
        _child_round_complete(level, goes_on)
    elif level.config is not None and level.config.workflow is not None:
        level.phase = "answered"
        level.final_text = level.last_text = workflow_words(level)
    elif _is_last_round(state):
        level.phase = "answered"
    elif state.stop_rule == "caller":
        level.phase = "closing"
    else:
        interjected = any(note.origin == "person" for note in level.notes)
        level.phase = "ready" if goes_on or interjected else "answered"


def _is_last_round(state: TurnState) -> bool:
    """The turn ends with this round, whatever is said to it. Of a workflow's run no model is asked at all."""
    runs_workflow = state.config is not None and state.config.workflow is not None
    completed = any(call.call_id == state.completed_by for call in state.batch)
    return runs_workflow or state.stop_rule == "single" or completed


def _child_round_complete(level: Level, goes_on: bool) -> None:
    if level.has_finished or (level.output_schema is None and not goes_on):
        level.phase = "answered"
        return
    if not goes_on:
        level.items.append(UserItem(parts=(Text(REMINDER),), origin="runtime"))
    level.phase = "ready"


# --- calls -----------------------------------------------------------------------------------------------------------


def _heard(state: TurnState, fact: Fact, event: PermissionEvaluated) -> None:
    """Code outside the log may write other arguments, or declare the run complete."""
    call = state.calls.get(fact.call_id or "")
    for said in event.said:
        if said.arguments is not None and call is not None:
            call.rewritten = said.arguments
        if said.completes:
            state.completed_by = fact.call_id


def _take_up(call: Call) -> None:
    if not call.taken_up:
        call.taken_up = True
        if not call.open_before:
            call.level.untaken -= 1


def _begin(state: TurnState, call: Call) -> None:
    """The effect may have begun."""
    call.level.running += 1
    state.in_flight += 1
    state.ledger.tool_called(call.part.name)
    _expose(state, call)


def _started_call(state: TurnState, level: Level, fact: Fact, event: ToolStarted) -> None:
    call = state.calls[fact.call_id or ""]
    _take_up(call)
    call.effect = event.effect
    call.blocks = event.interrupt_behavior == "block"
    call.idempotency_key = event.idempotency_key
    call.started_at = fact.at
    if event.dispatched:
        call.alone = not event.is_concurrency_safe
        _begin(state, call)
        call.dispatches = 1


def _dispatched_again(state: TurnState, level: Level, fact: Fact, event: ToolDispatched) -> None:
    call = state.calls[fact.call_id or ""]
    if call.dispatches == 0:  # let through by a person: this is its intent
        _take_up(call)
        _begin(state, call)
    call.dispatches = event.attempt
    call.settled = True


def _expose(state: TurnState, call: Call) -> None:
    """A call that is let through adds what its tool does to what the conversation has seen."""
    declaration = call.level.config.tool(call.part.name) if call.level.config is not None else None
    if declaration is not None:
        state.exposure = exposed(state.exposure, declaration.name, what_it_does(declaration))


def _asked_outside(state: TurnState, level: Level, fact: Fact, event: ActionRequired | RuntimeToolRequested) -> None:
    call = state.calls[fact.call_id or ""]
    _take_up(call)
    if call.dispatches:  # the tool itself has a question, and has done nothing: it begins anew with the answer
        call.dispatches = 0
        level.running -= 1
        state.in_flight -= 1
    call.rewritten = call.replaced
    if isinstance(event, ActionRequired):
        call.pending = Pending(event.action_id, event.expires_at, event, fact.at)
    else:
        # A client that is asked may do it: the request is the call's intent.
        call.pending = Pending(event.request_id, event.timeout_at, event, fact.at)
        state.ledger.tool_called(call.part.name)
        _expose(state, call)
    state.waiting[call.call_id] = call


def _said_outside(state: TurnState, fact: Fact, event: ActionResolved | RuntimeToolResolved) -> None:
    """The call goes before the gate once more; what was said goes with it."""
    call = state.calls.get(fact.call_id or "")
    if call is None or call.pending is None or not call.is_waiting:
        return
    action_id = event.action_id if isinstance(event, ActionResolved) else event.request_id
    if action_id == call.pending.action_id:
        call.pending.said = event
        state.waiting.pop(call.call_id, None)
        if isinstance(event, ActionResolved) and event.rule is not None:
            state.standing_rules.append(event.rule)
        if call.taken_up:
            call.taken_up = False
            call.level.untaken += 1
        _touched(state, call.level)


def _answered_call(state: TurnState, level: Level, fact: Fact, answer: ToolItem) -> None:
    call = state.calls.get(fact.call_id or "")
    if call is None or call.answer is not None:
        return
    if call.dispatches:
        level.running -= 1
        if not call.children:
            state.in_flight -= 1
    if not call.taken_up:
        _take_up(call)
    state.waiting.pop(call.call_id, None)
    state.to_call_off.pop(call.call_id, None)
    call.answer = answer
    if level.config is not None and level.config.workflow is not None:
        let_follow(call)
    batch = level.batch
    front = level.front
    while front < len(batch) and (ready := batch[front].answer) is not None:
        level.items.append(ready)
        _advise(level)
        if state.limits.stall_repeats is not None or state.limits.failure_repeats is not None:
            _watch_repeats(state.limits, level, batch[front])
        front += 1
    level.front = front
    if front == len(batch):
        _round_complete(state, level)


def _failed_call(state: TurnState, level: Level, fact: Fact, event: ToolFailed) -> None:
    if event.asked_retry:
        state.retries_asked[event.tool_name] = state.retries_asked.get(event.tool_name, 0) + 1
    if event.effects == "unknown":
        state.unknown[fact.call_id or ""] = event.tool_name
    if event.tool_name == FINISH and level.output_schema is not None and event.status == "invalid":
        level.finish_errors.append(event.message)
        if len(level.finish_errors) > state.limits.schema_retries:
            level.stop_error = unsatisfied(level, "its result did not fit the schema")
    call = state.calls.get(fact.call_id or "")
    if call is not None and call.answer is None:
        call.failure = event.tool_error.kind, event.message
        _call_off_others(state, level, call, event)
    _answered_call(state, level, fact, event.item)


def _call_off_others(state: TurnState, level: Level, call: Call, event: ToolFailed) -> None:
    """A tool may say that its failure calls off the rest of the round, or what had to wait for it."""
    config = level.config
    declared = config.tool(call.part.name) if config is not None else None
    if config is None or declared is None or declared.on_failure == "ignore":
        return
    if event.status in ("skipped", "cancelled") or state.stop is not None:
        return
    waited_only = declared.on_failure == "cancel_dependent"
    if waited_only and config.workflow is not None:
        return  # what depends on a node is passed over there anyway, and nothing else does
    for other in level.batch:
        if other is call or other.answer is not None:
            continue
        if waited_only and (other.position < call.position or other.running):
            continue
        _off(state, other)


def _off(state: TurnState, call: Call) -> None:
    call.called_off = call.level.calls_off = True
    if call.running and not call.blocks and not call.children:
        state.to_call_off[call.call_id] = None
    for job in call.children:
        child = state.levels.get(job.started.level_id) if job.end is None else None
        if child is None:
            continue
        child.called_off = True
        state.to_call_off[job.started.level_id] = None
        for below in child.open_calls():
            _off(state, below)
        _touched(state, child)


def _watch_repeats(limits: Limits, level: Level, call: Call) -> None:
    """Whether the model makes the same call time and again; the calls of a round in the model's order."""
    part = call.part
    arguments = part.arguments
    if arguments is None:
        arguments = {"": part.arguments_ref.digest if part.arguments_ref is not None else ""}
    kind, words = call.failure
    seen = CallSeen(part.name, arguments, {}, kind, words)
    if limits.stall_repeats is not None:
        level.spinning = (level.spinning or SpinDetector(limits.stall_repeats)).saw(seen)
    if limits.failure_repeats is not None:
        level.failing = (level.failing or IdenticalFailureTracker(limits.failure_repeats)).saw(seen)
        if (repeated := level.failing.repeated) is not None:
            level.nudge = repeated.message


# --- children --------------------------------------------------------------------------------------------------------


def _child_started(state: TurnState, level: Level, fact: Fact, event: SubagentStarted) -> None:
    call = state.calls[fact.call_id or ""]
    if not call.children:
        state.in_flight -= 1  # from here on others work for it
    call.children.append(ChildEnd(event, fact.at))
    state.ledger.subtasks += 1
    assert level.config is not None
    own = state.configs.get(event.config_ref.digest) if event.config_ref is not None else None
    child = Level(
        id=event.level_id,
        kind="child",
        parent=level,
        depth=event.depth,
        made_by=call,
        started=event,
        config=own or child_config(level.config, event, state.limits),
        items=[event.task],
        phase="ready",
        output_schema=event.output_schema,
        scratch=dict(level.snapshot),
    )
    _open(state, child)


def _child_ended(state: TurnState, level: Level, fact: Fact, event: SubagentCompleted | SubagentFailed) -> None:
    call, parent = level.made_by, level.parent
    assert call is not None and parent is not None and level.id is not None
    _close(state, level)
    job = next(job for job in call.children if job.started.level_id == level.id)
    job.end, job.ended_at = event, fact.at
    job.noted = level.written
    if isinstance(event, SubagentCompleted):
        noted = event.output if event.output is not None else level.final_text
        if event.output_ref is not None:
            noted = {"beginning": level.final_text, "whole": event.output_ref.digest}
        job.noted[TASK_KEY + level.id] = noted
    elif event.details.get("fatal") and state.stop is None:
        state.stop = Stop("failed", "provider_error", event.message, requested_at=fact.at)


def _open(state: TurnState, level: Level) -> None:
    assert level.id is not None
    state.levels_opened += 1
    level.rank = state.levels_opened
    state.levels[level.id] = state.able[level.id] = level


def _close(state: TurnState, level: Level) -> None:
    assert level.id is not None
    level.phase = "ended"
    for call in level.batch:
        state.calls.pop(call.call_id, None)
    state.levels.pop(level.id, None)
    state.able.pop(level.id, None)
    state.to_call_off.pop(level.id, None)


def _planning_started(state: TurnState, event: PlanningStarted) -> None:
    assert state.config is not None
    state.phase = "apart"
    state.planned = True
    planner = Level(
        id=event.level_id,
        kind="planner",
        parent=state,
        config=planner_config(state.config),
        items=list(state.items),
        phase="ready",
        scratch=dict(state.scratch),
        heard=list(state.heard),
        references=dict(state.references),
        conserved=state.conserved,
        advised=dict(state.advised),
    )
    _open(state, planner)


def _planning_ended(state: TurnState, event: PlanningCompleted | PlanningFailed) -> None:
    planner = state.levels.get(event.level_id)
    if planner is not None:
        _close(state, planner)
    if isinstance(event, PlanningCompleted):
        state.plan = event.plan
    if state.phase == "apart":
        state.phase = "ready"
    _touched(state, state)


# --- what is folded --------------------------------------------------------------------------------------------------


def _refers(level: Level, fact: Fact, event: ToolResult) -> None:
    """A result that names artifacts or evidence: neither may be lost with its place in the conversation."""
    cited = event.details.get("citations") if event.details else None
    evidence = tuple(
        str(link)
        for citation in (cited if isinstance(cited, list | tuple) else ())
        if isinstance(citation, dict) and (link := citation.get("url") or citation.get("id") or citation.get("ref"))
    )
    if event.artifact_refs or evidence:
        level.references[fact.call_id or ""] = event.artifact_refs, evidence


def _advise(level: Level) -> None:
    """The model is told how full its context is with what was just added; worked out once."""
    config = level.config
    if config is not None and config.budget_awareness == "per-message" and config.context_window is not None:
        level.advised[len(level.items) - 1] = item_tokens(level)


def _folding(state: TurnState, level: Level, event: CompactionStarted) -> None:
    level.folds_for = level.step + 1
    if event.level_id is None:
        return
    assert level.config is not None
    level.phase = "apart"
    folded = level.items[: event.cut]
    writer = Level(
        id=event.level_id,
        kind="summary",
        parent=level,
        depth=level.depth,
        config=summary_config(level.config),
        items=[UserItem(parts=(Text(transcript(folded, level.config.context_window)),), origin="runtime")],
        phase="ready",
        cut=event.cut,
        trigger=event.trigger,
        began_at=state.now,
        fold_id=event.compaction_id,
    )
    _open(state, writer)


def _folded(state: TurnState, level: Level, event: CompactionCompleted | CompactionFailed) -> None:
    """From here on the model is shown the summary; the log keeps what it stands for."""
    writer = next((each for each in state.levels.values() if each.fold_id == event.compaction_id), None)
    if writer is not None:
        _close(state, writer)
    if level.phase == "apart":
        level.phase = "ready"
    if isinstance(event, CompactionFailed) or event.summary is None:
        return
    cut = event.cut
    level.conserved = Kept(evidence=set(event.preserved_evidence_refs), artifacts=set(event.preserved_artifact_refs))
    level.items[:cut] = [event.summary]
    level.heard = [heard._replace(place=heard.place - cut + 1) for heard in level.heard if heard.place >= cut]
    level.advised = {place - cut + 1: used for place, used in level.advised.items() if place >= cut}
    level.known_tokens = level.known_at = 0
    level.compactions += 1
    if level is state:
        state.compaction_id = event.compaction_id
        _move_window(state, cut, event.window)


def _move_window(state: TurnState, cut: int, window: WindowStart | None) -> None:
    """What lies before the turn that is the first with words of its own is known from the fact alone.

    So a later turn that never reads it comes to the same state as one that read everything.
    """
    first = next((place for place in reversed(range(len(state.begins))) if state.begins[place].place <= cut), 0)
    state.begins = [begun._replace(place=max(1, begun.place - cut + 1)) for begun in state.begins[first:]]
    if window is not None:
        state.advised = dict(window.advised)
        state.skills = {**{skill.entrypoint_path: skill for skill in window.skills}, **state.skills}
        seen = state.exposure
        state.exposure = replace(
            seen, untrusted=window.untrusted or seen.untrusted, private=window.private or seen.private
        )


# --- answers ---------------------------------------------------------------------------------------------------------


def _rejected(state: TurnState, level: Level, event: AnswerRejected) -> None:
    level.answer_rejections += 1
    level.answer_checked = False
    if event.final:
        state.stop = Stop(
            "failed", "invalid_output", "; ".join(event.errors) or "the answer does not fit", applied=True
        )
        return
    level.items.append(event.item)
    level.phase = "ready"


def _resolved_unknown(state: TurnState, event: UnknownResolved) -> None:
    if state.unknown.pop(event.call_id, None) is None or state.phase == "ended":
        return
    if event.happened:
        outcome = f"it happened: {event.result}"
    else:
        outcome = f"it failed: {event.result}" if event.source == "late_answer" else "it did not happen"
    words = f"The outcome of call {event.call_id} ({event.tool_name}) is known now: {outcome}"
    call = state.calls.get(event.call_id)
    level = call.level if call is not None else state
    level.notes.append(UserItem(parts=(Text(words),), origin="runtime"))
