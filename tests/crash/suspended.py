"""A program whose process is stopped in the middle of a tool, for longer than its budget allows.

python suspended.py noticing | unnoticing
"""

import asyncio
import os
import signal
import sys

from wakeful import Agent, Budget, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.engine.run_request import RunRequest
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import MemoryStore
from wakeful.system import SystemClock
from wakeful.testing import scripted


class Unnoticing(SystemClock):
    """Counts every second, whether the process could use it or not."""

    def skipped(self) -> int:
        return 0


@tool(effect="pure")
async def nap() -> str:
    """Stop the process until somebody continues it."""
    sys.stdout.write("stopped\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSTOP)
    return "awake"


async def main(clock: SystemClock) -> None:
    agent = Agent("sleeper", scripted([{"calls": [{"name": "nap", "arguments": {}}]}, "done"]), tools=[nap])
    result = await run_turn(new_engine(MemoryStore(), clock=clock), RunRequest(agent, "go", budget=Budget(seconds=5)))
    sys.stdout.write(f"{result.status} {result.stop_reason}\n")


asyncio.run(main(SystemClock() if sys.argv[1] == "noticing" else Unnoticing()))
