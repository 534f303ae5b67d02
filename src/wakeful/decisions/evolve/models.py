"""What facts about requests to models do to their level: asked, answered, lost, and what was said."""

from decimal import Decimal

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AssistantRecorded,
    CostRecorded,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelWaiting,
)
from wakeful.contracts.models import ProviderAttemptRecord, TokenUsage
from wakeful.decisions.compaction import measured
from wakeful.decisions.evolve.calls import call_off
from wakeful.decisions.evolve.conversations import advise
from wakeful.decisions.evolve.rounds import round_complete
from wakeful.decisions.levels import Call, ChildRole, Level, OpenRequest
from wakeful.decisions.policy.provenance import Exposure, merged
from wakeful.decisions.retries import MAX_ATTEMPTS, CandidateLoss
from wakeful.decisions.state import TurnState

NEWEST_ATTEMPTS = 24
"""Lost attempts of a round that its timeline keeps from before a wait."""
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


def asked_model(state: TurnState, level: Level, fact: Fact, event: ModelRequested) -> None:
    step = fact.step or 0
    _round_of(level, step)
    # A note may stand in the log before facts whose writer had not seen it. The request itself says what it took along,
    # so that the conversation is the same whoever folds it.
    items, ahead = level.conversation.items, level.next_request
    last_words = event.final and not ahead.told_last
    taken = event.items - len(items) - last_words
    if taken > 0:
        items.extend(ahead.notes[:taken])
        del ahead.notes[:taken]
    if last_words:
        items.append(LAST_CALL)
        ahead.told_last = True
    if level.phase != "asking":
        state.tree.in_flight += 1
    level.phase = "asking"
    request = OpenRequest(step, event.candidate, event.attempt, event.model_ref, fact.at, event.backoff_ms)
    this = level.round
    this.request, this.go_on, this.asks_again = request, None, False
    state.ledger.hold(request, event)


def _round_of(level: Level, step: int) -> None:
    if step != level.step:
        level.step = step
        this = level.round
        this.attempts.clear()
        this.lost.clear()
        this.wait, this.told_wait, this.asks_again = None, None, False


def model_answered(state: TurnState, level: Level, event: ModelCompleted) -> None:
    level.model_usage.answers += 1
    level.answer.ended = event
    state.bill.paid += 1
    usage = level.model_usage.newest = event.token_usage
    if usage is not None:
        _count_usage(state, level, usage)
    state.ledger.answered(level.round.request, usage)


def _count_usage(state: TurnState, level: Level, usage: TokenUsage) -> None:
    own, total = level.model_usage, state.model_usage
    own.tokens, own.is_reported = own.tokens + usage, True
    if own is not total:
        total.tokens, total.is_reported = total.tokens + usage, True


def cost_recorded(state: TurnState, level: Level, event: CostRecorded) -> None:
    amount, asked = Decimal(event.amount), level.round.request
    state.bill.cost += amount
    was_counted = asked is not None and asked.failure is not None and asked.failure.token_usage is not None
    state.bill.priced += was_counted or not event.lost
    state.ledger.cost(asked, amount, lost=event.lost)


def attempt_lost(state: TurnState, level: Level, fact: Fact, event: ModelFailed) -> None:
    asked = level.round.request
    if level.phase in ("ready", "lost"):
        # Turned down before anything was sent: there was no request, and none is counted.
        _round_of(level, fact.step or 0)
        level.round.request = asked = OpenRequest(level.step, event.candidate, event.attempt, event.model_ref, fact.at)
    elif level.phase == "asking":
        state.tree.in_flight -= 1
    if asked is None:
        return
    state.ledger.lost(asked, event)
    state.bill.lost += 1
    if event.token_usage is not None:
        state.bill.paid += 1
        _count_usage(state, level, event.token_usage)
    asked.failure = event
    level.round.asks_again = False
    level.phase = "lost"
    if event.stage == "crash":
        return  # our own death is none of the provider's attempts
    level.round.lost[event.candidate] = CandidateLoss(event, fact.at)
    level.round.attempts.append(_attempt_record(event, asked.backoff_ms))


def wait_began(level: Level, event: ModelWaiting) -> None:
    level.phase = "waiting"
    level.round.wait = event
    if event.told:
        level.round.told_wait = event
    del level.round.attempts[:-NEWEST_ATTEMPTS]  # an outage may be long


def wait_ended(state: TurnState, level: Level) -> None:
    """The chain is tried again."""
    if level.phase == "waiting":
        level.phase, level.round.asks_again = "lost", True
        state.tree.touched(level)


def _attempt_record(event: ModelFailed, backoff_ms: int = 0) -> ProviderAttemptRecord:
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


def reply_recorded(state: TurnState, level: Level, fact: Fact, event: AssistantRecorded) -> None:
    item, tree, this = event.item, state.tree, level.round
    level.conversation.items.append(item)
    if item.server_tools:
        state.thread.exposure = merged(state.thread.exposure, Exposure(untrusted=item.server_tools[0]))
    if level.phase == "asking":
        tree.in_flight -= 1
    state.ledger.recorded(this.request)
    this.request = None
    this.attempts.clear()
    answer, text = level.answer, item.text
    if text:
        answer.last_text = text
    answer.final_text = text
    answer.is_checked = False
    window = level.config.context_window if level.config is not None else None
    if window is not None or state.limits.history_tokens is not None:
        measured(level, level.model_usage.newest)  # nobody asks how long it is where nothing is held to it
    advise(level)
    this.continuation = event.continuation
    for call in this.batch:
        tree.calls.pop(call.call_id, None)
    batch = this.batch = [
        Call(part, fact.step or 0, position, level)
        for position, (part, asked) in enumerate(zip(item.calls, event.calls, strict=True))
    ]
    for call in batch:
        tree.calls[call.call_id] = call
    this.front = this.running = 0
    this.untaken = len(batch)
    this.calls_off = False
    if isinstance(level.role, ChildRole) and level.role.called_off:
        for call in batch:
            call_off(state, call)
    if batch:
        level.phase = "acting"
        level.scratchpad.at_round = dict(level.scratchpad.visible)
    else:
        round_complete(state, level)
