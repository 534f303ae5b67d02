"""The newest entries of a log, read once for all who follow it.

While somebody waits for what is new, one task reads it; each follower takes it from memory at its own pace, and one
that fell behind reads pieces of the store, in its turn (`replay_queue`), together with those who are at the same place.
Nothing is kept for a slow reader but the piece that it is at, and nothing is read for one that stopped.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from wakeful.ports import Watch
from wakeful.service.queries.replay_queue import ReplayQueue

PAGE = 200
"""New entries that are read at once."""
PIECE = 16
"""Old entries that are read at once: a reader that stops keeps no more of them."""
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


class _Piece(Generic[R, T]):
    """Some old rows, and those of them that were shown already; held by those who are reading it."""

    def __init__(self, rows: Sequence[R], *, is_last: bool) -> None:
        self.rows, self.is_last = rows, is_last
        self.shown: dict[int, TailEntry[T] | None] = {}


class SharedTail(ABC, Generic[R, T]):
    """Reads one log for any number of followers."""

    def __init__(self, recent: int = RECENT, replays: ReplayQueue | None = None) -> None:
        self._most = recent
        self._replays = replays or ReplayQueue()
        """Turns of those who are behind, here and in other logs."""
        self._pieces: WeakValueDictionary[tuple[int, bool], _Piece[R, T]] = WeakValueDictionary()
        """By the position before it, and whether it has results alone."""
        self._followers = 0
        self._pump: asyncio.Task[None] | None = None
        self._recent: deque[TailEntry[T]] = deque()
        self._from = self._upto = 0
        """Every entry behind the first position and up to the second is in memory."""
        self._news = asyncio.Event()
        self._result_news = asyncio.Event()
        """For those who follow results alone: other entries do not wake them."""
        self._waiting = 0
        """How many followers have everything that was read so far."""
        self._wanted = asyncio.Event()
        """Somebody waits."""
        self._failure: Exception | None = None

    @property
    def is_followed(self) -> bool:
        return self._followers > 0

    @property
    def _is_reading(self) -> bool:
        """Not after a failure: those who come then begin anew, also while one who was there before stays."""
        return self._pump is not None and not self._pump.done()

    # --- what is read, and from where --------------------------------------------------------------------------------

    @abstractmethod
    async def _newest(self) -> int:
        """The position of the newest entry; 0: there is none."""

    @abstractmethod
    async def _rows(self, position: int, *, limit: int, results: bool = False) -> Sequence[R]:
        """The next rows behind a position, of all kinds or of results alone."""

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
        until = 0.0
        try:
            while True:
                news, kept_from = self._result_news if results else self._news, self._from
                if self._failure is not None:
                    raise self._failure
                if position < kept_from:
                    until = await self._replays.turn(until)
                    piece = await self._piece(position, results=results)
                    for place, row in enumerate(piece.rows):
                        until = await self._replays.turn(until)
                        position = self._position_of(row)
                        if (entry := await self._shown_in(piece, place)) is not None:
                            yield entry
                    if piece.is_last:
                        position = max(position, kept_from)  # nothing that is wanted stands before that
                    continue
                found = self._in_memory(position)
                for entry in found:
                    if len(found) > 1:
                        until = await self._replays.turn(until)
                    position = entry.position
                    yield entry
                if not found:
                    await self._wait_for(news)
        finally:
            await self._leave()

    async def _piece(self, position: int, *, results: bool) -> _Piece[R, T]:
        """The next old rows. Those who began elsewhere come to the same pieces where positions have no gaps."""
        known = self._pieces.get((position, results))
        if known is not None:
            return known
        limit = PIECE - position % PIECE
        rows = await self._rows(position, limit=limit, results=results)
        await self._check(position)
        piece: _Piece[R, T] = _Piece(rows, is_last=len(rows) < limit)
        if not piece.is_last:  # the last one may have grown when the next reader comes
            self._pieces[position, results] = piece
        return piece

    async def _shown_in(self, piece: _Piece[R, T], place: int) -> TailEntry[T] | None:
        if place not in piece.shown:
            piece.shown[place] = await self._entry(piece.rows[place])
        return piece.shown[place]

    async def _wait_for(self, news: asyncio.Event) -> None:
        self._waiting += 1
        self._wanted.set()
        try:
            await news.wait()
        finally:
            self._waiting -= 1

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
        if not self._is_reading:
            newest = await self._newest()
            if not self._is_reading:  # another follower may have been faster
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
        """Read what is new whenever somebody waits for it, and tell them, until nobody follows any more."""
        watch, own = self._watch(), ReplayQueue()  # what is new does not wait for those who read what is old
        until = 0.0
        try:
            while True:
                if not self._waiting:
                    self._wanted.clear()
                    await self._wanted.wait()
                rows = await self._rows(self._upto, limit=PAGE)
                found = []
                for row in rows:
                    if len(rows) > 1:
                        until = await own.turn(until)
                    if (entry := await self._entry(row)) is not None:
                        found.append(entry)
                if rows:
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
