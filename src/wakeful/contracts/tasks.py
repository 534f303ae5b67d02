"""Tasks as values: work that goes on in the background, and what is known about it.

A task is a command, a child agent or a sleep. Only a terminal status is final; what a task brought comes back to its
agent as a message.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.children import ChildSpec
from wakeful.contracts.values import Value

TaskKind: TypeAlias = Literal["command_task", "child_agent_task", "sleep_job"]
TaskStatus: TypeAlias = Literal["queued", "running", "cancelling", "interrupted", "completed", "failed", "cancelled"]
"""cancelling: somebody asked it to end, and it has not yet. interrupted: the supervision of a child was cut off."""
OpenStatus: TypeAlias = Literal["queued", "running", "cancelling", "interrupted"]
EndStatus: TypeAlias = Literal["completed", "failed", "cancelled"]
WaitPolicy: TypeAlias = Literal["background", "blocking"]
"""What its agent does meanwhile. Commands are `background`."""
PROMOTED = "promoted_to_task"
"""What the result of a call says whose command goes on as a task."""
LOST_ON_RESTART = "lost_on_restart"
"""The kind of failure of a task that a restart could neither find again nor learn the end of."""


class CommandSpec(Value):
    """A command as it was asked for."""

    cmd: str
    workdir: str
    """Links resolved."""
    shell: str | None = None
    login: bool = False
    tty: bool = False
    yield_time_ms: int
    max_output_tokens: int | None = None
    accepts_input: bool = False
    terminal_reentry: bool = True
    """Its end comes back as a message. The runtime says so; nobody can ask for it."""

    @property
    def digest(self) -> str:
        """Equal for commands that are the same thing asked for twice."""
        same = [self.cmd, self.workdir, self.shell, self.login, self.tty]
        return hashlib.sha256(json.dumps(same).encode()).hexdigest()


class SupervisorRef(Value):
    """The process above a command: which one, among all that ever had its number."""

    pid: int
    started: int
    boot: str


class TaskRecovery(Value):
    """What a runtime needs that finds the task after a restart."""

    summary: str
    spec: CommandSpec | None = None
    child: ChildSpec | None = None
    """Of a child agent: what it is made from."""
    authority_class: Authority = "runtime_instruction"
    """Of what it brings back. How far that is trusted follows from it."""
    supervisor: SupervisorRef | None = None
    folder: str | None = None
    """Where its output is, and how it ended."""
    write_roots: tuple[str, ...] = ()
    """What it may write: repositories there are looked after when it has ended."""


@dataclass(frozen=True, slots=True)
class SupervisedEnd:
    """How a command under a supervisor ended, in the supervisor's words."""

    exit_status: int | None = None
    limit: str | None = None
    """The limit of the machine that it passed."""
    stop_requested: bool = False
    was_begun: bool = True
    spawn_error: str = ""
    duration_ms: float = 0.0
    total_bytes: int = 0
    output_problem: str = ""
    """Why not all of its output could be written."""
    ended_at: int = 0
    """Unix microseconds."""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "SupervisedEnd":
        return cls(**{name: said[name] for name in cls.__slots__ if name in said})
