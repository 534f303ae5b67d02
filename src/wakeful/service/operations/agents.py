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


async def _status(opened: OpenStore, asked: AgentName) -> "list[AgentStatus]":
    from wakeful.service.queries.status import agents_status

    return await agents_status(opened.store, asked.agent)


STATUS = Operation("agents.status", "observe", AgentName, "wakeful.views.agent_status.AgentStatus", _status, many=True)
