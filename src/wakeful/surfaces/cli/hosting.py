"""The host as the person at the terminal meets it: they own the machine, so they manage every run."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.service.host import Host
from wakeful.service.run_access import MANAGE
from wakeful.surfaces.cli.loading import load
from wakeful.surfaces.cli.places import Place
from wakeful.surfaces.cli.problems import note
from wakeful.tools.function import Tool

OPERATOR = ExecutionPrincipal.user_session(
    "operator", "operator", request_context="cli", capability_ceiling=CapabilityCeiling(allowed=(MANAGE,))
)


class HostCode:
    """What `--tools` and `--agent` named: agents that may be run, and tools that imported ones may name."""

    def __init__(self, tools: Sequence[str] | None = None, file: Path | None = None) -> None:
        loaded = load(tools or [])
        for words in loaded.notes:
            note(words)
        self.tools: list[Tool[Any]] = loaded.tools
        self.agents: list[Agent[Any, Any]] = list(loaded.agents)
        if file is not None:
            self.agents.append(Agent.from_file(file, loaded.tools))


@asynccontextmanager
async def opened_host(place: Place, code: HostCode) -> AsyncIterator[Host]:
    """A host on a store, asked by the operator."""
    async with opened_store(place.path) as opened:
        yield Host(runtime(opened), OPERATOR, agents=code.agents, tools=code.tools)
