"""Models as values: usage, replies, glimpses of a reply, and what can go wrong with an attempt."""

from typing import Any, Literal, TypeAlias

from wakeful.contracts.conversation import AssistantItem, Item
from wakeful.contracts.values import Value

FailureKind: TypeAlias = Literal[
    "timeout",
    "connection",
    "rate_limited",
    "overloaded",
    "server_error",
    "empty_response",
    "stream_interrupted",
    "auth_error",
    "quota_exhausted",
    "contract_error",
    "context_length_exceeded",
    "content_filtered",
    "invalid_response",
    "unsupported_transport",
    "cancelled",
    "unknown",
]
Stage: TypeAlias = Literal["connect", "send", "headers", "body", "decode", "crash"]
"""Where an attempt was lost; `crash` is our own process dying while it waited."""
Disposition: TypeAlias = Literal["retry", "fallback", "abort"]
StopReason: TypeAlias = Literal["end", "tool_calls", "length", "refusal", "content_filter", "pause", "other"]

RETRYABLE: frozenset[FailureKind] = frozenset(
    {
        "timeout",
        "connection",
        "rate_limited",
        "overloaded",
        "server_error",
        "empty_response",
        "stream_interrupted",
    }
)


MOST_TOKENS = 10**12
"""No request has more: a larger number is none of tokens, and many of these still add up to what a store can hold."""


class TokenUsage(Value):
    """Tokens as a provider reported them. A provider that reports nothing leaves zeros; nothing fails for it."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    audio_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage.model_construct(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            audio_tokens=self.audio_tokens + other.audio_tokens,
        )


class AgentTokenUsageSummary(Value):
    """The tokens that an agent has used since it was made, kept in its row and never recomputed."""

    total: TokenUsage = TokenUsage()
    total_model_rounds: int = 0
    last_turn: TokenUsage | None = None
    """The most recent completed turn that reported token data."""


class ProviderLimit(Value):
    """One limit of a provider, as the headers of an answer told it. A value that they did not give is None."""

    name: str
    """The counted unit, in the provider's own word: requests, tokens, input-tokens."""
    limit: float | None = None
    remaining: float | None = None
    resets_at: str | None = None


class Reply(Value):
    """The end of one attempt: what the model said, whole. Nothing before it is believed."""

    item: AssistantItem
    stop_reason: StopReason = "end"
    finish_reason: str | None = None
    """The same in the provider's own word."""
    usage: TokenUsage | None = None
    """None when the provider reported none."""
    request_metadata: dict[str, Any] = {}
    """The provider's request id and the like, kept for replay."""
    continuation: tuple[Item, ...] = ()
    """Items that follow this round's results; a reply that has some is not the last."""
    limits: tuple[ProviderLimit, ...] = ()
    """The rate limits that the provider reported with the answer."""
    may_be_empty: bool = False
    """True when an empty reply is meant; otherwise it is a lost attempt."""


class TextDelta(Value):
    """A glimpse: words as they come."""

    type: Literal["text"] = "text"
    text: str


class ReasoningDelta(Value):
    """A glimpse: reasoning as it comes."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class ArgumentsDelta(Value):
    """A glimpse: a call's arguments as they come."""

    type: Literal["arguments"] = "arguments"
    call_id: str
    name: str
    text: str


ModelGlimpse: TypeAlias = TextDelta | ReasoningDelta | ArgumentsDelta


class HttpClientDiagnostics(Value):
    """The HTTP client's own details of an error."""

    is_timeout: bool = False
    is_connect: bool = False
    is_request: bool = False
    is_body: bool = False
    is_decode: bool = False
    is_redirect: bool = False
    status: int | None = None


class TransportDiagnostics(Value):
    """Enough to tell timeout, connect and body failures apart later; never part of an operator's summary."""

    stage: str
    provider: str | None = None
    model_ref: str | None = None
    url: str | None = None
    status: int | None = None
    is_absent: bool = False
    """Nothing listens at that address of this machine, or no host has that name."""
    http_client: HttpClientDiagnostics | None = None
    source_chain: tuple[str, ...] | None = None


class ProviderAttemptRecord(Value):
    """One request attempt."""

    provider: str
    model_ref: str
    attempt: int
    max_attempts: int
    started_at: str | None = None
    completed_at: str | None = None
    duration_ms: int | None = None
    failure_kind: FailureKind | None = None
    disposition: Disposition | None = None
    outcome: Literal["retrying", "retries_exhausted", "fail_fast_aborted", "succeeded"]
    advanced_to_fallback: bool = False
    backoff_ms: int | None = None
    token_usage: TokenUsage | None = None
    transport_diagnostics: TransportDiagnostics | None = None


class ProviderAttemptTimeline(Value):
    """All attempts of one round, in order."""

    attempts: tuple[ProviderAttemptRecord, ...]
    requested_model_ref: str
    active_model_ref: str | None = None
    winning_model_ref: str | None = None
    aggregated_token_usage: TokenUsage | None = None


def spelled_reference(model: str) -> str:
    """`provider/model` and `provider:model` name the same one; the spelling with a colon."""
    return model if ":" in model else model.replace("/", ":", 1)
