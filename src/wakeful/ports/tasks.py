"""Tasks: one row each, from its beginning to its end and beyond; and the board at which tools begin and steer them.

A row is the authority on whether a task is over and on what it brought: messages about it may be older. The whole
output is in files, and nothing here reads them.
"""

from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.children import ChildObservability, ChildSpec, ChildSupervision
from wakeful.contracts.tasks import CommandSpec, SupervisedEnd, TaskKind, TaskRecovery, TaskStatus, WaitPolicy
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex


class TaskRow(NamedTuple):
    """What is known about a task."""

    task_id: str
    agent_id: str
    thread_id: str
    """Told of its end."""
    kind: TaskKind
    status: TaskStatus
    summary: str
    parent_turn_id: str
    parent_call_id: str | None
    parent_message_id: str | None
    work_item_id: str | None
    wait_policy: WaitPolicy
    derived_from: Authority
    cmd_digest: str
    """Of a command: equal for those that are the same thing asked for twice."""
    recovery: dict[str, Any] | None
    """A `TaskRecovery` as JSON."""
    output_path: str | None
    initial_output: str
    result_summary: str
    exit_status: int | None
    failure: dict[str, Any] | None
    """A `FailureArtifact` as JSON."""
    output_summary: str
    output_bytes: int
    output_truncated: bool
    duration_ms: int
    created_at: int
    updated_at: int
    ended_at: int | None
    retried_at: int | None
    """When it went on last, after an end: a failed turn of its child was tried again. None: it never did."""

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def recovered(self) -> TaskRecovery | None:
        return None if self.recovery is None else TaskRecovery.model_validate(self.recovery)

    @property
    def command(self) -> CommandSpec | None:
        recovery = self.recovered
        return None if recovery is None else recovery.spec

    @property
    def child(self) -> ChildSpec | None:
        recovery = self.recovered
        return None if recovery is None else recovery.child


_OPEN = Condition("ended_at", "IS NULL")
OPEN_TASKS = RowQuery(("created_at", "task_id"), where=_OPEN, served_by="tasks_open")
SAME_COMMAND = RowQuery(
    ("created_at", "task_id"), equal=("agent_id", "cmd_digest"), where=_OPEN, served_by="tasks_by_command"
)
TASKS_OF_AGENT = RowQuery(("created_at", "task_id"), equal=("agent_id",), served_by="tasks_of_agent")

TASKS = Table(
    "tasks",
    TaskRow,
    key=("task_id",),
    indexes=(
        TableIndex("tasks_open", ("created_at", "task_id"), where=_OPEN),
        TableIndex("tasks_by_command", ("agent_id", "cmd_digest", "created_at", "task_id"), where=_OPEN),
        TableIndex("tasks_of_agent", ("agent_id", "created_at", "task_id")),
    ),
    queries=(OPEN_TASKS, SAME_COMMAND, TASKS_OF_AGENT),
)


def _place(row: TaskRow | None) -> tuple[int | str, ...]:
    return () if row is None else (row.created_at, row.task_id)


class Tasks(Rows, Protocol):
    """Reads tasks."""

    async def task(self, task_id: str) -> TaskRow | None:
        return await self.get_row(TASKS, task_id)

    async def open_tasks(self, *, limit: int | None = None) -> list[TaskRow]:
        """Those that are not over, the oldest first."""
        return await self.list_rows(TASKS, OPEN_TASKS, limit=limit)

    async def newest_open_tasks(self, *, limit: int, after: TaskRow | None = None) -> list[TaskRow]:
        """A page of those that are not over, the newest first; `after`: behind that row, whatever became of it."""
        return await self.list_rows(TASKS, OPEN_TASKS, after=_place(after), limit=limit, backwards=True)

    async def same_commands(self, agent_id: str, digest: str) -> list[TaskRow]:
        """Commands of an agent that run and are the same as this one, the oldest first."""
        return await self.list_rows(TASKS, SAME_COMMAND, agent_id, digest)

    async def tasks_of(self, agent_id: str, *, limit: int | None = None, after: TaskRow | None = None) -> list[TaskRow]:
        """All of an agent's, the newest first; `after`: behind that row."""
        return await self.list_rows(TASKS, TASKS_OF_AGENT, agent_id, after=_place(after), limit=limit, backwards=True)


class RunningCommand(Protocol):
    """A command that a call waits for."""

    async def stop(self, grace: float) -> None:
        """Ask it to end; what has not after so many seconds is killed."""
        ...


class TaskCommand(RunningCommand, Protocol):
    """A command under its supervisor, whichever process started it."""

    @property
    def identity(self) -> tuple[int, int, str]:
        """The supervisor's number, when it began, and in which start of the machine."""
        ...

    async def wait(self) -> SupervisedEnd | None:
        """How it ended, once it has; None: its supervisor was ended, and with it the command."""
        ...

    async def promote(self, folder: str) -> None:
        """Let it outlive this process."""
        ...

    async def send_input(self, data: bytes) -> int:
        """Give it input; how many bytes it took."""
        ...

    async def close_input(self) -> None: ...

    async def end(self) -> None:
        """Leave it. A command in the foreground is gone on return, a task goes on."""
        ...


Settle: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""What has to be done when a command has ended; what of its doing was undone."""


class TaskOrder(NamedTuple):
    """What a turn says of a command that is to go on without it."""

    turn_id: str
    call_id: str
    derived_from: Authority
    spec: CommandSpec
    write_roots: tuple[str, ...]
    initial_output: str
    keep: Callable[[str], None]
    """Writes into the folder of the task what a later process needs to settle it. Raises OSError."""


class ChildBoard(Protocol):
    """Where agents that others spawned are made and looked after."""

    def begin_child(self, task_id: str) -> None:
        """The task that makes an agent is on disk: make it now. Does not wait for it."""
        ...

    def open_children(self, agent_id: str) -> Set[str]:
        """The tasks that supervise children of an agent and are not over."""
        ...

    def names(self) -> Set[str]:
        """Names of agents that are known here."""
        ...


class ChildOfTask(NamedTuple):
    """The child that a task supervises, as its parent is shown it."""

    supervision: ChildSupervision
    observability: ChildObservability
    output: str
    """What it said last."""
    untrusted: str
    """Why that is nobody's instruction; blank: nothing untrusted is behind it."""


class TaskBoard(ChildBoard, Protocol):
    """Where tools of a turn find the tasks of its agent. A runtime gives it; a run of the library has none."""

    @property
    def folder(self) -> str:
        """Where tasks have their folders: no command may see it."""
        ...

    def running(self, command: RunningCommand) -> AbstractContextManager[None]:
        """A command that is no task, for as long as its call waits for it: it can be ended from outside."""
        ...

    async def same_command(self, turn_id: str, spec: CommandSpec) -> TaskRow | None:
        """A task of the turn's agent that runs, was not asked to end, and is this very command."""
        ...

    async def promote(self, command: TaskCommand, order: TaskOrder, settle: Settle) -> TaskRow:
        """Make a task of a command. From here on the board looks after it; where it raises, the command has ended."""
        ...

    async def task(self, turn_id: str, task_id: str) -> TaskRow | None:
        """A task of the turn's agent."""
        ...

    def open_tasks(self, agent_id: str) -> Set[str]:
        """The tasks of an agent that will tell it of their end, and those that are being made just now."""
        ...

    async def wait(self, task_id: str, seconds: float) -> TaskRow:
        """The task, once it is over or the time is."""
        ...

    async def send_input(self, task_id: str, data: bytes, *, close: bool = False) -> int:
        """Give a task input; how many bytes it took."""
        ...

    async def child(self, row: TaskRow) -> ChildOfTask | None:
        """The child of a task; None for one that supervises none."""
        ...

    async def say(self, task_id: str, words: str, *, behind: Authority, key: str) -> bool:
        """Say something to the child of a task. The same key again says nothing more. False: it is over."""
        ...

    async def stop(self, task_id: str, *, force: bool = False, reason: str = "") -> TaskRow:
        """Ask a task to end. One that is over stays as it is."""
        ...
