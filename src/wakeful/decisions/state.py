"""The state of a turn: a fold over its facts.

`evolve` changes one owned state in place, by one fact, deterministically. It appends; it never copies the history, so
a fact costs the same at round 10 and at round 10,000. After a crash, folding the log again is the recovery.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, TypeAlias, assert_never

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.authority import lowest
from wakeful.contracts.budgets import AUTONOMOUS, Limits
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
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
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    CompletionBlocked,
    ContextResolved,
    ContinuationDecided,
    CostEstimated,
    CostRecorded,
    HistoryImported,
    HookCompleted,
    HookFailed,
    HookStarted,
    LimitChanged,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
    ObserverFailed,
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
    RuntimeToolContinued,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SandboxApplied,
    SandboxViolation,
    ScratchWritten,
    SessionStarted,
    StopCause,
    StopRule,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    ToolArgs,
    ToolCatalogResolved,
    ToolDeclarationsRejected,
    ToolDispatched,
    ToolFailed,
    ToolMediationDisabled,
    ToolMediationFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
    TranscriptClosed,
    TranscriptLockContended,
    TranscriptLockReleaseFailed,
    TranscriptPersistFailed,
    TurnCompleted,
    TurnConfigChanged,
    TurnFailed,
    TurnInterjected,
    TurnInterruptApplied,
    TurnInterruptRequested,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    UnknownResolved,
    Unrecognised,
    WarningIssued,
)
from wakeful.contracts.events.turns import Terminal
from wakeful.contracts.models import ProviderAttemptRecord, TokenUsage
from wakeful.contracts.tools import Effect
from wakeful.decisions.policy.provenance import NOTHING_SEEN, Exposure, begun, exposed, merged, what_it_does
from wakeful.decisions.retries import MAX_ATTEMPTS

Phase: TypeAlias = Literal["new", "ready", "asking", "lost", "acting", "closing", "answered", "suspended", "ended"]
"""new: nothing started. ready: the model may be asked. asking: it is being asked. lost: an attempt was lost.
acting: calls are open. closing: the round is done and the caller is to be asked. answered: the final reply is there.
suspended: at rest until something is supplied. ended: over."""


@dataclass(slots=True)
class Pending:
    """What a call asked of somebody outside, and what they said."""

    action_id: str
    expires_at: int
    asked: ActionRequired | RuntimeToolRequested
    asked_at: int = 0
    said: ActionResolved | RuntimeToolResolved | None = None


@dataclass(slots=True)
class Call:
    """One call of the open round."""

    part: CallPart
    step: int
    position: int
    malformed: bool
    taken_up: bool = False
    dispatches: int = 0
    """How often the effect may have begun; 0 while nothing was dispatched."""
    settled: bool = False
    """This process has already dealt with what a crash left open."""
    effect: Effect = "irreversible"
    idempotency_key: str = ""
    alone: bool = False
    """It has begun, and its arguments let nothing run beside it, whatever its tool declares."""
    started_at: int = 0
    pending: Pending | None = None
    """The newest thing it asked of somebody outside."""
    rewritten: dict[str, Any] | None = None
    """Arguments that a hook put in the place of the model's, or a person who is asked about them once more."""
    answer: ToolItem | None = None

    @property
    def is_waiting(self) -> bool:
        """Somebody outside has to say something first."""
        return self.pending is not None and self.pending.said is None and self.answer is None

    @property
    def edited(self) -> dict[str, Any] | None:
        """Arguments that a person put in the place of the model's."""
        said = self.pending.said if self.pending is not None else None
        return said.arguments if isinstance(said, ActionResolved) else None

    @property
    def replaced(self) -> dict[str, Any] | None:
        """What is run in the place of the model's own arguments: a person's, else a hook's; None: the model's."""
        return self.edited if self.edited is not None else self.rewritten

    @property
    def call_id(self) -> str:
        return self.part.call_id

    @property
    def running(self) -> bool:
        return self.dispatches > 0 and self.answer is None


@dataclass(slots=True)
class Asked:
    """The model request that is under way, or was lost."""

    step: int
    candidate: int
    attempt: int
    model_ref: str
    at: int
    backoff_ms: int = 0
    failure: ModelFailed | None = None
    response_id: str | None = None
    """Under which the provider works at it by itself, when it does."""
    reattached: bool = False
    """A crash cut it off, and its answer is asked for by that id."""


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


@dataclass(slots=True)
class TurnState:
    """Everything that deciding needs to know about one turn."""

    configs: Mapping[str, TurnConfig] = field(default_factory=dict)
    """Configurations by digest, loaded before folding."""
    items: list[UserItem | AssistantItem | ToolItem] = field(default_factory=list)
    """The conversation, earlier turns of the thread included."""
    phase: Phase = "new"
    config: TurnConfig | None = None
    limits: Limits = AUTONOMOUS
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
    step: int = 0
    model_calls: int = 0
    """Requests that were sent, lost attempts included."""
    answered: int = 0
    """Model calls that were answered."""
    tool_calls: int = 0
    asked: Asked | None = None
    attempts: list[ProviderAttemptRecord] = field(default_factory=list)
    """Lost attempts of the current round."""
    batch: list[Call] = field(default_factory=list)
    """Calls of the current round, in model order."""
    calls: dict[str, Call] = field(default_factory=dict)
    """The same, by id."""
    front: int = 0
    """The first call of the batch whose answer is not in the conversation yet."""
    running: int = 0
    continuation: tuple[UserItem | AssistantItem | ToolItem, ...] = ()
    notes: list[UserItem] = field(default_factory=list)
    """Notes of the runtime that no request has taken along yet."""
    retries_asked: dict[str, int] = field(default_factory=dict)
    """How often each tool asked the model to try differently."""
    answer_rejections: int = 0
    answer_checked: bool = False
    answer_value: AnswerAccepted | None = None
    go_on: bool | None = None
    final_text: str = ""
    last_text: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)
    usage_reported: bool = False
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
    stop: Stop | None = None
    suspended_for: TurnSuspended | None = None
    terminal: Terminal | None = None

    def active_ms(self) -> float:
        """Time spent working, up to the newest fact."""
        return (self.active_us + max(0, self.now - self.stretch_from)) / 1000

    def open_calls(self) -> list[Call]:
        """Calls of the round that have no answer yet, in model order."""
        return [call for call in self.batch[self.front :] if call.answer is None]


def after(before: TurnState, configs: Mapping[str, TurnConfig]) -> TurnState:
    """The thread's next turn: it goes on with the same conversation, and with what that has seen."""
    return TurnState(configs, before.items, exposure=replace(before.exposure, acted=""))


def evolve(state: TurnState, fact: Fact) -> None:
    """Take in one fact."""
    event = fact.event
    if fact.at > state.now:
        state.now = fact.at
    match event:
        case ToolResult():
            _answered_call(state, fact, event.item)
        case ModelRequested():
            _asked(state, fact, event)
        case ModelCompleted():
            state.answered += 1
            if event.token_usage is not None:
                state.usage = state.usage + event.token_usage
                state.usage_reported = True
        case AssistantRecorded():
            _recorded(state, fact, event)
        case ToolStarted():
            _started_call(state, fact, event)
        case PermissionEvaluated():
            if event.said:
                _heard(state, fact, event)
        case ToolProgress() | ToolArgs() | ContextResolved() | CostEstimated():
            pass  # facts for readers: nothing is decided from them
        case ToolFailed():
            _failed_call(state, fact, event)
        case CostRecorded():
            state.cost += Decimal(event.amount)
            state.priced += not event.lost
        case RoutingFallbackApplied() | RateLimitHit() | QuotaBlocked():
            pass  # says why; that it is so follows from the lost attempt beside it
        case RoutingCandidatesResolved() | RoutingDecided() | RoutingSingleCandidate() | QuotaLow():
            pass  # which models are there is told to whoever asks them
        case RoutingNotPossible():
            if state.stop is None:
                state.stop = Stop("failed", "routing_not_possible", event.decision_reason, applied=True)
        case ModelFailed():
            _lost(state, fact, event)
        case ModelResponseAccepted():
            if state.asked is not None:
                state.asked.response_id = event.response_id
        case ModelResponseReattached():
            if state.asked is not None:
                state.asked.reattached = True
        case ToolDispatched():
            call = state.calls[fact.call_id or ""]
            if call.dispatches == 0:  # let through by a person: this is its intent
                call.taken_up = True
                state.running += 1
                state.tool_calls += 1
                _expose(state, call)
            call.dispatches = event.attempt
            call.settled = True
        case MessageAdmitted():
            state.items.append(event.item)
            state.derived_from = lowest((event.authority_class, event.derived_from or event.authority_class))
            state.exposure = merged(state.exposure, begun(state.derived_from))
        case HistoryImported():
            # The message opens its turn and is stored first; in the conversation it comes after what it follows.
            state.items[-1:-1] = event.items
        case TurnStarted():
            _started(state, fact, event)
        case TurnConfigChanged():
            state.config = state.configs.get(event.config_ref.digest)
            state.limits = event.limits
        case TurnInterruptRequested():
            if state.stop is None or state.stop.interrupt_id is None:
                state.stop = Stop(
                    "cancelled",
                    "cancelled",
                    f"{event.requested_by} asked the turn to stop",
                    event.interrupt_id,
                    fact.at,
                )
        case TurnInterruptApplied():
            if state.stop is not None:
                state.stop.applied = True
        case LimitChanged():
            if state.stop is None:
                state.stop = Stop(
                    "incomplete",
                    event.limit_name,
                    f"the limit {event.limit_name}={event.limit:g} was reached",
                    applied=event.limit_name != "wall_clock",
                    requested_at=fact.at,
                )
        case AnswerAccepted():
            state.answer_checked = True
            state.answer_value = event
        case AnswerRejected():
            _rejected(state, event)
        case ContinuationDecided():
            state.go_on = event.go_on
            if event.go_on:
                state.phase = "ready"
        case TurnSuspended():
            state.phase = "suspended"
            state.suspended_for = event
            state.active_us += max(0, fact.at - state.stretch_from)
            state.stretch_from = fact.at
        case TurnResumed():
            _resumed(state, fact)
        case TurnCompleted() | TurnFailed():
            state.phase = "ended"
            state.terminal = event
        case UnknownResolved():
            _resolved_unknown(state, event)
        case ActionRequired() | RuntimeToolRequested():
            _asked_outside(state, fact, event)
        case ActionResolved() | RuntimeToolResolved():
            _said_outside(state, fact, event)
        case ApprovalRuleRevoked():
            state.revoked_rules.add(event.rule_id)
        case (
            SessionStarted()
            | ObserverFailed()
            | TranscriptPersistFailed()
            | TranscriptLockContended()
            | TranscriptLockReleaseFailed()
            | ToolDeclarationsRejected()
            | ToolMediationDisabled()
            | ToolMediationFailed()
            | CompletionBlocked()
            | TranscriptClosed()
            | ToolCatalogResolved()
            | RuntimeToolContinued()
            | ActionStaged()
            | ActionSettled()
            | ApprovalRuleAdded()
            | SandboxApplied()
            | SandboxViolation()
            | HookStarted()
            | HookCompleted()
            | HookFailed()
            | OutputSpilled()
            | OutputTruncated()
            | WarningIssued()
            | CompactionStarted()
            | CompactionCompleted()
            | CompactionFailed()
            | SubagentStarted()
            | SubagentCompleted()
            | SubagentFailed()
            | ScratchWritten()
            | PlanningStarted()
            | PlanningCompleted()
            | PlanningFailed()
            | TurnInterjected()
            | TurnPauseRequested()
            | TurnPauseLifted()
            | Unrecognised()
        ):
            pass
        case _:
            assert_never(event)
    if not event.outsider:
        state.worked_until = fact.at


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
    if state.phase == "suspended":
        state.suspended_for = None
        state.phase = "acting" if state.front < len(state.batch) else "ready"
    else:
        state.active_us += max(0, state.worked_until - state.stretch_from)
    state.stretch_from = fact.at
    for call in state.open_calls():
        if not call.dispatches and not call.is_waiting:
            call.taken_up = False  # nothing of it has begun: through the gate again


def _asked(state: TurnState, fact: Fact, event: ModelRequested) -> None:
    step = fact.step or 0
    _round_of(state, step)
    # A note may stand in the log before facts whose writer had not seen it. The request itself says what it took along,
    # so that the conversation is the same whoever folds it.
    taken = event.items - len(state.items)
    if taken > 0:
        state.items.extend(state.notes[:taken])
        del state.notes[:taken]
    state.phase = "asking"
    state.asked = Asked(step, event.candidate, event.attempt, event.model_ref, fact.at, event.backoff_ms)
    state.model_calls += 1
    state.go_on = None


def _round_of(state: TurnState, step: int) -> None:
    if step != state.step:
        state.step = step
        state.attempts.clear()


def _lost(state: TurnState, fact: Fact, event: ModelFailed) -> None:
    asked = state.asked
    if state.phase in ("ready", "lost"):
        # Turned down before anything was sent: there was no request, and none is counted.
        _round_of(state, fact.step or 0)
        state.asked = asked = Asked(state.step, event.candidate, event.attempt, event.model_ref, fact.at)
    if asked is None:
        return
    asked.failure = event
    state.phase = "lost"
    if event.stage == "crash":
        return  # our own death is none of the provider's attempts
    state.attempts.append(attempt_record(event, asked.backoff_ms))


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


def _recorded(state: TurnState, fact: Fact, event: AssistantRecorded) -> None:
    item = event.item
    state.items.append(item)
    state.asked = None
    state.attempts.clear()
    text = item.text
    if text:
        state.last_text = text
    state.final_text = text
    state.continuation = event.continuation
    state.batch = [
        Call(part, fact.step or 0, position, asked.malformed)
        for position, (part, asked) in enumerate(zip(item.calls, event.calls, strict=True))
    ]
    state.calls = {call.call_id: call for call in state.batch}
    state.front = 0
    state.running = 0
    state.answer_checked = False
    if state.batch:
        state.phase = "acting"
    else:
        _round_complete(state)


def _round_complete(state: TurnState) -> None:
    """Every call of the round is answered: what waited for that goes into the conversation."""
    goes_on = bool(state.batch or state.continuation)
    if state.continuation:
        state.items.extend(state.continuation)
        state.continuation = ()
    if state.stop_rule == "single" or state.completed_by in state.calls:
        state.phase = "answered"
    elif state.stop_rule == "caller":
        state.phase = "closing"
    else:
        state.phase = "ready" if goes_on else "answered"


def _heard(state: TurnState, fact: Fact, event: PermissionEvaluated) -> None:
    """Code outside the log may write other arguments, or declare the run complete."""
    call = state.calls.get(fact.call_id or "")
    for said in event.said:
        if said.arguments is not None and call is not None:
            call.rewritten = said.arguments
        if said.completes:
            state.completed_by = fact.call_id


def _started_call(state: TurnState, fact: Fact, event: ToolStarted) -> None:
    call = state.calls[fact.call_id or ""]
    call.taken_up = True
    call.effect = event.effect
    call.idempotency_key = event.idempotency_key
    call.started_at = fact.at
    if event.dispatched:
        call.alone = not event.is_concurrency_safe
        _expose(state, call)
        call.dispatches = 1
        state.running += 1
        state.tool_calls += 1


def _expose(state: TurnState, call: Call) -> None:
    """A call that is let through adds what its tool does to what the conversation has seen."""
    declaration = state.config.tool(call.part.name) if state.config is not None else None
    if declaration is not None:
        state.exposure = exposed(state.exposure, declaration.name, what_it_does(declaration))


def _asked_outside(state: TurnState, fact: Fact, event: ActionRequired | RuntimeToolRequested) -> None:
    call = state.calls[fact.call_id or ""]
    call.taken_up = True
    if call.dispatches:  # the tool itself has a question, and has done nothing: it begins anew with the answer
        call.dispatches = 0
        state.running -= 1
    call.rewritten = call.replaced
    if isinstance(event, ActionRequired):
        call.pending = Pending(event.action_id, event.expires_at, event, fact.at)
    else:
        # A client that is asked may do it: the request is the call's intent.
        call.pending = Pending(event.request_id, event.timeout_at, event, fact.at)
        state.tool_calls += 1
        _expose(state, call)


def _said_outside(state: TurnState, fact: Fact, event: ActionResolved | RuntimeToolResolved) -> None:
    """The call goes before the gate once more; what was said goes with it."""
    call = state.calls.get(fact.call_id or "")
    if call is None or call.pending is None or not call.is_waiting:
        return
    action_id = event.action_id if isinstance(event, ActionResolved) else event.request_id
    if action_id == call.pending.action_id:
        call.pending.said = event
        if isinstance(event, ActionResolved) and event.rule is not None:
            state.standing_rules.append(event.rule)
        call.taken_up = False


def _answered_call(state: TurnState, fact: Fact, answer: ToolItem) -> None:
    call = state.calls.get(fact.call_id or "")
    if call is None or call.answer is not None:
        return
    if call.dispatches:
        state.running -= 1
    call.answer = answer
    batch = state.batch
    front = state.front
    while front < len(batch) and (ready := batch[front].answer) is not None:
        state.items.append(ready)
        front += 1
    state.front = front
    if front == len(batch):
        _round_complete(state)


def _failed_call(state: TurnState, fact: Fact, event: ToolFailed) -> None:
    if event.asked_retry:
        state.retries_asked[event.tool_name] = state.retries_asked.get(event.tool_name, 0) + 1
    if event.effects == "unknown":
        state.unknown[fact.call_id or ""] = event.tool_name
    _answered_call(state, fact, event.item)


def _rejected(state: TurnState, event: AnswerRejected) -> None:
    state.answer_rejections += 1
    state.answer_checked = False
    if event.final:
        state.stop = Stop(
            "failed", "invalid_output", "; ".join(event.errors) or "the answer does not fit", applied=True
        )
        return
    state.items.append(event.item)
    state.phase = "ready"


def _resolved_unknown(state: TurnState, event: UnknownResolved) -> None:
    if state.unknown.pop(event.call_id, None) is None or state.phase == "ended":
        return
    if event.happened:
        outcome = f"it happened: {event.result}"
    else:
        outcome = f"it failed: {event.result}" if event.source == "late_answer" else "it did not happen"
    words = f"The outcome of call {event.call_id} ({event.tool_name}) is known now: {outcome}"
    note = UserItem(parts=(Text(words),), origin="runtime")
    state.notes.append(note)
