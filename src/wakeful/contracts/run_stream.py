"""The run stream: what somebody who watches one run is shown, in the order of its steps.

It is a view of the log and never a second source of truth. An event that stands for a stored fact carries that fact's
`event_seq`; `text` that was shown while it came does not, and is void when its attempt is lost.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from wakeful.contracts.models import FailureKind, TokenUsage
from wakeful.contracts.tools import ToolResultMetadata
from wakeful.contracts.values import Value

RunStatus: TypeAlias = Literal["starting", "suspended", "completed", "incomplete", "failed", "cancelled"]
TERMINAL: frozenset[RunStatus] = frozenset({"completed", "incomplete", "failed", "cancelled"})


class _RunEvent(Value):
    event_seq: int | None = None
    """Place of the fact in the agent's stream; None for a glimpse and for what only marks an order."""


class StatusEvent(_RunEvent):
    """Where the run stands: the first event and the last."""

    type: Literal["status"] = "status"
    status: RunStatus
    turn_id: str | None = None
    stop_reason: str | None = None
    retryable: bool | None = None
    message: str = ""
    waiting_for: tuple[str, ...] = ()
    """When suspended: what the turn waits for."""

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class StepEvent(_RunEvent):
    """A round of the model and its calls began or is over."""

    type: Literal["step"] = "step"
    step: int
    phase: Literal["started", "completed"]


class TextEvent(_RunEvent):
    """Words of the model."""

    type: Literal["text"] = "text"
    step: int
    attempt: int
    """Counts the requests of this step from 1, over retries and fallbacks."""
    text: str


class UsageEvent(_RunEvent):
    """What the round used, as its provider reported it; zeros when it reported nothing."""

    type: Literal["usage"] = "usage"
    step: int
    model_ref: str
    usage: TokenUsage


class ToolCallEvent(_RunEvent):
    """A call was taken up."""

    type: Literal["tool_call"] = "tool_call"
    step: int
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any] | None = None
    """Redacted; None when they are behind a reference or the call never started."""


class McpProgressEvent(_RunEvent):
    """A note of a running call."""

    type: Literal["mcp_progress"] = "mcp_progress"
    step: int
    agent_name: str
    tool_call_id: str
    tool_name: str
    progress: float
    total: float | None = None
    message: str | None = None


class ToolResultEvent(_RunEvent):
    """How a call ended. `metadata` is the fact's own, value for value; the flat fields say the same."""

    type: Literal["tool_result"] = "tool_result"
    step: int
    tool_call_id: str
    tool_name: str
    success: bool
    error: str | None
    duration_ms: float
    preview: str = ""
    metadata: ToolResultMetadata


class ErrorEvent(_RunEvent):
    """An attempt at the model is lost: `text` events of the same step and attempt are void."""

    type: Literal["error"] = "error"
    step: int
    attempt: int
    model_ref: str
    failure_kind: FailureKind
    message: str
    retryable: bool
    """The round goes on with another attempt or another model."""


RunEvent: TypeAlias = Annotated[
    StatusEvent | StepEvent | TextEvent | UsageEvent | ToolCallEvent | McpProgressEvent | ToolResultEvent | ErrorEvent,
    Field(discriminator="type"),
]
RUN_EVENT: TypeAdapter[
    StatusEvent | StepEvent | TextEvent | UsageEvent | ToolCallEvent | McpProgressEvent | ToolResultEvent | ErrorEvent
] = TypeAdapter(RunEvent, config={"defer_build": True})
