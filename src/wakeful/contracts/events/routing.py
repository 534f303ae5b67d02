"""Facts about which model is asked, and what asking it cost."""

from typing import ClassVar, Literal

from wakeful.contracts.events.base import STEP, Event, Need
from wakeful.contracts.models import FailureKind, ProviderLimit
from wakeful.contracts.values import Value


class LimitState(Value):
    """What is known of limits at a moment."""

    budget_limit: str | None = None
    budget_spent: str | None = None
    rate_limit: Literal["ok", "limited", "unknown"] = "unknown"
    retry_after_ms: int | None = None
    quota: Literal["ok", "low", "blocked", "unknown"] = "unknown"


class RoutingFallbackApplied(Event):
    """A candidate was given up, and the next one is asked."""

    kind: ClassVar[str] = "routing.fallback.applied"
    needs: ClassVar[tuple[Need, ...]] = STEP

    routing_id: str
    from_model_ref: str
    to_model_ref: str
    reason: FailureKind
    """The failure of the attempt that ended the candidate."""
    attempt: int
    """Which attempt that was."""
    fallback_chain: tuple[str, ...]
    """Models already tried in this round, oldest first."""
    limit_state: LimitState = LimitState()


class LimitFact(Event):
    """What a provider said about its limits when it refused a request for one."""

    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    attempt: int
    limit_name: str | None = None
    """The limit that was used up; None when the provider did not say which."""
    limit: float | None = None
    observed: float | None = None
    """How much of the limit is used."""
    retry_after_ms: int | None = None
    resets_at: str | None = None
    limits: tuple[ProviderLimit, ...] = ()
    """Every limit that the answer spoke of."""


class RateLimitHit(LimitFact):
    """A provider refused a request because there were too many."""

    kind: ClassVar[str] = "rate_limit.hit"


class QuotaBlocked(LimitFact):
    """A provider refused a request because the account has nothing left: waiting a little does not help."""

    kind: ClassVar[str] = "quota.blocked"


class CostEstimated(Event):
    """The most that a request to come can cost. Written where the price is known and the answer has a limit."""

    kind: ClassVar[str] = "cost.estimated"
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    amount: str
    """A decimal number."""
    currency: str = "USD"
    priced: bool = True
    price_list: str
    price_date: str | None = None
    input_tokens: int
    """Guessed from the length of the prompt: no tokenizer is asked."""
    output_tokens: int
    """As many as the request allows."""


class CostRecorded(Event):
    """What an attempt cost, by a price list."""

    kind: ClassVar[str] = "cost.recorded"
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    amount: str
    """A decimal number."""
    currency: str = "USD"
    priced: bool = True
    price_list: str
    """Which list, and its version: `settings` and `code` are prices of the owner's."""
    price_date: str | None = None
    """The day of the list, where it is known."""
    attempt: int = 1
    lost: bool = False
    """The attempt gave no answer, and had used tokens all the same."""
