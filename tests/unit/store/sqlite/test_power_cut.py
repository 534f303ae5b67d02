"""What was acknowledged survives a power cut, wherever it falls; without the barrier the same check finds losses."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from kit.runs.store_facts import AGENT, admitted, interrupt, message, requested, started
from wakeful.contracts.errors import StoreRewound
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.helper import Sync

from .disks import ForgetfulDisk


@pytest.fixture
def disk() -> ForgetfulDisk:
    return ForgetfulDisk("forgetful")


async def left_after_a_power_cut(disk: ForgetfulDisk, folder: Path, luck: Random | None) -> int:
    """How many whole events another process finds afterwards."""
    disk.cut_the_power(folder, luck)
    store = await SqliteStore.open(folder / "runs.db")
    assert await store.verify() == []
    left = len(await store.read(AGENT))
    await store.close()
    return left


async def losses(disk: ForgetfulDisk, folder: Path, sync: Sync, luck: Random | None = None) -> int:
    """Work, cutting the power after each acknowledgement: how many acknowledged events were gone, in all."""
    store = await SqliteStore.open(folder / "runs.db", vfs=disk.name, sync=sync)
    await admitted(store)
    claim = await store.claim("turn_1")

    async def appended(count: int, *, barrier: bool) -> None:
        await asyncio.gather(*(store.append(claim, [requested()] * 3, barrier=barrier) for _ in range(count)))

    async def one_by_one(count: int) -> None:
        for _ in range(count):
            await store.append(claim, [requested(), requested()])
        await store.sync()

    async def steps() -> AsyncIterator[Awaitable[object]]:
        yield store.append(claim, [started()], barrier=True)
        yield store.admit(AGENT, [interrupt()])
        yield appended(5, barrier=True)
        yield one_by_one(450)  # long enough for the log to be started anew, twice
        yield asyncio.gather(*(store.admit(AGENT, [message(f"turn_{n}")]) for n in range(10, 90)))
        yield one_by_one(150)
        yield store.append(claim, [requested()], barrier=True)

    lost = 0
    cuts = 0
    async for step in steps():
        await step
        promised = len(await store.read(AGENT))
        cuts += 1
        lost += max(0, promised - await left_after_a_power_cut(disk, folder / f"cut_{cuts}", luck))
    await store.close()
    return lost


async def test_nothing_acknowledged_is_lost(disk: ForgetfulDisk, tmp_path: Path) -> None:
    log = str(tmp_path / "runs.db-wal")
    assert await losses(disk, tmp_path, lambda _: disk.sync(log)) == 0


@pytest.mark.parametrize("seed", range(3))
async def test_nor_when_the_disk_wrote_some_of_the_rest_in_any_order(
    disk: ForgetfulDisk, tmp_path: Path, seed: int
) -> None:
    log = str(tmp_path / "runs.db-wal")
    assert await losses(disk, tmp_path, lambda _: disk.sync(log), Random(seed)) == 0


async def test_without_the_barrier_there_are_losses_and_the_anchor_knows_of_them(
    disk: ForgetfulDisk, tmp_path: Path
) -> None:
    nothing: Callable[[int], None] = lambda _: None  # noqa: E731
    with pytest.raises(StoreRewound, match="says that it held the log of 1 agent"):
        await losses(disk, tmp_path, nothing)


async def test_an_append_without_a_barrier_may_be_lost_and_what_is_left_is_whole(
    disk: ForgetfulDisk, tmp_path: Path
) -> None:
    log = str(tmp_path / "runs.db-wal")
    store = await SqliteStore.open(tmp_path / "runs.db", vfs=disk.name, sync=lambda _: disk.sync(log))
    await admitted(store)
    claim = await store.claim("turn_1")
    await store.append(claim, [started(), requested()])
    assert await left_after_a_power_cut(disk, tmp_path / "cut", None) == 2
    await store.sync()
    assert await left_after_a_power_cut(disk, tmp_path / "later", None) == 4
    await store.close()
