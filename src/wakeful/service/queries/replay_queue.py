"""Turns of those who read what is stored: however many they are, everybody else's work comes between two of them.

One pass of the event loop lets everything run that is ready. Five hundred readers that are all ready would each read,
present and send something in every pass, and a message that needs ten passes to be accepted would wait for all of it.
"""

import asyncio
from collections import deque

SLICE_SECONDS = 0.001
"""How long a turn is. A turn goes to the end of the event that is being presented."""


class ReplayQueue:
    """Gives one turn in a pass of the loop, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self, until: float = 0.0) -> float:
        """Wait for a turn, and get the time at which it is over. Given that time again, it waits only once it is past.

        Nothing is held: a reader that stops in the middle of its turn is in nobody's way.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < until:
            return until
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        if len(self._waiting) == 1:
            loop.call_soon(self._give, loop)
        await waiter
        return loop.time() + SLICE_SECONDS

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():  # its reader may have gone away
                waiter.set_result(None)
                break
        if self._waiting:
            loop.call_soon(self._give, loop)
