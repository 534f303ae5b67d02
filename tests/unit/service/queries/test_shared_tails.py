"""One reader of a log for many followers, when the log cannot be read for a while."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from wakeful.errors import StoreLocked
from wakeful.ports import Watch
from wakeful.service.queries.shared_tails import SharedTail, TailEntry
from wakeful.store.watches import Watches


class Numbers(SharedTail[int, int]):
    """A log of numbers, which is locked for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.watches, self.is_locked = [1, 2, 3], Watches(), False

    async def _newest(self) -> int:
        return self.rows[-1]

    async def _rows(self, position: int, *, limit: int, results: bool = False) -> Sequence[int]:
        if self.is_locked:
            raise StoreLocked("another program holds it", "Try again.")
        return [row for row in self.rows if row > position][:limit]

    async def _entry(self, row: int) -> TailEntry[int]:
        return TailEntry(row, row)

    def _position_of(self, row: int) -> int:
        return row

    def _watch(self) -> Watch:
        return self.watches.open_feed()

    def follow(self, position: int) -> AsyncGenerator[TailEntry[int], None]:
        return self._follow(position)

    def add(self, row: int) -> None:
        self.rows.append(row)
        self.watches.wake_feed()


async def test_those_who_come_after_a_failure_begin_anew_while_one_who_stopped_reading_stays() -> None:
    log = Numbers()
    async with aclosing(log.follow(0)) as stalled:
        assert (await anext(stalled)).shown == 1
        log.is_locked = True
        log.add(4)
        async with aclosing(log.follow(3)) as reader:
            with pytest.raises(StoreLocked):
                await anext(reader)
        log.is_locked = False
        async with aclosing(log.follow(3)) as again:
            assert (await anext(again)).shown == 4
            log.add(5)
            assert (await anext(again)).shown == 5
        left: list[Any] = [(await anext(stalled)).shown for _ in range(4)]
        assert left == [2, 3, 4, 5], "and it has missed nothing"
