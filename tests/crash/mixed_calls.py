"""A runtime in a process of its own, to be killed: two threads of an agent whose provider gives its calls no ids.

python mixed_calls.py FOLDER THREAD [URL]

Each thread's first call has the same id then. Thread `tests` begins a command that becomes a task; in thread `release`
a command is waited for. URL is of a server that speaks as Gemini's does; without one the model is scripted.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.contracts.conversation import ToolItem
from wakeful.ports import ModelRequest
from wakeful.providers import Gemini
from wakeful.testing import scripted

COMMANDS = {
    "tests": {"cmd": "while [ ! -e go ]; do sleep 0.05; done; echo done > tests", "yield_time_ms": 1},
    "release": {"cmd": "echo began > release; sleep 600; echo done >> release", "yield_time_ms": 600_000},
}


def answer(said: str) -> Any:
    """What the model answers to a text: a call without an id, or what it read."""
    if "Task task_" in said:
        return f"TOLD {said}"
    return COMMANDS["tests" if "tests" in said else "release"]


def reply(request: ModelRequest) -> Any:
    last = request.history[-1]
    given = answer(last.text)
    if isinstance(last, ToolItem) or isinstance(given, str):
        return f"TOLD {last.text}"
    return {"calls": [{"name": "exec_command", "arguments": given}]}


def ops(folder: Path, url: str = "") -> Agent[None, str]:
    model = Gemini("gemini-2.5-flash", base_url=url, api_key="key") if url else scripted(reply)
    return Agent("ops", model, workspace=folder / "work")


async def main(folder: Path, thread: str, url: str = "") -> None:
    async with Runtime(folder / "home", agents=[ops(folder, url)]) as runtime:
        sent = await runtime.send("ops", f"Run the {thread}.", key=thread, thread=thread)
        (folder / thread).write_text((await runtime.answer(sent)).final_content)
        (folder / "work" / "go").touch()
        while await runtime.tasks("ops"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await runtime.settled()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
