"""What may be asked about agents."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.agent_status import AgentStatus


@dataclass(frozen=True, slots=True)
class AgentName:
    """One agent by its name; None: all of them."""

    agent: str | None = None


@dataclass(frozen=True, slots=True)
class StatusQuery:
    """One agent by its name, or a page of those that had a turn."""

    agent: str | None = None
    after: str | None = None
    """The last agent of the page before."""
    limit: int | None = None


async def _status(opened: OpenStore, asked: StatusQuery) -> "list[AgentStatus]":
    from wakeful.service.queries.status import agents_status

    return await agents_status(opened.store, asked.agent, after=asked.after, limit=asked.limit)


STATUS = Operation(
    "agents.status", "observe", StatusQuery, "wakeful.views.agent_status.AgentStatus", _status, many=True
)
