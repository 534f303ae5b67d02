"""What a lost attempt says about a provider's limits, as a fact beside it.

Written for an attempt that was refused for a limit, and for nothing else: an answered request adds no fact.
"""

from collections.abc import Sequence

from wakeful.contracts.events import ModelFailed, QuotaBlocked, RateLimitHit
from wakeful.contracts.models import ProviderLimit


def limit_fact(lost: ModelFailed, limits: Sequence[ProviderLimit]) -> RateLimitHit | QuotaBlocked | None:
    """The fact beside this failure; None when no limit was the reason."""
    if lost.failure_kind not in ("rate_limited", "quota_exhausted"):
        return None
    hit = _used_up(limits)
    used = hit.limit - hit.remaining if hit and hit.limit is not None and hit.remaining is not None else None
    kind = RateLimitHit if lost.failure_kind == "rate_limited" else QuotaBlocked
    return kind(
        model_ref=lost.model_ref,
        attempt=lost.attempt,
        limit_name=hit.name if hit else None,
        limit=hit.limit if hit else None,
        observed=used,
        retry_after_ms=lost.retry_after_ms,
        resets_at=hit.resets_at if hit else None,
        limits=tuple(limits),
    )


def _used_up(limits: Sequence[ProviderLimit]) -> ProviderLimit | None:
    """The limit with nothing left. Where none is at zero the provider counts in a way that its headers do not show."""
    return next((limit for limit in limits if limit.remaining == 0), None)
