"""How a turn comes to its end, decided again: limits, interrupts, answers that do not fit, the last fact."""

from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnswerAccepted,
    AnswerRejected,
    LimitChanged,
    TurnCompleted,
    TurnFailed,
    TurnInterruptApplied,
)
from wakeful.contracts.spending import WindowPassed
from wakeful.decisions.differences import Difference, compared, words
from wakeful.decisions.ledger import KEPT_FOR_ANSWER, UNPRICED
from wakeful.decisions.replay.redecision import Redecision
from wakeful.decisions.replay.requests import asks_for
from wakeful.decisions.spend_windows import window_words
from wakeful.decisions.step import Finish, HitLimit, TakeUp
from wakeful.decisions.turn_end import ending


def check_limit(now: Redecision, fact: Fact, event: LimitChanged) -> Difference | None:
    if event.limit_name in ("tokens", "cost", "subtasks", "bytes") and event.what != "history":
        return _weighed(now, fact, event)
    step = HitLimit(event.limit_name, event.limit, event.observed, event.what)
    difference = now.one_of(fact, step, lambda each: isinstance(each, TakeUp) and each.beyond == step)
    seconds = now.state.limits.seconds
    if difference is None or event.limit_name != "wall_clock" or seconds != event.limit:
        return difference
    stop = now.state.stop
    if stop is not None and (stop.interrupt_id is None or stop.is_overdue):
        return difference
    # The timer's own word: it watches what is under way, and needs no decision to speak.
    state = now.state
    worked = (state.time.active_us + max(0, fact.at - state.time.stretch_from)) / 1_000_000
    if worked < seconds:
        return Difference(words(step), f"{worked:g} s were used")
    return now.same(fact)


def _weighed(now: Redecision, fact: Fact, event: LimitChanged) -> Difference | None:
    """What a step would have taken is outside the log; that it would have been too much is not."""
    limits = now.state.limits
    if event.window is not None:
        return _passed_window(now, fact, event, event.window)
    if event.what == UNPRICED and event.limit_name == "cost" and event.limit == 0 and limits.usd is None:
        now.decided = []  # under a spend window, which is the owner's and outside the log
        return now.same(fact)
    allowed = {
        "tokens": (limits.tokens, limits.input_tokens, limits.output_tokens),
        "cost": (float(limits.usd) if limits.usd is not None else None, limits.unpriced_token_ceiling),
        "subtasks": (limits.subtasks,),
        "bytes": (limits.result_bytes, MAX_TOOL_RESULT_BYTES),
    }[event.limit_name]
    if event.limit not in allowed:
        return Difference(f"stop at {event.limit_name}={event.limit:g}", f"the limits are {allowed}")
    if event.observed <= event.limit and not event.what:
        return Difference(f"observed {event.observed:g}", f"not more than {event.limit:g}")
    if event.what == KEPT_FOR_ANSWER and fact.level in now.state.tree.levels:
        # Only its level ends: what was decided together with the request still follows.
        if now.find(lambda each: asks_for(each, fact)) is None:
            return Difference(f"ask in step {fact.step} of {fact.level}", now.would())
        now.unmade += 1
        return now.same(fact)
    now.decided = []
    return now.same(fact)


def _passed_window(now: Redecision, fact: Fact, event: LimitChanged, window: WindowPassed) -> Difference | None:
    """What others spent is outside the turn's log; that this was too much beside it is not."""
    if event.observed <= event.limit or event.limit != float(window.allowed):
        return Difference(f"rest: {window_words(window)}", f"{event.observed:g} of {event.limit:g} is no more")
    now.decided = []
    return now.same(fact)


def check_interrupt(now: Redecision, event: TurnInterruptApplied) -> Difference | None:
    stop = now.state.stop
    wanted = stop.told_as if stop is not None else "none"
    return None if event.interrupt_id == wanted else Difference(event.interrupt_id, wanted)


def check_patience(now: Redecision, event: AnswerAccepted | AnswerRejected) -> Difference | None:
    config = now.state.config
    if isinstance(event, AnswerAccepted) or config is None:
        return None
    final = now.state.answer.rejections >= config.output_retries
    return None if event.final == final else Difference(f"final={event.final}", f"final={final}")


def check_end(now: Redecision, fact: Fact, event: TurnCompleted | TurnFailed) -> Difference | None:
    now.see_all()  # a turn may not rest while there is something it has not seen
    step = now.find(
        lambda each: isinstance(each, Finish) and (each.status, each.reason) == (event.status, event.stop_reason)
    )
    if not isinstance(step, Finish):
        return Difference(words(Finish(event.status, event.stop_reason)), now.would())
    return compared(event, ending(now.state, step, fact.at)) or now.same(fact)
