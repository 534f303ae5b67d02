"""The host as the person at the terminal meets it: they own the machine, so they manage every run."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.host import Host
from wakeful.hosts.packages.runs import FindHandler
from wakeful.hosts.packages.workflows import PackageWorkflows
from wakeful.hosts.run_access import MANAGE
from wakeful.service import Agent, RunRequest, Tool
from wakeful.service.code_loader import load
from wakeful.surfaces.cli.places import StoreAddress
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.workflow_code import WorkflowCode

OPERATOR = ExecutionPrincipal.user_session(
    "operator", "operator", request_context="cli", capability_ceiling=CapabilityCeiling(allowed=(MANAGE,))
)


class HostCode:
    """The code that `--tools` and `--agent` named: agents that may be run, and tools that imported ones may name."""

    def __init__(self, tools: Sequence[str] | None = None, file: Path | None = None) -> None:
        loaded = load(tools or [])
        for words in loaded.notes:
            note(words)
        self.tools: list[Tool[Any]] = loaded.tools
        self.agents: list[Agent[Any, Any]] = list(loaded.agents)
        if file is not None:
            self.agents.append(Agent.from_file(file, loaded.tools))

    @classmethod
    def of(cls, code: WorkflowCode) -> "HostCode":
        """The code of a workflow, as a host's."""
        given = cls()
        given.tools, given.agents = list(code.agent.tools), list(code.agents)
        return given


@asynccontextmanager
async def opened_host(
    place: StoreAddress, code: HostCode, packages: RunRequest | None = None, *, reading: bool = False
) -> AsyncIterator[Host]:
    """A host on a store, asked by the operator. Packages that were imported are run as `packages` says.

    With `reading`, a store that cannot be written is read all the same.
    """
    async with opened_store(place.path, reading=reading) as opened:
        system = new_engine(opened)

        def runs(agents: AgentRegistry) -> FindHandler:
            assert packages is not None
            return PackageWorkflows(system, agents, packages).find

        runs_packages = runs if packages is not None else None
        yield Host(system, OPERATOR, agents=code.agents, tools=code.tools, runs_packages=runs_packages)
