"""The machine's clock and ids."""

import asyncio
import os
import re
import time

from wakeful.ports import Clock, Ids
from wakeful.system import SystemClock, UniqueIds

ULID = re.compile(r"turn_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def test_ids_carry_their_prefix_and_are_never_the_same() -> None:
    ids: Ids = UniqueIds()
    made = [ids.new("turn") for _ in range(10_000)]
    assert len(set(made)) == len(made)
    assert all(ULID.fullmatch(name) for name in made)


def test_ids_of_a_later_millisecond_sort_later() -> None:
    ids = UniqueIds()
    first, began = ids.new("turn"), time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= began:
        pass
    assert first < ids.new("turn")


def test_two_processes_that_were_one_give_different_ids() -> None:
    ids = UniqueIds()
    ids.new("turn")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ids.new("turn").encode())
        os._exit(0)
    mine = ids.new("turn")
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() != mine
    os.close(reading)
    os.close(writing)


def test_the_clock_tells_microseconds_and_seconds_that_only_grow() -> None:
    clock: Clock = SystemClock()
    before, told, after = time.time(), clock.now(), time.time()
    assert before - 0.001 <= told / 1_000_000 <= after
    assert clock.monotonic() <= clock.monotonic()


async def test_sleeping_lets_others_run() -> None:
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    task = asyncio.ensure_future(other())
    await SystemClock().sleep(0)
    await SystemClock().sleep(0)
    assert ran == ["other"]
    await task
