"""The agent a run is about: one that was supplied, one from a file, or one made for the occasion."""

from pathlib import Path
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.surfaces.cli.loading import Loaded
from wakeful.surfaces.cli.problems import WrongRequest

BARE = "assistant"
"""The agent of a run that names none."""
DEFAULT_MODEL = "scripted:demo"


def agent_for(
    loaded: Loaded,
    file: Path | None,
    *,
    model: str | None,
    instructions: str | None,
    max_steps: int | None,
) -> Agent[Any, Any]:
    """The one agent. Raises WrongRequest when several were named."""
    named = [agent.name for agent in loaded.agents]
    if len(named) > 1 or (named and file is not None):
        both = ", ".join([*named, *([str(file)] if file else [])])
        raise WrongRequest(f"a run has one agent, and several were named: {both}", "leave all but one out")
    if loaded.agents:
        agent = loaded.agents[0]
        tools = (*agent.tools, *loaded.tools)
    elif file is not None:
        agent = Agent.from_file(file, loaded.tools)
        tools = agent.tools
    else:
        agent = Agent(BARE, model or DEFAULT_MODEL)
        tools = tuple(loaded.tools)
    return Agent(
        agent.name,
        model or agent.model,
        instructions if instructions is not None else agent.instructions,
        tools,
        deps_type=agent.deps_type,
        output_type=agent.output_type,
        deps=agent.deps,
        settings=agent.settings,
        fallbacks=agent.fallbacks if model is None else (),
        budget=agent.budget,
        profile=agent.profile,
        max_steps=max_steps if max_steps is not None else agent.max_steps,
    )
