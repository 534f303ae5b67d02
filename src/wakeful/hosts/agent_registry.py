"""The agents a host can run by name: those its code supplies, and those that came in bundles.

What was imported is kept in the store as it was written, and made into an agent with the tools that are supplied here:
no name is ever imported as code.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.errors import WakefulError
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine
from wakeful.hosts.packages.bundles import BundledAgent
from wakeful.ports import ImportedAgent
from wakeful.tools.tool import Tool


class RegisteredAgent(NamedTuple):
    """An agent, and what is known of where it is from."""

    slug: str
    agent: Agent[Any, Any]
    metadata: dict[str, Any]


class AgentRegistry:
    """Agents by slug. One that was imported goes before one of the same name that code supplies."""

    def __init__(
        self, engine: Engine, supplied: Iterable[Agent[Any, Any]] = (), tools: Sequence[Tool[Any]] = ()
    ) -> None:
        self._engine = engine
        self._supplied = {agent.name: agent for agent in supplied}
        self._tools = tuple(tools)

    async def get(self, slug: str) -> RegisteredAgent | None:
        """Raises InvalidConfig or UnknownTool for an imported agent that cannot be made here."""
        imported = await self._engine.store.imported_agents.get(slug)
        if imported is not None:
            return self._made(imported)
        agent = self._supplied.get(slug)
        return RegisteredAgent(slug, agent, {}) if agent is not None else None

    async def slugs(self) -> list[str]:
        imported = {row.slug for row in await self._engine.store.imported_agents.all()}
        return sorted(imported | set(self._supplied))

    async def of_package(self, slug: str, version: str = "") -> list[RegisteredAgent]:
        """The agents that came with a package, or the one that was imported under this name.

        Raises InvalidConfig or UnknownTool for one that cannot be made here.
        """
        rows = [row for row in await self._engine.store.imported_agents.all() if _is_of(row, slug, version)]
        return [self._made(row) for row in rows]

    async def imported(self) -> tuple[list[Agent[Any, Any]], dict[str, WakefulError]]:
        """Every imported agent that can be made here, and why each other one cannot."""
        made: list[Agent[Any, Any]] = []
        not_made: dict[str, WakefulError] = {}
        for row in await self._engine.store.imported_agents.all():
            try:
                made.append(self._made(row).agent)
            except WakefulError as error:
                not_made[row.slug] = error
        return made, not_made

    async def register(self, bundled: BundledAgent, *, replace: bool) -> bool:
        """Keep an agent that came in a bundle. False when one of its slug is there and is not to be replaced.

        Raises InvalidConfig, UnknownTool and the like for one that cannot be made here; nothing is kept then.
        """
        Agent.from_dict(bundled.config, self._tools)
        if not replace and bundled.slug in self._supplied:
            return False
        written = json.dumps({"config": bundled.config, "metadata": bundled.metadata})
        store = self._engine.store.imported_agents
        return await store.put(bundled.slug, written, at=self._engine.clock.now(), replace=replace)

    def _made(self, row: ImportedAgent) -> RegisteredAgent:
        written = json.loads(row.definition)
        return RegisteredAgent(row.slug, Agent.from_dict(written["config"], self._tools), written["metadata"])


def _is_of(row: ImportedAgent, slug: str, version: str) -> bool:
    about = json.loads(row.definition)["metadata"]
    return slug in (row.slug, about.get("source_package")) and version in ("", about.get("source_version"))
