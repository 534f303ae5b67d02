"""Two processes that share an agent: one is killed at a chosen moment, the other follows its key and queues behind it.

python two_owners.py FOLDER owner MOMENT | follower | owner 0

The owner dies at its MOMENT-th commit or effect (0: never). The follower begins when a line comes on its standard
input.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crash.worker import note
from wakeful import Agent, RunContext, run, tool
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.ports import AdmissionAnswer, Claim, ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.wrapped_store import WrappedStore


class Moments:
    """Counts what happens, and ends the process at one of them."""

    def __init__(self, deadly: int) -> None:
        self._deadly = deadly
        self.count = 0

    def pass_one(self) -> None:
        self.count += 1
        if self.count == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


class Mortal(WrappedStore):
    """A store whose process may die before and after every write."""

    def __init__(self, inner: Store, moments: Moments, folder: Path) -> None:
        super().__init__(inner)
        self._moments = moments
        self._folder = folder

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        self._moments.pass_one()
        answer = await super().admit(agent_id, facts, reserve=reserve, claim=claim)
        note(self._folder / "begun", "admitted")
        self._moments.pass_one()
        return answer

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        claim = await super().claim(turn_id, reservation=reservation)
        self._moments.pass_one()
        return claim

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        self._moments.pass_one()
        others = await super().append(claim, facts, barrier=barrier, rest=rest, last=last)
        self._moments.pass_one()
        return others

    async def release(self, claim: Claim) -> None:
        self._moments.pass_one()
        await super().release(claim)
        self._moments.pass_one()


async def main(folder: Path, who: str, deadly: int) -> None:
    moments = Moments(deadly)

    @tool(effect="irreversible")
    async def charge(ctx: RunContext[None], key: str) -> str:
        """Take the money."""
        moments.pass_one()
        note(folder / "world", key)
        moments.pass_one()
        return "charged"

    async def answer(request: ModelRequest) -> Any:
        key = [item.text for item in request.history if item.role == "user"][-1]
        if request.answered == 0:
            return {"calls": [{"name": "charge", "arguments": {"key": key}}]}
        return f"{key} is done"

    agent = Agent("shop", ScriptedModel(answer), tools=[charge])
    opened = await SqliteStore.open(folder / "runs.db")
    store = Mortal(opened, moments, folder)
    sent = {"owner": [("shared", "t"), ("side", "u")], "follower": [("shared", "t"), ("second", "t")]}[who]
    if who == "follower":
        await asyncio.to_thread(sys.stdin.readline)
    try:
        results = await asyncio.gather(*(run(agent, key, store=store, thread=t, key=key) for key, t in sent))
        for (key, _), result in zip(sent, results, strict=True):
            note(folder / "answers", f"{key} {result.status} {len(result.unknown)} {result.output}")
    finally:
        await opened.close()
    sys.stdout.write(f"{moments.count}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
