"""A program that stops itself in the middle of a run, and wakes up when another has taken its place.

python zombie.py FOLDER LEASE-SECONDS before-an-append | before-an-effect | before-an-effect-unchecked | none
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeful import Agent, RunContext, run, tool
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import OwnerFenced
from wakeful.contracts.events import ModelCompleted
from wakeful.ports import Claim, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.wrapped_store import WrappedStore


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


class Sleepy(WrappedStore):
    """Stops the process once, at the chosen moment."""

    def __init__(self, inner: Store, when: str) -> None:
        super().__init__(inner)
        self._when = when

    def _sleep(self, moment: str) -> None:
        if self._when.startswith(moment):
            self._when = "none"
            say("stopped")
            os.kill(os.getpid(), signal.SIGSTOP)
            say("awake")

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        if any(isinstance(fact.event, ModelCompleted) for fact in facts):
            self._sleep("before-an-append")
        return await super().append(claim, facts, barrier=barrier, rest=rest, last=last)

    async def hold(self, claim: Claim) -> None:
        unchecked = self._when == "before-an-effect-unchecked"
        self._sleep("before-an-effect")
        if not unchecked:
            await super().hold(claim)


async def main(folder: Path, lease: float, when: str) -> None:
    @tool(effect="irreversible")
    async def send(ctx: RunContext[None]) -> str:
        with (folder / "world").open("a") as world:
            world.write(f"{os.getpid()}\n")
        return "sent"

    steps: list[Any] = [{"calls": [{"name": "send"}]}, "done"]
    agent = Agent("post", ScriptedModel(steps), tools=[send])
    store = await SqliteStore.open(folder / "runs.db", ttl=lease)
    try:
        result = await run(agent, "go", store=Sleepy(store, when), key="k")
        say(f"{result.status} unknown={len(result.unknown)}")
    except OwnerFenced:
        say("fenced")
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))
