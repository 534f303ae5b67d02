"""A runtime in a process of its own, to be killed: its agent begins a command, which goes on as a task or not.

python task_runtime.py FOLDER COMMAND YIELD_MS
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.contracts.conversation import UserItem
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel


def ops(folder: Path, command: str = "true", yield_ms: int = 1) -> Agent[None, str]:
    """Begins the command in its first turn; a turn that a task woke answers `told`."""

    def reply(request: ModelRequest) -> Any:
        said = [item.text for item in request.history if isinstance(item, UserItem)]
        if "authority: runtime_instruction]" in said[-1]:
            return "told"
        arguments = {"cmd": command, "yield_time_ms": yield_ms}
        return {"calls": [{"name": "exec_command", "arguments": arguments}]} if not request.answered else "It runs."

    return Agent("ops", ScriptedModel(reply), workspace=folder / "work")


async def main(folder: Path, command: str, yield_ms: int) -> None:
    async with Runtime(folder / "home", agents=[ops(folder, command, yield_ms)]) as runtime:
        await runtime.answer(await runtime.send("ops", "Build it.", key="build"))
        (folder / "answered").touch()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
