"""Tools that are known only when somebody asks: a server's, a workspace's.

A source stands among an agent's tools. When a turn is taken up it is asked what it offers now; what it cannot offer it
names, with the reason, so that a catalogue shows `unavailable` and not a gap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from wakeful.ports.agent_board import AgentBoard
from wakeful.ports.tasks import TaskBoard
from wakeful.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class WithheldTool:
    """A tool that exists and is not offered."""

    name: str
    reason: str
    description: str = ""
    status: Literal["denied", "unavailable"] = "unavailable"
    """denied: it is there, and nobody has allowed it. unavailable: it cannot be had now."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a source has now."""

    tools: Sequence[Tool[Any]]
    withheld: Sequence[WithheldTool] = field(default=())


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of the runtime's own is around a source, for sources to keep their tools away from."""

    keys: Callable[[], frozenset[str]] = frozenset
    """The variables that hold keys of providers, found out when somebody asks."""
    secrets: Callable[[], frozenset[str]] = frozenset
    """The keys themselves, and whatever else of the runtime's own no result may hold."""
    own_files: tuple[str, ...] = ()
    """The runtime's database, configuration and tokens, by absolute path."""
    home: str | None = None
    """The home of the store's agents; None: the installation's."""
    readable: tuple[str, ...] = ()
    """Folders outside a workspace that may be read there all the same: skills."""
    wakes: bool = False
    """Somebody is there who wakes an agent that waits: a runtime."""
    lives: bool = False
    """Agents here are a runtime's: each is told what its home says."""
    agents: AgentBoard | None = None
    """Where a model looks at its agent; None: there is no runtime."""
    cwd: str | None = None
    """Where commands begin, inside the workspace; None: at its top."""
    tasks: TaskBoard | None = None
    """Where commands go on that outlive their call; None: nobody is there to look after them."""
    tools: tuple[Tool[Any], ...] = ()
    """Tools that the runtime gives to every agent, whatever it was given itself."""


class ToolSource:
    """Where tools come from."""

    @property
    def name(self) -> str:
        """What a person calls it: `mcp.github`, `coding`."""
        raise NotImplementedError

    def within(self, surroundings: Surroundings) -> "ToolSource":
        """The source as it is to be used here."""
        return self

    async def offer(self) -> Offer:
        """The tools there are now. Does not raise for a source that cannot be reached: it withholds and says why."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of whatever `offer` opened. Called when the last run that uses the source is over."""
