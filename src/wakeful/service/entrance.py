"""Very many turns that are started at once begin in portions, in the order in which they came.

Beginning a turn (its store, its checks, its message made into facts) takes the loop about half a millisecond, and
whatever is ready in one tick runs before anything else does: a thousand starts in one tick would stop every other turn,
timer and request for half a second. A lone start passes at once.
"""

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

PORTION = 16
"""At most so many starts in one tick of the loop."""


class Entrance:
    """One place that turns come through on their way to their first transaction."""

    def __init__(self, portion: int = PORTION) -> None:
        self._portion = portion
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiters] = WeakKeyDictionary()

    async def enter(self) -> None:
        """Return at once, or in a later tick when a portion has begun in this one already."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Waiters(self._portion)
        if not queue.passes(loop):
            await queue.wait(loop)


class _Waiters:
    """Who waits at an entrance, on one loop."""

    def __init__(self, portion: int) -> None:
        self._portion = portion
        self._begun = 0
        """In this tick."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._called = 0
        """Those who were let in and have not run since: nobody who came later goes before them."""

    def passes(self, loop: asyncio.AbstractEventLoop) -> bool:
        if self._waiting or self._called or self._begun >= self._portion:
            return False
        if self._begun == 0:
            loop.call_soon(self._next_tick, loop)
        self._begun += 1
        return True

    async def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        future = loop.create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if not future.cancelled():
                self._called -= 1

    def _next_tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun = 0
        while self._waiting and self._begun < self._portion:
            future = self._waiting.popleft()
            if not future.done():  # else its task was cancelled
                future.set_result(None)
                self._called += 1
                self._begun += 1
        if self._begun:
            loop.call_soon(self._next_tick, loop)


arrivals = Entrance()
"""Before a store is opened for a run: runs of the library."""
starts = Entrance()
"""Before a request is checked and its message made safe: whoever asks."""
