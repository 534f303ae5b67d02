"""What a client is shown while a workflow is planned, and while one runs. Neither is stored: both follow from facts."""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value

PlanningPhase: TypeAlias = Literal["drafting", "validating", "saving"]
PlanningStatus: TypeAlias = Literal["running", "completed", "failed"]
TaskEvent: TypeAlias = Literal[
    "task_planned",
    "task_created",
    "step_started",
    "step_completed",
    "step_failed",
    "task_completed",
    "task_failed",
]


class Titled(Value):
    """A task or a step, by id, with words for people."""

    id: str
    title: str


class PlanningUpdate(Value):
    """How far the planning of a workflow is."""

    type: Literal["planning_update"] = "planning_update"
    phase: PlanningPhase
    status: PlanningStatus
    content: str | None = None
    tool_call_id: str
    parent_id: str | None = None
    depth: int = 0


class TaskUpdate(Value):
    """What became of a workflow, or of one of its nodes."""

    type: Literal["task_update"] = "task_update"
    task: Titled
    event: TaskEvent
    step: Titled | None = None
    tool_call_id: str
    parent_id: str | None = None
    depth: int = 0


WorkflowUpdate: TypeAlias = PlanningUpdate | TaskUpdate
