"""The run stream: what somebody who watches one run is shown, in the order of its steps.

It is a view of the log and never a second source of truth. An event that stands for a stored fact carries that fact's
`event_seq`; `text` that was shown while it came does not, and is void when its attempt is lost.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from wakeful.contracts.models import FailureKind, TokenUsage
from wakeful.contracts.tools import ToolResultMetadata
from wakeful.contracts.values import Value

RunStatus: TypeAlias = Literal["starting", "suspended", "completed", "incomplete", "failed", "cancelled"]
SubtaskStatus: TypeAlias = Literal["started", "completed", "failed"]
TERMINAL: frozenset[RunStatus] = frozenset({"completed", "incomplete", "failed", "cancelled"})


class _RunEvent(Value):
    event_seq: int | None = None
    """Place of the fact in the agent's stream; None for a glimpse and for what only marks an order."""
    phase: Literal["executor", "planner"] = "executor"
    """The phase of the round: the planner counts its own from 1, before the executor's first."""
    path: tuple[str, ...] = ()
    """The level it is about: empty for the run itself, else the ids of the levels from the run's own subtask down."""


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
    reason: str | None = None
    """When suspended: what for. After `provider`, the same run may go on by itself."""
    usage: TokenUsage | None = None
    """When it is over: what all its rounds used, children and the planner included; None when nobody reported it."""

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class StepEvent(_RunEvent):
    """A round of the model and its calls began or is over."""

    type: Literal["step"] = "step"
    step: int
    status: Literal["started", "completed"]


class TextEvent(_RunEvent):
    """Words of the model."""

    type: Literal["text"] = "text"
    step: int
    attempt: int
    """Counts the requests of this step from 1, over retries and fallbacks."""
    text: str


class UsageEvent(_RunEvent):
    """The tokens of the round, as its provider reported them; zeros when it reported nothing."""

    type: Literal["usage"] = "usage"
    step: int
    model_ref: str
    usage: TokenUsage


class _OfCall(_RunEvent):
    """An event of one tool call. `tool` and `call_id` are its names everywhere else."""

    step: int
    tool_call_id: str
    tool_name: str

    @property
    def tool(self) -> str:
        return self.tool_name

    @property
    def call_id(self) -> str:
        return self.tool_call_id


class ToolCallEvent(_OfCall):
    """A call was taken up."""

    type: Literal["tool_call"] = "tool_call"
    arguments: dict[str, Any] | None = None
    """Redacted; None when they are behind a reference or the call never started."""


class McpProgressEvent(_OfCall):
    """A note of a running call."""

    type: Literal["mcp_progress"] = "mcp_progress"
    agent_name: str
    progress: float
    total: float | None = None
    message: str | None = None


class OutputEvent(_OfCall):
    """Output of a running call (`ctx.show`, or a command) as it comes. It is not stored; the result is."""

    type: Literal["output"] = "output"
    text: str


class ToolResultEvent(_OfCall):
    """How a call ended. `metadata` is the fact's own, value for value; the flat fields say the same."""

    type: Literal["tool_result"] = "tool_result"
    success: bool
    error: str | None
    duration_ms: float
    preview: str = ""
    metadata: ToolResultMetadata


class SubtaskEvent(_RunEvent):
    """A subtask starts or ends. Its own events, between the two, have the same `path`."""

    type: Literal["subtask"] = "subtask"
    status: SubtaskStatus
    title: str
    tool_name: str
    """The tool that made it: `run_subtask`, `spawn_parallel`, or the name of an agent that is a tool."""
    tool_call_id: str

    @property
    def tool(self) -> str:
        return self.tool_name

    @property
    def call_id(self) -> str:
        return self.tool_call_id


class ContextEvent(_RunEvent):
    """The context of the model changed: it was resolved again, or older parts were summarised."""

    type: Literal["context"] = "context"
    change: Literal["resolved", "compaction_started", "compaction_completed", "compaction_failed"]
    compaction_id: str | None = None
    tokens_before: int | None = None
    tokens: int | None = None
    """How large it is now, as far as it is known."""
    reason: str = ""


class WarningEvent(_RunEvent):
    """The run was warned: a setting has no effect, an answer was cut short, money is enough for one answer more."""

    type: Literal["warning"] = "warning"
    code: str
    message: str


class MessageInjectedEvent(_RunEvent):
    """A message was added to the run while it was running."""

    type: Literal["message_injected"] = "message_injected"
    message_id: str
    text: str
    said_by: str


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


class WaitingEvent(_RunEvent):
    """No model answers for now, and the request is made again later. Shown once it has taken two seconds or will."""

    type: Literal["waiting"] = "waiting"
    step: int
    provider: str
    model_ref: str
    failure_kind: FailureKind
    message: str
    next_try: str
    """In ISO-8601."""
    seconds: float
    """From now until then."""


_AnyRunEvent: TypeAlias = (
    StatusEvent
    | StepEvent
    | TextEvent
    | UsageEvent
    | ToolCallEvent
    | McpProgressEvent
    | ToolResultEvent
    | ContextEvent
    | WarningEvent
    | MessageInjectedEvent
    | ErrorEvent
    | WaitingEvent
)
StreamEvent: TypeAlias = _AnyRunEvent | OutputEvent | SubtaskEvent
"""The events of `stream()`. Subtask events and unstored output are in no view of the log."""
RunEvent: TypeAlias = Annotated[_AnyRunEvent, Field(discriminator="type")]
