"""Agents of the process that commands are tried on: those of `served_agents`, and one with a tool of its client."""

from kit.surfaces.served_agents import agents as served
from wakeful import Agent, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


@tool(external=True, timeout=3600)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    raise AssertionError("a client runs it")


def pick(request: ModelRequest) -> object:
    """Has a client pick a file."""
    if request.answered:
        return "picked"
    return {"calls": [{"name": "client/pick_file", "arguments": {"folder": "/home"}}]}


agents = [*served, Agent("picker", scripted(pick), tools=[pick_file])]
