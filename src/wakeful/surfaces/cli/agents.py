"""The agent a run is about: one that was supplied, one from a file, or one made for the occasion."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wakeful.service import PROFILES, Agent, AgentTool, any_named, tools_of_the_runtime
from wakeful.service.code_loader import LoadedCode
from wakeful.surfaces.cli.problems import WrongRequest

BARE = "assistant"
"""The agent of a run that names none."""
DEFAULT_MODEL = "scripted:demo"
SUFFIXES = (".yaml", ".yml", ".json")
"""Of files that hold an agent."""


def agent_for(
    loaded: LoadedCode,
    file: Path | Agent[Any, Any] | None,
    *,
    model: str | None,
    instructions: str | None,
    max_steps: int | None,
    workspace: Path | None = None,
    profile: str | None = None,
    network: bool = False,
    subtasks: bool | None = None,
    planning_enabled: bool | None = None,
    mcp: Sequence[str] | None = None,
) -> Agent[Any, Any]:
    """The one agent. Raises WrongRequest when several were named.

    An agent that was named works where it says it does; one that is made for the occasion works in the current folder.
    """
    named = [agent.name for agent in loaded.agents]
    if len(named) > 1 or (named and file is not None):
        both = ", ".join([*named, *([str(file)] if file else [])])
        raise WrongRequest(f"a run has one agent, and several were named: {both}", "leave all but one out")
    changes: dict[str, Any] = {}
    if isinstance(file, Agent):
        agent = file
    elif loaded.agents:
        agent = loaded.agents[0]
        changes["tools"] = (*agent.tools, *agent.given_sources, *loaded.tools)
    elif file is not None:
        agent = Agent.from_file(file, loaded.tools)
    else:
        agent = Agent(BARE, model or DEFAULT_MODEL, tools=loaded.tools)
        profile = profile or "coding"
    if profile is not None:
        changes["profile"] = profile
    if workspace is not None or (profile not in (None, "chat") and agent.workspace is None):
        changes["workspace"] = workspace if workspace is not None else Path.cwd()
        if agent.workspace is None and profile is None:
            changes["profile"] = None  # whatever goes with a workspace
    if network:
        changes["sandbox"] = replace(agent.sandbox, network="full")
    if mcp:
        changes["mcp"] = tuple(dict.fromkeys((*agent.mcp, *mcp)))
    if model is not None:
        changes |= {"model": model, "fallbacks": ()}
    if instructions is not None:
        changes["instructions"] = instructions
    said = {"max_steps": max_steps, "subtasks": subtasks, "planning_enabled": planning_enabled}
    changes |= {name: value for name, value in said.items() if value is not None}
    return agent.changed(**changes)


def named_agent(given: Path | None) -> str | None:
    """The name of an agent that `--agent NAME|FILE` gave; None: a file is meant, or nothing."""
    if given is None or given.name != str(given) or given.suffix in SUFFIXES or given.exists():
        return None
    return str(given)


def check_approved(agent: Agent[Any, Any], approve: Sequence[str] | None) -> None:
    """Raises WrongRequest for an --approve about none of the agent's tools.

    The tools of a server, and those of other agents, are not known here: with them, every name is taken.
    """
    if agent.mcp or agent.given_sources or any(isinstance(tool, AgentTool) for tool in agent.tools):
        return
    there = [tool.name for tool in agent.tools]
    there += PROFILES[agent.profile] if agent.workspace is not None and agent.profile is not None else ()
    there += tools_of_the_runtime(
        subtasks=agent.subtasks,
        allow_parallel_subagents=agent.allow_parallel_subagents,
        work_items=agent.work_items,
        memory=agent.memory,
    )
    for name in approve or ():
        if not any(any_named((name,), known) for known in there):
            raise WrongRequest(f"--approve {name}: no tool of this run has that name", f"there are: {', '.join(there)}")
