"""Whole runs on a disk that forgets: the power is cut at every acknowledgement and inside every effect.

A kill cannot show what a barrier is for, because the kernel keeps what a dead process wrote. So each cut leaves a copy
of what was synced (and, with luck, some of the rest); every copy is held to what was acknowledged and what had begun,
and the run is finished from it.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from unit.store.sqlite.disks import ForgetfulDisk
from wakeful import Agent, RunContext, run, tool
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ToolStarted
from wakeful.ports import AdmissionAnswer, Claim, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.wrapped_store import WrappedStore

_names = itertools.count(1)


class Cut(NamedTuple):
    """What a power cut left, and what it was not allowed to take."""

    folder: Path
    acknowledged: int
    """Facts that must be there: all that was written before the last barrier that returned."""
    effects: dict[str, int]
    """Effects, not pure, that had begun: idempotency key and how often."""


class World:
    """The disk, the cuts, and what the tools did."""

    def __init__(self, folder: Path, luck: Random | None) -> None:
        self.disk = ForgetfulDisk(f"forgetful-{next(_names)}")
        self.folder = folder
        self.luck = luck
        self.cuts: list[Cut] = []
        self.effects: Counter[str] = Counter()
        self.acknowledged = 0

    def cut(self) -> None:
        folder = self.folder / f"cut-{len(self.cuts)}"
        self.disk.cut_the_power(folder, self.luck)
        self.cuts.append(Cut(folder, self.acknowledged, dict(self.effects)))


class CutStore(WrappedStore):
    """Cuts the power after each acknowledgement."""

    def __init__(self, inner: Store, world: World) -> None:
        super().__init__(inner)
        self._world = world

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        answer = await super().admit(agent_id, facts, reserve=reserve, claim=claim)
        await self._safe(agent_id)
        return answer

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        others = await super().append(claim, facts, barrier=barrier, rest=rest, last=last)
        if barrier:
            await self._safe(claim.agent_id)
        else:
            self._world.cut()
        return others

    async def _safe(self, agent_id: str) -> None:
        self._world.acknowledged = len(await self.read(agent_id))
        self._world.cut()


class NoBarriers(CutStore):
    """The engine asks for barriers and gets none."""

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        return await super().append(claim, facts, barrier=False, rest=rest, last=last)

    async def sync(self) -> None:
        pass


def agent(effect: Callable[[str], None], paid: Callable[[str], bool]) -> Agent[None, str]:
    @tool(effect="irreversible")
    async def send(ctx: RunContext[None]) -> str:
        effect(ctx.idempotency_key)
        await asyncio.sleep(0)
        return "sent"

    @tool(effect="irreversible")
    def shred(ctx: RunContext[None]) -> str:
        effect(ctx.idempotency_key)
        return "gone"

    @tool(effect="keyed")
    async def pay(ctx: RunContext[None]) -> str:
        if not paid(ctx.idempotency_key):
            effect(ctx.idempotency_key)
        return "paid"

    @tool(effect="pure")
    async def look() -> str:
        return "seen"

    steps: list[Any] = [
        {"calls": [{"name": "look"}, {"name": "send"}, {"name": "look"}]},
        {"calls": [{"name": "shred"}]},
        {"calls": [{"name": "look"}, {"name": "pay"}]},
        {"calls": [{"name": "send"}, {"name": "shred"}]},
        "done",
    ]
    return Agent("post", ScriptedModel(steps), tools=[send, shred, pay, look])


async def cuts_of_a_run(folder: Path, luck: Random | None, wrap: type[CutStore] = CutStore) -> World:
    world = World(folder, luck)
    log = str(folder / "runs.db-wal")
    inner = await SqliteStore.open(folder / "runs.db", vfs=world.disk.name, sync=lambda _: world.disk.sync(log))

    def effect(key: str) -> None:
        world.effects[key] += 1
        world.cut()

    result = await run(agent(effect, world.effects.__contains__), "go", store=wrap(inner, world), key="k")
    assert result.output == "done"
    world.cut()
    await inner.close()
    return world


async def missing(cut: Cut) -> tuple[int, list[str]]:
    """How many acknowledged facts are gone, and the effects that the log knows nothing of."""
    store = await SqliteStore.open(cut.folder / "runs.db")
    assert await store.verify() == []
    facts = [entry for agent_id in await store.agents() for entry in await store.read(agent_id)]
    await store.close()
    intents = {entry.fact.event.idempotency_key for entry in facts if isinstance(entry.fact.event, ToolStarted)}
    return max(0, cut.acknowledged - len(facts)), [key for key in cut.effects if key not in intents]


async def finish(cut: Cut) -> None:
    """The same program, when the power is back."""
    again: Counter[str] = Counter()
    program = agent(lambda key: again.update([key]), lambda key: key in cut.effects or key in again)
    result = await run(program, "go", store=str(cut.folder / "runs.db"), key="k")
    assert result.output == "done"
    twice = {key: count for key, count in (Counter(cut.effects) + again).items() if count > 1}
    assert not twice, f"effects were repeated: {twice}"
    store = await SqliteStore.open(cut.folder / "runs.db")
    assert {row.call_id for row in await store.unknown()} == {call.call_id for call in result.unknown}
    happened_or_unknown = len(cut.effects) + len(again) + len(result.unknown)
    assert happened_or_unknown >= 5, "an effect neither happened nor is said to be unknown"
    await store.close()


@pytest.mark.parametrize("seed", [None, 1, 2])
async def test_a_power_cut_takes_nothing_that_was_acknowledged_and_no_intent_of_an_effect(
    tmp_path: Path, seed: int | None
) -> None:
    world = await cuts_of_a_run(tmp_path, Random(seed) if seed is not None else None)
    assert len(world.cuts) > 15 and len(world.effects) == 5
    for cut in world.cuts:
        assert await missing(cut) == (0, []), cut.folder.name
        if cut.acknowledged:
            await finish(cut)


async def test_without_barriers_the_same_cuts_find_effects_that_the_log_knows_nothing_of(tmp_path: Path) -> None:
    world = await cuts_of_a_run(tmp_path, None, NoBarriers)
    found = [await missing(cut) for cut in world.cuts]
    assert any(effects for _, effects in found)
