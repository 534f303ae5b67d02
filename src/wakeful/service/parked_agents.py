"""Agents that are paused because their definition cannot be had: a server that no file names yet, say. Once it can,
they go on by themselves.

The files of a home are watched, and the servers that an agent names stand in others: in a workspace that was just
brought back, or that its owner is about to trust. Looked at are only agents that are paused for that, now and then. One
that is paused for something else is left alone: to let it run would change nothing but the number of notices.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.contracts.errors import AgentMissing, EventRefused, ForTheCaller
from wakeful.engine.named_servers import check_servers
from wakeful.engine.run_request import Engine
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.runtime.agent_definitions import read_definition
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.agents import RUNTIME, resume_agent

SERVERS = "mcp"
"""The field of a definition that names them."""


@dataclass(slots=True)
class ParkedAgents:
    """Which agents wait for their definition."""

    engine: Engine
    supply: AgentSupply
    _waiting: dict[str, int] = field(default_factory=dict)
    """By agent: when it was paused."""

    async def note(self, agent_id: str) -> None:
        """An agent was paused because it could not be run. Is it its definition that is not right?"""
        row = await self.engine.store.runtime_agent(agent_id)
        if row is not None:
            await self._note(row)

    async def recall(self) -> None:
        """What a runtime before this one has paused."""
        for row in await self.engine.store.held_agents():
            await self._note(row)

    async def _note(self, row: RuntimeAgentRow) -> None:
        is_parked = (row.control, row.cause) == ("paused", "configuration")
        if is_parked and not await self._is_right(row.agent_id):
            self._waiting[row.agent_id] = row.changed_at

    async def look(self) -> None:
        """Let those run whose definition is right by now."""
        for agent_id, paused_at in list(self._waiting.items()):
            if await self._is_right(agent_id):
                del self._waiting[agent_id]
                with suppress(EventRefused):  # somebody else decided about it meanwhile
                    await resume_agent(self.engine, agent_id, by=RUNTIME, cause="configuration", instead_of=paused_at)
        wrong = {each.place for each in self.supply.problems if each.field.partition(".")[0] == SERVERS}
        for place in wrong:
            _, problems = await asyncio.to_thread(read_definition, Path(place), self.supply.tools)
            if not problems:
                await self.supply.reload()
                return

    async def _is_right(self, agent_id: str) -> bool:
        """Can it be had, with all servers that it names? Code that is not here comes with another process."""
        try:
            agent = await self.supply.agent(agent_id)
            place = await self.engine.store.active_workspace(agent_id)
            root = place.execution_root if place is not None else agent.workspace
            await asyncio.to_thread(check_servers, agent.mcp, Path(root) if root else None)
        except AgentMissing:
            return True
        except (ForTheCaller, OSError):
            return False
        return True
