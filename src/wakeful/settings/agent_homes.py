"""Where agents live: `agents/<id>/` of a home, and which home that is for the agents of a store.

A store called `wakeful.db` stands in the home of its agents. The agents of any other store, and of one in memory, have
their homes in the installation's home. So whoever opens the store finds the same folders.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from wakeful.settings.home import home
from wakeful.settings.store_file import FILE

FOLDER = "agents"
"""In a home: the folders of agents, and the files that define some of them."""
OWN_FOLDERS = ("memory", "notes", "work", "skills")
"""In an agent's home: what is the agent's to see."""
STATE_FOLDER = ".wakeful/state"
"""In an agent's home: what the runtime keeps there."""
DEFAULT_AGENT = "main"
VARIABLE = "WAKEFUL_AGENT_ID"


def home_of_store(location: str) -> Path:
    """The home of the agents of a store."""
    path = Path(location)
    return path.absolute().parent if path.name == FILE else home()


def agent_home(base: Path, agent_id: str) -> Path:
    """The folder of one agent. An agent's name is one part of a path, and never `..`."""
    return base / FOLDER / agent_id


def default_agent_id(environ: Mapping[str, str] = os.environ) -> str:
    """The agent that is meant where none is named."""
    return environ.get(VARIABLE) or DEFAULT_AGENT
