"""Where agents live: `agents/<id>/` of a home, and which home that is for the agents of a store.

A store called `wakeful.db` stands in the home of its agents. The agents of any other store, and of one in memory, have
their homes in the installation's home. So whoever opens the store finds the same folders.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from wakeful.contracts.errors import InvalidRequest
from wakeful.settings.home import home
from wakeful.settings.store_file import FILE

FOLDER = "agents"
"""In a home: the folders of agents, and the files that define some of them."""
OWN_FOLDERS = ("memory", "notes", "work", "skills")
"""In an agent's home: what is the agent's to see."""
STATE_FOLDER = ".wakeful/state"
"""In an agent's home: what the runtime keeps there."""
OF_THE_RUNTIME = (FOLDER, "run", "secret", "repositories")
"""In a home: folders that the runtime obeys or keeps apart. So is every name that begins with `wakeful.`"""
DEFAULT_AGENT = "main"
VARIABLE = "WAKEFUL_AGENT_ID"


def home_of_store(location: str) -> Path:
    """The home of the agents of a store."""
    path = Path(location)
    return path.absolute().parent if path.name == FILE else home()


@lru_cache(maxsize=1_024)
def agent_home(base: str | Path, agent_id: str) -> Path:
    """The folder of one agent. An agent's name is one part of a path, and never `..`."""
    return Path(base, FOLDER, agent_id)


def refuse_home(folder: str | Path, agent_id: str, *homes: str | Path) -> None:
    """Raises InvalidRequest for a workspace that is a home, holds it, or is a folder of the runtime in it: commands
    there would reach what the runtime obeys. The agent's own folder is not, nor is a project that stands in the home.

    homes: those besides the installation's, whose settings count everywhere.
    """
    real = Path(folder).resolve()
    for whole in {Path(each).resolve() for each in (home(), *homes)}:
        if not real.is_relative_to(agent_home(whole, agent_id)) and (how := _touches(real, whole)):
            raise InvalidRequest(
                f"{real} cannot be a workspace of agent {agent_id!r}: it {how}, with its settings, tokens and log",
                "Give it a folder outside of the home, for example one project; without a workspace it has a folder of "
                "its own (agent_home).",
            )


def _touches(folder: Path, whole: Path) -> str:
    """How a folder reaches a home; empty: it does not."""
    if folder == whole:
        return "is the home of wakeful"
    if whole.is_relative_to(folder):
        return f"holds the home of wakeful, {whole}"
    if folder.is_relative_to(whole) and _is_of_the_runtime(folder.relative_to(whole).parts[0]):
        return f"is a folder of the runtime in the home of wakeful, {whole}"
    return ""


def _is_of_the_runtime(name: str) -> bool:
    return name in OF_THE_RUNTIME or name.startswith("wakeful.")


def default_agent_id(environ: Mapping[str, str] = os.environ) -> str:
    """The agent that is meant where none is named."""
    return environ.get(VARIABLE) or DEFAULT_AGENT
