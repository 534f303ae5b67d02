"""A program whose operator interjects, killed at a commit: `main(home, kind, when)`."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from crash.waking_process import NOON, KilledStore
from wakeful import Agent, Runtime, tool
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted


async def main(home: Path, kind: str, when: str) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def work() -> str:
        """Work."""
        begun.set()
        await gate.wait()
        return "worked"

    def reply(request: Any) -> Any:
        if request.answered == 0:
            return {"calls": [{"name": "work", "arguments": {}}]}
        heard = [item.text for item in request.history if item.role == "user"]
        return f"heard {len(heard)}"

    store = KilledStore(await SqliteStore.open(home / "runs.db"), kind, when)
    async with Runtime(agents=[Agent("ops", scripted(reply), tools=[work])], store=store, clock=FixedClock(NOON)) as rt:
        await rt.send("ops", "Work.", key="first")
        await asyncio.wait([asyncio.ensure_future(begun.wait()), asyncio.ensure_future(rt.settled())],
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        await rt.send("ops", "Leave the mail out.", key="second", priority="interject")
        gate.set()
        await rt.settled()
    await store.close()
    sys.stdout.write("at rest\n")
