"""The newest entries of a log, read once for all who follow it.

While somebody follows, one task reads what is new; each follower takes it from memory at its own pace, and one that
fell behind reads pages of the store. Nothing is kept for a slow reader.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from wakeful.ports import Watch

PAGE = 200
"""Entries that are read at once."""
RECENT = 256
"""Entries that are kept for those who follow: each holds its whole event, which may be large."""
LOOK_AGAIN_SECONDS = 30.0
R = TypeVar("R")
T = TypeVar("T")


class TailEntry(NamedTuple, Generic[T]):
    """One entry, and where it stands."""

    position: int
    shown: T
    is_result: bool = True
    """It is for those as well who follow results alone."""


class SharedTail(ABC, Generic[R, T]):
    """Reads one log for any number of followers."""

    def __init__(self, recent: int = RECENT) -> None:
        self._most = recent
        self._followers = 0
        self._pump: asyncio.Task[None] | None = None
        self._recent: deque[TailEntry[T]] = deque()
        self._from = self._upto = 0
        """Every entry behind the first position and up to the second is in memory."""
        self._news = asyncio.Event()
        self._result_news = asyncio.Event()
        """For those who follow results alone: other entries do not wake them."""
        self._failure: Exception | None = None

    @property
    def is_followed(self) -> bool:
        return self._followers > 0

    # --- what is read, and from where --------------------------------------------------------------------------------

    @abstractmethod
    async def _newest(self) -> int:
        """The position of the newest entry; 0: there is none."""

    @abstractmethod
    async def _rows(self, position: int, *, results: bool = False) -> Sequence[R]:
        """At most a page behind a position, of all kinds or of results alone."""

    @abstractmethod
    async def _entry(self, row: R) -> TailEntry[T] | None:
        """A row as it is shown; None: what it stands for is gone."""

    @abstractmethod
    def _position_of(self, row: R) -> int:
        """Where a row stands."""

    async def _check(self, position: int) -> None:
        """Raises CursorGone unless everything behind the position is there."""

    @abstractmethod
    def _watch(self) -> Watch:
        """Told when there may be something new."""

    # --- following ---------------------------------------------------------------------------------------------------

    async def _follow(self, position: int, *, results: bool = False) -> AsyncGenerator[TailEntry[T], None]:
        """What is stored behind a position, then what comes: no gap, each once."""
        await self._join()
        try:
            while True:
                news, kept_from = self._result_news if results else self._news, self._from
                if self._failure is not None:
                    raise self._failure
                if position < kept_from:
                    rows = await self._rows(position, results=results)
                    await self._check(position)
                    for row in rows:  # one at a time: a reader that stops has cost no more than it took
                        position = self._position_of(row)
                        if (entry := await self._entry(row)) is not None:
                            yield entry
                    if len(rows) < PAGE:
                        position = max(position, kept_from)  # nothing that is wanted stands before that
                    continue
                found = self._in_memory(position)
                for entry in found:
                    position = entry.position
                    yield entry
                if not found:
                    await news.wait()
        finally:
            await self._leave()

    def _in_memory(self, position: int) -> Sequence[TailEntry[T]]:
        if not self._recent or position >= self._upto:
            return ()
        if position >= self._recent[-1].position:
            return ()
        if len(self._recent) == 1 or position >= self._recent[-2].position:
            return (self._recent[-1],)
        first = bisect_right(self._recent, position, key=lambda entry: entry.position)
        return [self._recent[place] for place in range(first, min(len(self._recent), first + PAGE))]

    async def _join(self) -> None:
        self._followers += 1
        if self._pump is None:
            newest = await self._newest()
            if self._pump is None:  # another follower may have been faster
                self._from = self._upto = newest
                self._recent.clear()
                self._failure = None
                self._pump = asyncio.create_task(self._read_on())

    async def _leave(self) -> None:
        self._followers -= 1
        if not self._followers and self._pump is not None:
            pump, self._pump = self._pump, None
            pump.cancel()
            with suppress(asyncio.CancelledError):
                await pump

    async def _read_on(self) -> None:
        """Read what is new and tell those who wait, until nobody follows any more."""
        watch = self._watch()
        try:
            while True:
                rows = await self._rows(self._upto)
                if rows:
                    found = [entry for row in rows if (entry := await self._entry(row)) is not None]
                    self._recent.extend(found)
                    self._upto = self._position_of(rows[-1])
                    while len(self._recent) > self._most:
                        self._from = self._recent.popleft().position
                    self._tell(results=any(entry.is_result for entry in found))
                if len(rows) < PAGE:
                    await watch.wait(timeout=LOOK_AGAIN_SECONDS)
        except Exception as problem:  # those who follow are told
            self._failure = problem
            self._tell(results=True)
        finally:
            watch.close()

    def _tell(self, *, results: bool) -> None:
        self._news.set()
        self._news = asyncio.Event()
        if results:
            self._result_news.set()
            self._result_news = asyncio.Event()
