"""A program with a runtime that is killed in the middle of its work: `main(home, point)`.

`point` is the number of the tool call in which the process ends, or 0. It prints the state of each message at the end.
"""

import itertools
import os
import signal
import sys
from pathlib import Path

from wakeful import Agent, RunContext, Runtime, tool
from wakeful.testing import scripted

CALLS = itertools.count(1)


async def main(home: Path, point: int) -> None:
    ledger = home / "ledger.txt"

    @tool(effect="keyed")
    def pay(ctx: RunContext[None], bill: int) -> str:
        """Pay a bill."""
        number = next(CALLS)  # tools run on threads, and this is one step
        paid = ledger.read_text().splitlines() if ledger.exists() else []
        if ctx.idempotency_key not in paid:
            with ledger.open("a") as file:
                file.write(f"{ctx.idempotency_key}\n")
        if point == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {bill}"

    def clerk(name: str) -> Agent[None, str]:
        script = [{"calls": [{"name": "pay", "arguments": {"bill": 7}}]}, "done"]
        return Agent(name, scripted(script), tools=[pay])

    async with Runtime(home, agents=[clerk("ada"), clerk("bob")]) as rt:
        sent = [
            await rt.send(name, "Pay it.", key=f"{name}-{thread}", thread=thread)
            for name in ("ada", "bob")
            for thread in ("main", "side")
        ]
        for message in sent:
            assert (await rt.answer(message)).output == "done"
        await rt.settled()
        sys.stdout.write("all answered\n")
