"""The code of a workflow: one agent whose tools and policy hold for all nodes, and the agents that nodes may name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.service import Agent, Engine
from wakeful.service.code_loader import LoadedCode, load
from wakeful.surfaces.cli.agents import agent_for
from wakeful.surfaces.cli.problems import note


class WorkflowCode(NamedTuple):
    """The code that `--tools`, `--agent`, `--workspace` and `--profile` named."""

    agent: Agent[Any, Any]
    """The agent whose tools and policy apply."""
    agents: tuple[Agent[Any, Any], ...]


async def with_imported(system: Engine, code: WorkflowCode) -> WorkflowCode:
    """The same, with the agents that came in packages and can be made with the tools that were named."""
    made, _ = await AgentRegistry(system, tools=code.agent.tools).imported()
    named = {agent.name for agent in code.agents}
    return code._replace(agents=(*code.agents, *(agent for agent in made if agent.name not in named)))


def workflow_code(
    tools: Sequence[str] | None, file: Path | None, workspace: Path | None, profile: str | None
) -> WorkflowCode:
    """Load it. Agents are what nodes may name; their own tools stay their own."""
    loaded = load(tools or [])
    for words in loaded.notes:
        note(words)
    agents = list(loaded.agents)
    if file is not None:
        agents.append(Agent.from_file(file, loaded.tools))
    bare = LoadedCode()
    bare.tools = loaded.tools
    agent = agent_for(bare, None, model=None, instructions=None, max_steps=None, workspace=workspace, profile=profile)
    return WorkflowCode(agent, tuple(agents))
