"""Time that stands still, and ids that count."""

import asyncio
from datetime import UTC, datetime

import pytest

from wakeful.ports import Clock, Ids
from wakeful.testing import FixedClock, SequentialIds


def test_time_stands_still_until_it_is_advanced() -> None:
    clock: Clock = FixedClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    assert clock.now() == clock.now() == 1_777_636_800_000_000
    assert clock.monotonic() == 0
    assert isinstance(clock, FixedClock)
    for _ in range(10):
        clock.advance(0.1)
    assert (clock.now(), clock.monotonic()) == (1_777_636_801_000_000, 1.0)
    assert FixedClock(7).now() == 7


def test_time_does_not_go_back_and_has_a_zone() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        FixedClock().advance(-1)
    with pytest.raises(ValueError, match="time zone"):
        FixedClock(datetime(2026, 5, 1))


async def test_sleepers_wake_in_the_order_of_their_ends() -> None:
    clock, woken = FixedClock(), list[int]()

    async def sleeper(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.ensure_future(sleeper(seconds)) for seconds in (3, 1, 2)]
    await clock.somebody_sleeps()
    await asyncio.sleep(0)
    assert clock.sleeping == 3
    clock.advance(0.999)
    await asyncio.sleep(0)
    assert woken == []
    clock.advance(1.5)
    await asyncio.wait(tasks[1:])
    assert (woken, clock.sleeping) == ([1, 2], 1)
    clock.advance(10)
    await tasks[0]
    assert woken == [1, 2, 3]


async def test_a_sleep_of_nothing_returns_and_a_cancelled_one_is_forgotten() -> None:
    clock = FixedClock()
    await clock.sleep(0)
    task = asyncio.ensure_future(clock.sleep(1))
    await clock.somebody_sleeps()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.sleeping == 0
    clock.advance(2)
    await asyncio.sleep(0)


async def test_another_thread_may_advance_it() -> None:
    clock = FixedClock()
    task = asyncio.ensure_future(clock.sleep(60))
    await clock.somebody_sleeps()
    await asyncio.to_thread(clock.advance, 60)
    await task


def test_ids_count_for_each_prefix() -> None:
    ids: Ids = SequentialIds()
    assert [ids.new("turn"), ids.new("msg"), ids.new("turn")] == ["turn_0001", "msg_0001", "turn_0002"]
