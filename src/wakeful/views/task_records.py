"""Tasks as people and programs are shown them: what each is, how it stands or ended, and what it said.

Times are Unix seconds.
"""

from typing import Literal, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.children import ChildObservability, ChildSupervision
from wakeful.contracts.tasks import TaskKind, TaskStatus
from wakeful.contracts.values import Value

OutputState: TypeAlias = Literal["success", "not_ready", "unavailable"]
"""success: it is over, and this is what stays of its output. not_ready: it goes on. unavailable: nothing was kept."""


class TaskRecord(Value):
    """One task of an agent: a command in the background, or the supervision of a child agent."""

    task_id: str
    agent: str
    thread: str
    """Told of its end."""
    kind: TaskKind
    status: TaskStatus
    summary: str
    turn_id: str
    """The turn that began it."""
    work_item_id: str | None = None
    derived_from: Authority
    command: str | None = None
    workdir: str | None = None
    child_agent_id: str | None = None
    child_observability: ChildObservability | None = None
    """Of a private child: how it is doing."""
    child_supervision: ChildSupervision | None = None
    """Of a private child: its handle, and the worktree that was made for it."""
    exit_status: int | None = None
    result_summary: str = ""
    """How it ended; blank: it has not."""
    output_bytes: int = 0
    created_at: float
    updated_at: float
    ended_at: float | None = None


class TaskOutput(Value):
    """Both ends of what a task said; of a child agent, its last words."""

    task_id: str
    status: TaskStatus
    retrieval_status: OutputState
    output: str
    output_truncated: bool = False
    """Something between the two ends is left out."""
    output_expired: bool = False
    """All of it was kept for a time that is over; this is what the record of the end has."""
    result_summary: str = ""
    exit_status: int | None = None


class OutputChunk(Value):
    """Lines that a task has said, for somebody who follows it."""

    task_id: str
    next: int
    """Where the next chunk begins: so many bytes were said up to there."""
    text: str
    skipped_bytes: int = 0
    """Before these lines, and not shown: too old to be kept, or of a line that is too long."""
