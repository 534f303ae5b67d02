"""Requests to a model, decided again: which is made, which attempt is lost, and what follows from that."""

from dataclasses import replace

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ModelFailed, ModelRequested, ModelWaiting
from wakeful.contracts.models import spelled_reference
from wakeful.decisions.differences import Difference, compared, words
from wakeful.decisions.levels import payload_schema
from wakeful.decisions.provider_waits import wait_fact
from wakeful.decisions.replay.redecision import Redecision
from wakeful.decisions.retries import NO_BACKOFF, dispose
from wakeful.decisions.step import AskModel, Step, WaitForProvider


def asks_for(step: Step, fact: Fact) -> bool:
    """Is the step the request that the fact is about?"""
    return isinstance(step, AskModel) and (step.level, step.step) == (fact.level, fact.step)


def check_request(now: Redecision, fact: Fact, event: ModelRequested) -> Difference | None:
    wanted = AskModel(fact.step or 0, event.candidate, event.attempt, level=fact.level, final=event.final)

    def is_it(step: Step) -> bool:
        if not isinstance(step, AskModel):
            return False
        # What the next request would cost is outside the log: the money may be enough for one more.
        final = step.final or (event.final and fact.level is None and _keeps_money(now))
        if replace(step, backoff=NO_BACKOFF, final=final) != wanted:
            return False
        return _shown(now, wanted) == event.items

    step = now.find(is_it)
    if not isinstance(step, AskModel):
        said = f"{words(wanted)}, on {event.items} items"
        return Difference(said, f"{now.would()}, on {_shown(now, wanted)} items")
    longest = step.backoff
    if event.backoff_ms > longest.ms or (not longest.jitter and event.backoff_ms != longest.ms):
        return Difference(f"wait {event.backoff_ms} ms", f"wait {'up to ' if longest.jitter else ''}{longest.ms} ms")
    ref = now.state.model_at(event.candidate, now.level(fact.level))
    if ref is not None and spelled_reference(ref) != spelled_reference(event.model_ref):
        return Difference(f"ask {event.model_ref}", f"ask {ref}")
    return now.same(fact)


def _keeps_money(now: Redecision) -> bool:
    return now.state.limits.usd is not None and now.state.limits.final_answer_reserve


def _shown(now: Redecision, step: AskModel) -> int:
    """How many items the next request shows the model: a request takes along the notes there are."""
    level = now.level(step.level)
    return (
        len(level.conversation.items)
        + len(level.next_request.notes)
        + (step.final and not level.next_request.told_last)
    )


def check_loss(now: Redecision, fact: Fact, event: ModelFailed) -> Difference | None:
    """What follows from a lost attempt is decided with it; only the provider knew whether it may be tried again."""
    level = now.level(fact.level)
    if level.phase != "asking":
        return _turned_down(now, fact, event)
    asked = level.round.request
    now.unmade = 0
    if event.stage == "crash":
        now.decided = []
        if asked is not None and asked.reattached and event.disposition == "retry":
            return now.same(fact)  # the provider did not have the answer any more
        return Difference("lost in a crash", "nothing was taken up again here")
    more = now.state.has_model_after(event.candidate, level)
    allowed = {
        dispose(
            event.failure_kind,
            retryable=retryable,
            attempt=event.attempt,
            retry_after_ms=event.retry_after_ms,
            more_candidates=more,
            has_waited=level.round.wait is not None,
        )
        for retryable in (None, True, False)
    }
    now.decided = []
    if event.disposition not in allowed:
        return Difference(f"{event.failure_kind}: {event.disposition}", " or ".join(sorted(allowed)))
    return now.same(fact)


def check_wait(now: Redecision, fact: Fact, event: ModelWaiting) -> Difference | None:
    """That it waits, and how long at most and at least; the rest of the time is drawn."""

    def is_it(step: Step) -> bool:
        return isinstance(step, WaitForProvider) and (step.level, step.step) == (fact.level, fact.step)

    step = now.find(is_it)
    if not isinstance(step, WaitForProvider):
        return Difference(f"wait for {event.model_ref}", now.would())
    if not step.wait.first <= event.next_try <= step.wait.last:
        return Difference(f"wait until {event.next_try}", f"until a time from {step.wait.first} to {step.wait.last}")
    return compared(event, wait_fact(now.state, step, event.next_try)) or now.same(fact)


def _turned_down(now: Redecision, fact: Fact, event: ModelFailed) -> Difference | None:
    """No request: the model said beforehand that it cannot be asked for this, or it cannot end such a level."""
    wanted = AskModel(fact.step or 0, event.candidate, event.attempt, level=fact.level)
    step = now.find(
        lambda each: isinstance(each, AskModel) and replace(each, backoff=NO_BACKOFF, final=False) == wanted
    )
    if step is None:
        return Difference(words(wanted), now.would())
    now.unmade += 1
    level = now.level(fact.level)
    disposition = "fallback" if now.state.has_model_after(event.candidate, level) else "abort"
    kinds = ("unsupported_transport", *(("contract_error",) if payload_schema(level) is not None else ()))
    if event.failure_kind not in kinds or event.disposition != disposition:
        return Difference(f"{event.failure_kind}: {event.disposition}", f"{' or '.join(kinds)}: {disposition}")
    return now.same(fact)
