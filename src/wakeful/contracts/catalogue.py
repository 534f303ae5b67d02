"""Providers and models as people ask about them: what is there, what it can do, what it costs, what is missing.

Nothing here holds a key or a header: of a key there is the name of its variable, of an address what may be shown.
"""

from typing import Literal, TypeAlias

from wakeful.contracts.models import FailureKind, Stage, StopReason, TokenUsage
from wakeful.contracts.values import Value

KeyState: TypeAlias = Literal["found", "missing", "not_needed"]
ProviderStatus: TypeAlias = Literal["available", "unavailable", "misconfigured"]


class RetryPolicy(Value):
    """What is done about lost attempts: quick ones, then the next candidate, then the request waits."""

    max_attempts: int
    """Quick ones on one candidate, the first included."""
    first_backoff_ms: int
    """Doubles with every further attempt; the wait is drawn from below it."""
    longest_backoff_ms: int
    """Between two tries while a request waits."""
    longest_retry_after_ms: int
    """A provider's own wish is honoured up to here."""
    retried: tuple[FailureKind, ...]
    """These get quick attempts; every other failure ends the candidate at once."""


class ProviderState(Value):
    """A provider, and whether anything is missing to use it."""

    name: str
    status: ProviderStatus
    """`available`: nothing is missing here; whether it answers, only a call can tell."""
    note: str = ""
    """What is missing or wrong, and what to do about it."""
    transport: str = ""
    endpoint: str = ""
    """Its address, without anything secret."""
    endpoint_source: str = ""
    """Where the address comes from."""
    api_version: str | None = None
    key: KeyState = "not_needed"
    key_variable: str | None = None
    """Where the key was found, or would be looked for first. Never the key."""
    retry: RetryPolicy


class Capabilities(Value):
    """What a model can do."""

    tools: bool
    parallel_tool_calls: bool
    forced_tool_choice: bool
    images: bool
    files: bool
    audio: bool
    video: bool = False
    structured_output: bool
    schema_beside_tools: bool = True
    """Can be held to a schema while it has tools."""
    reasoning: bool
    think_tags: bool = False
    effort: bool = False
    """Is told how hard to think in a word."""
    efforts: tuple[str, ...] = ()
    """The words for it that it knows."""
    thinking_off: bool = False
    """Can be told not to think."""
    sampling: tuple[str, ...]
    context_window: int | None = None
    """Tokens; None is not known."""
    max_output: int | None = None
    prompt: tuple[str, ...]


class ListPrice(Value):
    """Decimal amounts for a million tokens, by the provider's list of that day."""

    currency: str = "USD"
    input: str
    output: str
    cached_input: str | None = None
    """None: as other input."""
    cache_write: str | None = None
    """None: nothing extra."""
    long_from: int | None = None
    """Above so many input tokens the whole request costs `long_input` and `long_output`."""
    long_input: str | None = None
    long_output: str | None = None
    price_list: str
    """Which list: a package and its version, `settings` or `code`."""
    as_of: str | None = None
    """The day of the list, where it is known."""


class ModelState(Value):
    """A model as far as it is known here."""

    ref: str
    """`provider:model`."""
    provider: str
    declared: bool
    """False: nobody has described it, and it gets a safe profile."""
    capabilities: Capabilities | None = None
    """None: what it can do is not a question of tables."""
    price: ListPrice | None = None
    """None: not known, which is not the same as nothing."""


class Catalogue(Value):
    """Everything `wakeful models list` knows."""

    settings_file: str
    """The owner's file, whether it is there or not."""
    price_list: str
    """The list that prices are from, where the owner's file has none."""
    prices_as_of: str | None
    """Its day, where it is known."""
    providers: tuple[ProviderState, ...]
    models: tuple[ModelState, ...]


class ModelPage(Value):
    """Everything `wakeful models show` knows about one model."""

    model: ModelState
    provider: ProviderState
    near: tuple[str, ...] = ()
    """Models with a similar name, when no table lists this one."""


class ModelProbe(Value):
    """One tiny live call, and what came of it."""

    model_ref: str
    ok: bool
    duration_ms: float
    said: str = ""
    stop_reason: StopReason | None = None
    usage: TokenUsage | None = None
    cost: str | None = None
    """None: the price is not known, or no tokens were reported."""
    currency: str | None = None
    price_list: str | None = None
    price_date: str | None = None
    request_id: str | None = None
    failure_kind: FailureKind | None = None
    stage: Stage | None = None
    http_status: int | None = None
    retry_after: float | None = None
    """Seconds, when the provider said so."""
    message: str = ""
    """What went wrong, in words."""
    advice: str = ""
    """What to do about it."""
