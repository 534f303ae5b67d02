"""Facts about the runtime as a whole: everything was paused or stopped, a provider lets nobody in, files were loaded.

They stand in a stream of their own, which belongs to no agent.
"""

from typing import ClassVar

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.events.base import THREAD, Need, RuntimeFact
from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.models import FailureKind

RUNTIME_STREAM = "runtime-control"
EVERYTHING = "everything"
"""Who asked a turn to rest or to stop, when everything was paused or stopped."""


class RuntimeControlChanged(RuntimeFact):
    """Every agent was paused or stopped, or let run again. What was said of single agents stays."""

    kind: ClassVar[str] = "runtime.control_changed"

    control: AgentControl
    changed_by: str
    reason: str = ""


class ProviderParked(RuntimeFact):
    """A provider refused a key, or its quota is used up. Its agents wait until a probe of it goes through."""

    kind: ClassVar[str] = "provider.parked"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    provider: str
    model_ref: str
    """The model that a probe asks."""
    agent_id: str
    """The agent that found out, and whose model is asked."""
    failure_kind: FailureKind
    message: str = ""
    probes: int = 0
    """How often it was asked since, in vain."""
    probes_at: int
    """Unix microseconds of the next probe."""


class ProviderUnparked(RuntimeFact):
    """A provider answers again, or somebody said so."""

    kind: ClassVar[str] = "provider.unparked"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    provider: str
    by: str


class ProviderDisappeared(RuntimeFact):
    """A provider has not answered for a while. Turns that need it wait, and go on by themselves once it does."""

    kind: ClassVar[str] = "provider.disappeared"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    provider: str
    model_ref: str
    failure_kind: FailureKind
    message: str = ""
    since: int
    """Unix microseconds."""
    threads: int
    """How many conversations wait for it."""


class ProviderAnswered(RuntimeFact):
    """A provider that people were told of answers again."""

    kind: ClassVar[str] = "provider.answered"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    provider: str
    seconds: float
    """For so long it did not."""
    threads: int
    """How many conversations go on."""


class PackageReplaced(RuntimeFact):
    """The files of wakeful on the disk are others than those the running process was started from."""

    kind: ClassVar[str] = "runtime.package_replaced"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    running: str
    """The version that runs."""
    installed: str
    """The version on the disk; blank: it cannot be read."""


class HeartbeatChanged(RuntimeFact):
    """The address that is told that the runtime is well does not answer any more, or answers again."""

    kind: ClassVar[str] = "heartbeat.changed"

    ok: bool
    error: str = ""


class RuntimePartFailed(RuntimeFact):
    """A part of the runtime failed with an error that nobody expected. It is begun again after a while."""

    kind: ClassVar[str] = "runtime.part_failed"

    part: str
    """The scheduler, the watchdog, the channels, say."""
    error: str = ""


class FilesReloadRequested(RuntimeFact):
    """Somebody wants the files of the home read again."""

    kind: ClassVar[str] = "files.reload_requested"

    requested_by: str


class FilesLoaded(RuntimeFact):
    """The files of the home were read. What was right is in force, and has facts of its own."""

    kind: ClassVar[str] = "files.loaded"

    changed: tuple[str, ...] = ()
    """Agents that have another definition than before."""
    owner_changed: bool = False
    """The owner's file says something else than before."""
    problems: tuple[FileProblem, ...] = ()
    """Everything that is wrong: what was in force before still is."""
