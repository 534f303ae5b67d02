"""The transcript: a turn as a reader goes through it, one entry for each thing that was said, done or lost.

An entry holds previews and structured errors, never a call's arguments. It is a view of the log.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from wakeful.contracts.events import CallAsked, StopCause
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import ProviderAttemptTimeline, StopReason, TokenUsage
from wakeful.contracts.tools import ToolError, ToolResultMetadata
from wakeful.contracts.values import Value


class _Entry(Value):
    event_seq: int
    """The fact this entry stands for."""
    created_at: str
    turn_id: str
    step: int | None = None


class UserMessageData(Value):
    text: str
    origin: Literal["person", "runtime"]
    """`runtime` is a note of the runtime to the model, such as why an answer was refused."""


class UserMessage(_Entry):
    """Input to the model."""

    kind: Literal["user_message"] = "user_message"
    data: UserMessageData


class AssistantRoundData(Value):
    text: str
    """Its beginning, when the reply was too large to stand in the log."""
    calls: tuple[CallAsked, ...] = ()
    model_ref: str | None = None
    stop_reason: StopReason | None = None
    token_usage: TokenUsage | None = None
    provider_attempt_timeline: ProviderAttemptTimeline | None = None
    """Every attempt of the round."""


class AssistantRound(_Entry):
    """One answered round. The token counts stand here and again in `data.token_usage`; None is not reported."""

    kind: Literal["assistant_round"] = "assistant_round"
    input_tokens: int | None = None
    output_tokens: int | None = None
    data: AssistantRoundData


class ToolOutcomeData(Value):
    tool_call_id: str
    tool_name: str
    status: str
    preview: str
    error: ToolError | None = None
    """The structured error, as the model's receipt was made from it."""
    metadata: ToolResultMetadata


class ToolOutcome(_Entry):
    """The one result of one call."""

    kind: Literal["tool_result"] = "tool_result"
    data: ToolOutcomeData


class RuntimeFailureData(Value):
    message: str
    stop_reason: StopCause
    failure_artifact: FailureArtifact | None = None
    token_usage: TokenUsage | None = None
    """What the lost attempts of the last round used, as far as their provider said; None when it said nothing."""
    provider_attempt_timeline: ProviderAttemptTimeline | None = None
    """Every attempt of the round that was lost, when a provider lost it."""


class RuntimeFailure(_Entry):
    """The turn was lost to a failure."""

    kind: Literal["runtime_failure"] = "runtime_failure"
    data: RuntimeFailureData


TranscriptEntry: TypeAlias = Annotated[
    UserMessage | AssistantRound | ToolOutcome | RuntimeFailure, Field(discriminator="kind")
]
TRANSCRIPT_ENTRY: TypeAdapter[UserMessage | AssistantRound | ToolOutcome | RuntimeFailure] = TypeAdapter(
    TranscriptEntry, config={"defer_build": True}
)
