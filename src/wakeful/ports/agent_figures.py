"""What an agent of a runtime has done so far, in numbers, and which definitions of it were in force."""

from typing import NamedTuple, Protocol

from wakeful.contracts.agent_identity import AgentSource
from wakeful.ports.tables import RowQuery, Rows, Table


class AgentFiguresRow(NamedTuple):
    """An agent's numbers, from its creation on."""

    agent_id: str
    messages: int
    """That turns began with."""
    compacted_messages: int
    """That stand in a summary and not in the conversation any more."""
    turns: int
    """That have begun."""
    revisions: int
    """Definitions that came into force."""
    tools: dict[str, list[int]]
    """By name of a tool: how many calls of it ended, and the microseconds they took."""


class AgentRevisionRow(NamedTuple):
    """A definition that came into force (`agent.revised`)."""

    agent_id: str
    number: int
    """From 1."""
    revision: str
    """The hash of the definition."""
    source: AgentSource
    place: str | None
    turns_before: int
    """Turns that had begun before it."""
    revised_at: int


AGENT_FIGURES = Table("agent_figures", AgentFiguresRow, key=("agent_id",))
REVISIONS_OF_AGENT = RowQuery(("number",), equal=("agent_id",), served_by="key")
AGENT_REVISIONS = Table("agent_revisions", AgentRevisionRow, key=("agent_id", "number"), queries=(REVISIONS_OF_AGENT,))


class AgentFigures(Rows, Protocol):
    """Reads an agent's numbers and revisions."""

    async def figures_of(self, agent_id: str) -> AgentFiguresRow:
        return await self.get_row(AGENT_FIGURES, agent_id) or AgentFiguresRow(agent_id, 0, 0, 0, 0, {})

    async def agent_revisions(self, agent_id: str, *, limit: int | None = None) -> list[AgentRevisionRow]:
        """The newest first."""
        return await self.list_rows(AGENT_REVISIONS, REVISIONS_OF_AGENT, agent_id, limit=limit, backwards=True)
