"""What the files of a home say, for somebody who writes another one."""

from pathlib import Path

from wakeful.contracts.errors import WakefulError
from wakeful.engine.agent_file import read_agent_file
from wakeful.service.setup_files import REACH_NAME, agent_file
from wakeful.settings.notify_targets import owner_targets


def model_of(home: Path, name: str) -> str | None:
    """The model that an agent's file names; None where there is no such file, or none that can be read."""
    try:
        found = read_agent_file(agent_file(home, name)).data.get("model")
    except (WakefulError, OSError):
        return None
    return found if isinstance(found, str) else None


def notify_name(home: Path) -> bool:
    """Does the owner's file say how the owner is reached?"""
    try:
        return REACH_NAME in owner_targets()
    except WakefulError:
        return False
