"""The agent of a run that names one of the store: `wakeful run --agent ops`."""

from pathlib import Path
from typing import Any, NamedTuple

from wakeful.service import Agent, default_agent_id
from wakeful.service.operations.runtime_agents import RUNNABLE_AGENT, AgentToRun
from wakeful.surfaces.cli.agents import DEFAULT_MODEL
from wakeful.surfaces.cli.code_loader import LoadedCode
from wakeful.surfaces.cli.places import StoreAddress, ask
from wakeful.surfaces.cli.problems import WrongRequest

SUFFIXES = (".yaml", ".yml", ".json")


class StoreAgent(NamedTuple):
    """An agent of the store, as a run has it."""

    agent: Agent[Any, Any]
    revision: str


def named_in_store(given: Path | None) -> str | None:
    """The agent's name; None: a file is meant, or nothing."""
    if given is None or given.name != str(given) or given.suffix in SUFFIXES or given.exists():
        return None
    return str(given)


def agent_of_store(
    name: str, place: StoreAddress, loaded: LoadedCode, *, model: str | None, instructions: str | None, create: bool
) -> StoreAgent:
    """Raises AgentNotFound for one that is not there and may not be made, and WrongRequest."""
    may_make = create or name == default_agent_id()
    new = {"name": name, "model": model or DEFAULT_MODEL, "instructions": instructions or ""} if may_make else None
    found = ask(RUNNABLE_AGENT, AgentToRun(name, new), place)
    own = next((agent for agent in loaded.agents if agent.name == name), None)
    if found.is_code and own is None:
        raise WrongRequest(
            f"agent {name} is defined in a program",
            f'run that program, name its code with --tools MODULE:NAME, or leave a message: wakeful send {name} "..."',
        )
    agent = own if found.is_code and own is not None else Agent.from_dict(dict(found.definition), loaded.tools)
    is_same = model is None or (new is not None and agent.model == model)
    if not is_same:
        raise WrongRequest(
            f"--model {model}: agent {name} has a model of its own, and it holds for all of its turns",
            f"change it: wakeful agent model {name} {model}{place.flag}",
        )
    if found.model is not None:
        agent = agent.changed(model=found.model)
    return StoreAgent(agent, found.revision)
