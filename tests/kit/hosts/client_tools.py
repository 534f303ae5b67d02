"""An agent with tools that a client runs, and a client that answers."""

from typing import Any

from kit.runs.engine_runs import calls
from wakeful import Agent, tool
from wakeful.providers.scripted import ScriptedModel

SECRET = "hunter2"


@tool(external=True, timeout=60)
def pick_file(folder: str, password: str = "") -> str:
    """Let the person pick a file.

    Args:
        folder: Where to look.
    """
    raise AssertionError("a signature is not called")


@tool(external=True, effect="pure", timeout=60)
def screen_size() -> dict[str, int]:
    """How large the screen is."""
    raise AssertionError("a signature is not called")


PICK = ("client/pick_file", {"folder": "/home", "password": SECRET})


def agent(*steps: Any, **more: Any) -> Agent[None, str]:
    """An agent whose model plays these steps; without any, it asks for a file once."""
    played = list(steps) or [calls(PICK), "done"]
    return Agent("support", ScriptedModel(played), tools=more.pop("tools", [pick_file, screen_size]), **more)
