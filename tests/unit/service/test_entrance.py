"""Very many starts at once begin in portions: the loop has its turn between them, and the order holds."""

import asyncio
from collections import Counter
from contextlib import suppress

from wakeful.service.entrance import Entrance


class _Ticks:
    """Counts the ticks of the loop while it is open."""

    def __init__(self) -> None:
        self.now = 0

    async def count(self) -> None:
        while True:
            self.now += 1
            await asyncio.sleep(0)


async def _started(entrance: Entrance, many: int) -> tuple[list[int], Counter[int]]:
    """In which order they came in, and how many in which tick."""
    ticks, order, begun = _Ticks(), list[int](), Counter[int]()
    counting = asyncio.create_task(ticks.count())

    async def one(number: int) -> None:
        await entrance.enter()
        order.append(number)
        begun[ticks.now] += 1

    await asyncio.gather(*(one(number) for number in range(many)))
    counting.cancel()
    with suppress(asyncio.CancelledError):
        await counting
    return order, begun


async def test_no_tick_begins_more_than_a_portion() -> None:
    order, begun = await _started(Entrance(portion=4), 50)
    assert order == list(range(50))
    assert max(begun.values()) == 4
    assert len(begun) == 13


async def test_a_lone_start_does_not_wait() -> None:
    entrance = Entrance(portion=1)
    for _ in range(3):
        entering = entrance.enter()
        try:
            entering.send(None)
        except StopIteration:
            pass
        else:
            raise AssertionError("it waited")
        await asyncio.sleep(0)


async def test_one_that_is_cancelled_holds_up_nobody() -> None:
    entrance = Entrance(portion=1)
    order: list[int] = []

    async def one(number: int) -> None:
        await entrance.enter()
        order.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(6)]
    await asyncio.sleep(0)  # the first is in, all others wait
    tasks[1].cancel()  # waits
    tasks[4].cancel()
    await asyncio.sleep(0)  # the third is let in, and has not run
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 3, 5]
    await asyncio.wait_for(entrance.enter(), 5)


async def test_who_comes_later_does_not_overtake() -> None:
    entrance = Entrance(portion=2)
    order: list[int] = []

    async def one(number: int) -> None:
        await entrance.enter()
        order.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(3)]
    for late in range(3, 9):
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(one(late)))
    await asyncio.gather(*tasks)
    assert order == list(range(9))


def test_every_loop_has_its_own_queue() -> None:
    entrance = Entrance(portion=1)
    for _ in range(2):
        order, _ = asyncio.run(_started(entrance, 3))
        assert order == [0, 1, 2]
