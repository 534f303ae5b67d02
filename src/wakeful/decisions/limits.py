"""What answers and lost attempts say about a provider's limits, as facts beside them; and what those facts still mean.

An attempt that was refused for a limit has its fact. An answer has one only when little is left of a limit: an account
that is well supplied adds nothing to the log, and one that stays low is told of once (`engine.low_limits`). What a
provider said is believed until the time it named, or, of a refusal, until the model has answered; without a time it
says nothing about later turns. Neither does a time that was counted from a clock which has been set back since.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import ModelCompleted, ModelFailed, QuotaBlocked, QuotaLow, RateLimitHit
from wakeful.contracts.models import ProviderLimit
from wakeful.decisions.retries import LONGEST_ASKED_MS
from wakeful.decisions.routing import KnownLimit

LOW = 0.1
"""Less than this part of a limit is little."""


def limit_fact(lost: ModelFailed, limits: Sequence[ProviderLimit]) -> RateLimitHit | QuotaBlocked | None:
    """The fact beside this failure; None when no limit was the reason."""
    if lost.failure_kind not in ("rate_limited", "quota_exhausted"):
        return None
    hit = _used_up(limits)
    kind = RateLimitHit if lost.failure_kind == "rate_limited" else QuotaBlocked
    return kind(
        model_ref=lost.model_ref,
        attempt=lost.attempt,
        limit_name=hit.name if hit else None,
        limit=hit.limit if hit else None,
        observed=_used(hit) if hit else None,
        retry_after_ms=lost.retry_after_ms,
        resets_at=hit.resets_at if hit else None,
        limits=tuple(limits),
    )


def quota_low(model_ref: str, attempt: int, limits: Sequence[ProviderLimit]) -> QuotaLow | None:
    """The fact beside an answer: the limit of which the least is left, when that is little. None: all is well."""
    shares = [
        (each.remaining / each.limit, place)
        for place, each in enumerate(limits)
        if each.limit and each.remaining is not None
    ]
    if not shares or min(shares)[0] >= LOW:
        return None
    least = limits[min(shares)[1]]
    return QuotaLow(
        model_ref=model_ref,
        attempt=attempt,
        limit_name=least.name,
        limit=least.limit,
        observed=_used(least),
        resets_at=least.resets_at,
        limits=tuple(limits),
    )


def known_limits(facts: Iterable[StoredFact], now_ms: int) -> dict[str, KnownLimit]:
    """What still holds of what providers said, by model. Facts in the order of the log."""
    known: dict[str, KnownLimit] = {}
    for _, _, fact in facts:
        match fact.event:
            case RateLimitHit() | QuotaBlocked() | QuotaLow() if fact.at // 1000 > now_ms:
                continue  # its clock was ahead and was set back: it would hold for longer than the provider asked
            case RateLimitHit() as event:
                state = KnownLimit("limited", until_ms(event, fact.at))
            case QuotaBlocked() as event:
                state = KnownLimit("blocked", until_ms(event, fact.at))
            case QuotaLow() as event:
                state = KnownLimit("low", until_ms(event, fact.at))
            case ModelCompleted() as event:
                if (before := known.get(event.model_ref)) is not None and before.state != "low":
                    del known[event.model_ref]  # it has answered since; that little is left is told once
                continue
            case _:
                continue
        known[event.model_ref] = state
    return {ref: limit for ref, limit in known.items() if limit.until_ms > now_ms}


def until_ms(event: RateLimitHit | QuotaBlocked | QuotaLow, at: int) -> int:
    """The moment it named, in milliseconds; the moment of the fact when it named none."""
    until = at // 1000 + (event.retry_after_ms or 0)
    return max(until, _moment(event.resets_at) or 0)


def asked_for(failure: ModelFailure, now: int) -> int | None:
    """Milliseconds for which a provider asks to be left alone: by `Retry-After`, or until its limit is reset."""
    if failure.retry_after is not None:
        return round(min(failure.retry_after, LONGEST_ASKED_MS / 1000) * 1000)
    hit = _used_up(failure.limits)
    if failure.kind != "rate_limited" or hit is None or (reset := _moment(hit.resets_at)) is None:
        return None
    return max(0, reset - now // 1000)


def _moment(text: str | None) -> int | None:
    """Unix milliseconds; a time that cannot be read is none."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000) if text else None
    except ValueError:
        return None


def _used(limit: ProviderLimit) -> float | None:
    return limit.limit - limit.remaining if limit.limit is not None and limit.remaining is not None else None


def _used_up(limits: Sequence[ProviderLimit]) -> ProviderLimit | None:
    """The limit with nothing left. Where none is at zero the provider counts in a way that its headers do not show."""
    return next((limit for limit in limits if limit.remaining == 0), None)
