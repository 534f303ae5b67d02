"""Agents that a served process runs in tests of chats: each does what its message says.

`tell NAME` says some words and waits for a file NAME in the home before it says the rest.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

from kit.surfaces import served_agents
from wakeful import Agent, tool
from wakeful.contracts.models import ModelGlimpse, Reply, TextDelta
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

FIRST, REST = "Once upon a time ", "there was a log."


@tool(external=True, effect="pure", timeout=60)
def unlock(password: str) -> str:
    """Open the person's safe."""
    raise NotImplementedError


@tool(external=True, effect="pure", timeout=60)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    raise NotImplementedError


@tool(effect="pure")
def look() -> str:
    """Look around."""
    return "a forest"


def answer(request: ModelRequest) -> object:
    """`pick N` asks the client N times at once, `unlock` with a password; `nest` has a subtask."""
    if request.answered:
        return "finished"
    text = str(request.history[-1].text)
    said = re.search(r"(pick|nest|look|unlock|tell) ?(.*)", text)
    match said and said[1]:
        case "pick":
            return {
                "calls": [
                    {"name": "pick_file", "arguments": {"folder": f"/home/{number}"}}
                    for number in range(int(said[2] or 1) if said else 1)
                ]
            }
        case "nest":
            return {
                "calls": [
                    {
                        "name": "run_subtask",
                        "arguments": {"title": "inner", "instructions": "look", "tools": ["look"]},
                    }
                ]
            }
        case "look":
            return {"calls": [{"name": "look", "arguments": {}}]}
        case "unlock":
            return {"calls": [{"name": "unlock", "arguments": {"password": "hunter2-hunter2"}}]}
        case "tell":
            return FIRST + REST
    return f"you said: {text[-100:]}"


class Teller:
    """A scripted model that stops in the middle of a story, and tells the rest when a file is there."""

    def __init__(self) -> None:
        self._script = scripted(answer)

    @property
    def ref(self) -> str:
        return self._script.ref

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        said = re.search(r"tell (\w+)", str(request.history[-1].text)) if not request.answered else None
        if said is not None:
            for word in FIRST.split():
                yield TextDelta(text=f"{word} ")
            await asyncio.to_thread(_until, Path(os.environ["WAKEFUL_HOME"]) / said[1])
        async for piece in self._script.respond(request):
            if isinstance(piece, Reply):
                yield piece


def _until(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


teller = Agent("teller", Teller(), tools=[pick_file, unlock, look], subtasks=True)
agents = [*served_agents.agents, teller]
