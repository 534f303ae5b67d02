"""What a serving process can be asked for that a host does: to hand work on, to stop it, to import a bundle.

Hosts stand above the service, so operations reach one through this door. A process that serves a store brings it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class WorkToDispatch(NamedTuple):
    """Work for an agent of the runtime."""

    agent: str
    instructions: str
    task: str
    """A name for it."""
    input: Mapping[str, Any]
    session: str | None
    """The thread it runs in; None: one of its own."""
    run_id: str | None
    """The id of the run, used once; None: a new one."""


class HostDoor(Protocol):
    """A host with a runtime behind it."""

    async def dispatch(self, work: WorkToDispatch, *, by: str) -> str:
        """Hand work to the runtime; the id of the run, which is safe then. Raises AgentNotFound, AgentStopped,
        InvalidValue, or what says that the id was used."""
        ...

    async def cancel(self, run_id: str, *, by: str) -> None:
        """Ask a run to stop; one that is over stays as it is. Raises TurnNotFound."""
        ...

    async def import_bundle(self, bundle: Mapping[str, Any], *, slug: str | None, on_conflict: str) -> str:
        """Register the agent of a bundle; its slug. Raises InvalidValue with the code of what is wrong."""
        ...
