"""A runtime that stops in the middle of a turn, and wakes up when another process has finished the turn.

python stopped_runtime.py FOLDER LEASE-SECONDS before-an-append | before-an-effect | successor

The runtime answers a second message afterwards: it is none the worse for what happened.
"""

import asyncio
import os
import sys
from pathlib import Path

from crash.zombie import Sleepy, say
from wakeful import Agent, RunContext, Runtime, resume_all, tool
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore


async def main(folder: Path, lease: float, when: str) -> None:
    @tool(effect="irreversible")
    async def send(ctx: RunContext[None]) -> str:
        """Send it."""
        with (folder / "world").open("a") as world:
            world.write(f"{os.getpid()}\n")
        return "sent"

    def reply(request: ModelRequest) -> object:
        wants = "Send" in str(request.history[-1].text)
        return {"calls": [{"name": "send"}]} if wants else f"said by {os.getpid()}"

    agent = Agent("post", ScriptedModel(reply), tools=[send])
    store = await SqliteStore.open(folder / "wakeful.db", ttl=lease)
    try:
        if when == "successor":
            (result,) = await resume_all(store, [agent])
            say(f"{result.status} unknown={len(result.unknown)}")
            return
        async with Runtime(store=Sleepy(store, when), agents=[agent]) as rt:
            first = await rt.answer(await rt.send("post", "Send it.", key="first"))
            say(f"{first.status} {first.output}")
            second = await rt.answer(await rt.send("post", "And you?", key="second"))
            await rt.settled()
            say(f"{second.status} {second.output}")
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))
