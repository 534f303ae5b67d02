"""Agents of a runtime: one row each, with what it is and whether it may run."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wakeful.contracts.agent_identity import (
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
    model_override: str | None
    """The model that an operator gave it; None: that of its definition."""
    model_changed_at: int | None
    archived_at: int | None
    deleted_at: int | None
    """Set: it is no more, and its name is taken for good."""


_HELD = Condition("control", "<>", "running")
_CHILD = Condition("parent", "IS NOT NULL")
OF_PARENT = RowQuery(("created_at", "agent_id"), equal=("parent",), where=_CHILD, served_by="runtime_agents_of_parent")
BY_AGE = RowQuery(("created_at", "agent_id"), served_by="runtime_agents_by_age")
HELD = RowQuery(("changed_at", "agent_id"), where=_HELD, served_by="runtime_agents_held")

RUNTIME_AGENTS = Table(
    "runtime_agents",
    RuntimeAgentRow,
    key=("agent_id",),
    indexes=(
        TableIndex("runtime_agents_by_age", ("created_at",)),
        TableIndex("runtime_agents_held", ("changed_at",), where=_HELD),
        TableIndex("runtime_agents_of_parent", ("parent", "created_at"), where=_CHILD),
    ),
    queries=(BY_AGE, HELD, OF_PARENT),
)


class RuntimeAgents(Rows, Protocol):
    """Reads which agents a runtime has."""

    async def runtime_agent(self, agent_id: str) -> RuntimeAgentRow | None:
        """None: there is none, or it was deleted."""
        row = await self.get_row(RUNTIME_AGENTS, agent_id)
        return row if row is not None and row.deleted_at is None else None

    async def deleted_agents(self) -> list[str]:
        """The names of those that were deleted: they are not given again."""
        rows = await self.list_rows(RUNTIME_AGENTS, BY_AGE)
        return [row.agent_id for row in rows if row.deleted_at is not None]

    async def runtime_agents(
        self, *, after: RuntimeAgentRow | None = None, limit: int | None = None
    ) -> list[RuntimeAgentRow]:
        """The oldest first; `after` is the last one of the page before."""
        place: Sequence[Value] = () if after is None else (after.created_at, after.agent_id)
        return await _there(self, BY_AGE, place, limit)

    async def held_agents(
        self, *, after: RuntimeAgentRow | None = None, limit: int | None = None
    ) -> list[RuntimeAgentRow]:
        """Those that are paused or stopped, the longest first; `after` is the last one of the page before."""
        place: Sequence[Value] = () if after is None else (after.changed_at, after.agent_id)
        return await _there(self, HELD, place, limit)

    async def children_of(self, agent_id: str) -> list[RuntimeAgentRow]:
        """The agents that an agent made, the oldest first."""
        rows = await self.list_rows(RUNTIME_AGENTS, OF_PARENT, agent_id)
        return [row for row in rows if row.deleted_at is None]


async def _there(rows: Rows, query: RowQuery, place: Sequence[Value], limit: int | None) -> list[RuntimeAgentRow]:
    """A page without those that were deleted. It is shorter than the limit at the end only."""
    found: list[RuntimeAgentRow] = []
    while True:
        wanted = None if limit is None else limit - len(found)
        page = await rows.list_rows(RUNTIME_AGENTS, query, after=place, limit=wanted)
        found += [row for row in page if row.deleted_at is None]
        if wanted is None or len(page) < wanted or len(found) == limit:
            return found
        place = RUNTIME_AGENTS.values_of(page[-1], query.order)
