"""Agents of a runtime: one row each, with what it is and whether it may run."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wakeful.contracts.events.agents import (
    AgentControl,
    AgentKind,
    AgentSource,
    ControlCause,
    Ownership,
    ProfilePreset,
    Visibility,
)
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex, Value


class RuntimeAgentRow(NamedTuple):
    """An agent of the runtime. Its definition is in the program, in a file, or in the store."""

    agent_id: str
    kind: AgentKind
    visibility: Visibility
    ownership: Ownership
    profile_preset: ProfilePreset
    parent: str | None
    """The agent that made it."""
    source: AgentSource
    revision: str
    """The hash of the definition in force; blank: none was loaded yet."""
    revised_at: int | None
    created_at: int
    control: AgentControl
    cause: ControlCause
    """Why it is paused or stopped; of one that runs, who let it run."""
    changed_by: str
    reason: str
    changed_at: int
    resumes_at: int | None


_HELD = Condition("control", "<>", "running")
BY_AGE = RowQuery(("created_at", "agent_id"), served_by="runtime_agents_by_age")
HELD = RowQuery(("changed_at", "agent_id"), where=_HELD, served_by="runtime_agents_held")

RUNTIME_AGENTS = Table(
    "runtime_agents",
    RuntimeAgentRow,
    key=("agent_id",),
    indexes=(
        TableIndex("runtime_agents_by_age", ("created_at",)),
        TableIndex("runtime_agents_held", ("changed_at",), where=_HELD),
    ),
    queries=(BY_AGE, HELD),
)


class RuntimeAgents(Rows, Protocol):
    """Reads which agents a runtime has."""

    async def runtime_agent(self, agent_id: str) -> RuntimeAgentRow | None:
        return await self.get_row(RUNTIME_AGENTS, agent_id)

    async def runtime_agents(
        self, *, after: RuntimeAgentRow | None = None, limit: int | None = None
    ) -> list[RuntimeAgentRow]:
        """The oldest first; `after` is the last one of the page before."""
        place: Sequence[Value] = () if after is None else (after.created_at, after.agent_id)
        return await self.list_rows(RUNTIME_AGENTS, BY_AGE, after=place, limit=limit)

    async def held_agents(
        self, *, after: RuntimeAgentRow | None = None, limit: int | None = None
    ) -> list[RuntimeAgentRow]:
        """Those that are paused or stopped, the longest first; `after` is the last one of the page before."""
        place: Sequence[Value] = () if after is None else (after.changed_at, after.agent_id)
        return await self.list_rows(RUNTIME_AGENTS, HELD, after=place, limit=limit)
