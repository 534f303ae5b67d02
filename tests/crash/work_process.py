"""A program with an agent that works at an item over several turns: `main(home, point)`.

`point` is the number of the tool call in which the process ends, or 0. It prints the report of the item at the end.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from wakeful import Agent, RunContext, Runtime, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

STEPS = 3
CALLS = 0


async def main(home: Path, point: int) -> None:
    os.environ["WAKEFUL_HOME"] = str(home)
    ledger = home / "ledger.txt"

    def built() -> list[str]:
        return ledger.read_text().splitlines() if ledger.exists() else []

    @tool(effect="keyed")
    def build(ctx: RunContext[None]) -> str:
        """Build one part."""
        global CALLS
        CALLS += 1
        if ctx.idempotency_key not in built():
            with ledger.open("a") as file:
                file.write(f"{ctx.idempotency_key}\n")
        if point == CALLS:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"part {len(built())}"

    def say(request: ModelRequest) -> Any:
        *_, last = request.history
        if last.role == "tool":
            return "Enough for now."
        name = next(word.rstrip(",.:") for word in last.text.split() if word.startswith("wi_"))
        if "Pick one" in last.text:
            return _call("pick_work_item", work_item_id=name)
        if len(built()) < STEPS:
            return _call("build")
        return {"text": f"All {STEPS} parts are built.", **_call("complete_work_item", work_item_id=name)}

    agent = Agent("builder", scripted(say), tools=[build], work_items=True)
    async with Runtime(home, agents=[agent]) as rt:
        if not await rt.work_items("builder") and not await rt.work_items("builder", completed=True):
            await rt.enqueue("builder", "Build it.")
        async for event in rt.follow("builder"):
            if event.type == "work_item.completed":
                break
        await rt.settled()
        (done,) = await rt.work_items("builder", completed=True)
        sys.stdout.write(f"{done.completion_report}\n")


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}
