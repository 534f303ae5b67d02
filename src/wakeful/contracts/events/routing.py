"""Facts about which model is asked, and what asking it cost."""

from typing import ClassVar, Literal, TypeAlias

from wakeful.contracts.events.base import STEP, TURN, Event, Need
from wakeful.contracts.models import FailureKind, ProviderLimit
from wakeful.contracts.values import Value

ExclusionReason: TypeAlias = Literal[
    "capability_gap",
    "no_credential",
    "quota_blocked",
    "rate_limited",
    "over_budget",
    "policy_denied",
    "unsupported_transport",
    "unpriced",
    "offline",
]
RoutingMode: TypeAlias = Literal["explicit", "default", "policy", "fallback", "single_candidate"]


class LimitState(Value):
    """What is known of limits at a moment."""

    budget_limit: str | None = None
    budget_spent: str | None = None
    rate_limit: Literal["ok", "limited", "unknown"] = "unknown"
    retry_after_ms: int | None = None
    quota: Literal["ok", "low", "blocked", "unknown"] = "unknown"


class ModelCandidate(Value):
    """A model that can be asked for what the turn needs."""

    model_ref: str
    """`provider:model`."""
    capabilities: tuple[str, ...] = ()
    """What it is declared to do: tools, parallel_tool_calls, vision, files, structured_output, streaming, ..."""
    declared: bool = True
    """False: nobody has said what it can do (a model of the host's own), and it is asked for whatever is needed."""
    context_window: int | None = None
    price_known: bool
    limit_state: Literal["ok", "low", "limited", "blocked", "unknown"] = "unknown"


class ExcludedModel(Value):
    """A model of the chain that is not asked in this turn, and why."""

    model_ref: str
    reason: ExclusionReason
    detail: str = ""
    """In words: what is missing, or until when."""


class RoutingCandidatesResolved(Event):
    """Which of the models that were asked for can be used for this turn, and which cannot."""

    kind: ClassVar[str] = "routing.candidates.resolved"
    needs: ClassVar[tuple[Need, ...]] = TURN

    routing_id: str
    requested_provider: str | None = None
    requested_model: str | None = None
    required_capabilities: tuple[str, ...]
    candidates: tuple[ModelCandidate, ...]
    """In the order in which they are tried."""
    excluded: tuple[ExcludedModel, ...] = ()


class RoutingDecision(Event):
    """Which model is asked, which follow when it fails, and why."""

    needs: ClassVar[tuple[Need, ...]] = TURN

    routing_id: str
    mode: RoutingMode
    decision_source: Literal["user", "agent_config", "host_policy", "runtime"]
    decision_reason: str
    requested_provider: str | None = None
    requested_model: str | None = None
    selected_model_ref: str
    candidate_count: int
    fallback_chain: tuple[str, ...] = ()
    """Models to be tried next, in order."""
    required_capabilities: tuple[str, ...] = ()
    capability_gap: tuple[str, ...] = ()
    """What the turn needs and some model of the chain lacks: only with the caller's word for it."""
    requires_user_override: bool = False
    """True: there is such a gap, and the caller said beforehand that it is accepted."""
    limit_state: LimitState = LimitState()


class RoutingDecided(RoutingDecision):
    """The turn's model is decided, before it is asked."""

    kind: ClassVar[str] = "routing.decided"


class RoutingSingleCandidate(RoutingDecision):
    """There is exactly one candidate: a normal path, said before the decision."""

    kind: ClassVar[str] = "routing.single_candidate"


class RoutingNotPossible(Event):
    """No model can be asked for this turn. None is, and the turn ends with this reason."""

    kind: ClassVar[str] = "routing.not_possible"
    needs: ClassVar[tuple[Need, ...]] = TURN

    routing_id: str
    required_capabilities: tuple[str, ...]
    excluded: tuple[ExcludedModel, ...]
    decision_reason: str
    limit_state: LimitState = LimitState()


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
    """What a provider said about its limits."""

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


class QuotaLow(LimitFact):
    """A provider answered, and said that little is left of a limit."""

    kind: ClassVar[str] = "quota.low"


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
    """Which list, and its version: `settings` and `code` are prices of the owner's, `free` is a script's."""
    price_date: str | None = None
    """The day of the list, where it is known."""
    attempt: int = 1
    lost: bool = False
    """The attempt gave no answer, and had used tokens all the same."""
