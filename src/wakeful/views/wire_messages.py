"""What a client of a thread is sent while a turn goes on, and again when it comes back.

A message that stands for a stored fact carries that fact's `event_seq`; a client that returns says the last one it has.
What has none was shown while it came (`chunk`), or follows from the message after it (`cost_summary`, which a client
gets again together with the end). A fact that is told in several messages has its number on the last of them.
`parent_id` and `depth` tell where inside the turn it happened; a client may ignore them and show everything flat.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from wakeful.contracts.values import Value
from wakeful.views.cost import CostSummary

BudgetReason: TypeAlias = Literal["subtasks", "llm_calls", "tool_calls", "wall_clock", "tokens", "bytes", "cost"]
WireStop: TypeAlias = Literal[
    "natural",
    "max_steps",
    "iterations",
    "subtasks",
    "llm_calls",
    "tool_calls",
    "wall_clock",
    "tokens",
    "bytes",
    "cost",
    "context_budget",
    "stalled",
    "provider_error",
    "planner_error",
    "routing_not_possible",
    "cancelled",
    "superseded",
    "interrupted",
]
"""Why a turn ended, in words that clients know. The log has more: `views/mapping` says which is which."""
PlanningPhase: TypeAlias = Literal["drafting", "validating", "saving"]
PlanningStatus: TypeAlias = Literal["running", "completed", "failed"]
TaskEvent: TypeAlias = Literal[
    "task_planned", "task_created", "step_started", "step_completed", "step_failed", "task_completed", "task_failed"
]


class ThreadWireMessage(Value):
    """A message about a turn of a thread."""

    thread_id: str
    turn_id: str
    event_seq: int | None = None
    """Place of the fact in the agent's stream; None for what is not stored."""


class Chunk(ThreadWireMessage):
    """Words of a model. Those of one step and a later attempt take the place of those of an earlier one."""

    type: Literal["chunk"] = "chunk"
    content: str
    done: bool = False
    """The reply is whole and stored: nothing of it follows."""
    parent_id: str | None = None
    """The call whose child speaks; None: the turn itself."""
    depth: int = 0
    step: int = 0
    attempt: int = 1


class ToolCallUpdate(ThreadWireMessage):
    """A call was taken up, or is over."""

    type: Literal["tool_call_update"] = "tool_call_update"
    tool_call_id: str
    name: str
    args: dict[str, Any] | None = None
    """Redacted; None when they are kept elsewhere, or the call was refused before it was taken up."""
    result: str | None = None
    """The beginning of what it returned, or what went wrong."""
    is_error: bool | None = None
    outcome: str | None = None
    """How it ended, in the word of its fact: `succeeded`, `failed`, `cancelled` and so on."""
    parent_id: str | None = None
    """The call whose child made this one; None: the turn itself."""
    depth: int = 0
    status: Literal["start", "end"]


class PlanningUpdate(ThreadWireMessage):
    """How far the planning of a workflow is."""

    type: Literal["planning_update"] = "planning_update"
    phase: PlanningPhase
    status: PlanningStatus
    content: str | None = None
    tool_call_id: str
    """The call of `build_workflow`."""
    parent_id: str | None = None
    depth: int = 0


class WorkTitle(Value):
    """A task or a step, by id, with words for people."""

    id: str
    title: str


class TaskUpdate(ThreadWireMessage):
    """What became of a workflow that is built or run, or of one of its nodes."""

    type: Literal["task_update"] = "task_update"
    task: WorkTitle
    event: TaskEvent
    step: WorkTitle | None = None
    tool_call_id: str | None = None
    """The call that builds it, or the node's own; None: the run as a whole."""
    parent_id: str | None = None
    depth: int = 0


class BudgetExceeded(ThreadWireMessage):
    """A limit of the whole turn was reached, and the turn ends."""

    type: Literal["budget_exceeded"] = "budget_exceeded"
    reason: BudgetReason
    limit: float
    observed: float
    """The one that was refused, or how much there would have been."""


class TurnTerminal(ThreadWireMessage):
    """How the turn ended: the last message of every turn."""

    type: Literal["turn_terminal"] = "turn_terminal"
    status: Literal["completed", "incomplete", "error", "cancelled"]
    stop_reason: WireStop
    retryable: bool
    message: str | None = None


_AnyMessage: TypeAlias = (
    Chunk | ToolCallUpdate | PlanningUpdate | TaskUpdate | BudgetExceeded | CostSummary | TurnTerminal
)
WireMessage: TypeAlias = Annotated[_AnyMessage, Field(discriminator="type")]
WIRE_MESSAGE: TypeAdapter[_AnyMessage] = TypeAdapter(WireMessage, config={"defer_build": True})


class WireReplay(Value):
    """What a client missed."""

    messages: tuple[WireMessage, ...]
    replay_incomplete: bool = False
    """Some of it is not there any more: show what is here, and do not take it for everything."""
    last_event_seq: int
    """Come back with this."""
    ended: bool
    """Nothing will follow."""
