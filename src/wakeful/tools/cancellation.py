"""A cancel signal that a thread can wait for and a coroutine can await.

One signal belongs to one call. Setting it stops nothing by itself: it tells the tool that nobody waits any more.
"""

import asyncio
import threading
from collections.abc import Callable, Generator

# Waiting is rare and setting is rarer: one lock for all signals keeps each of them two empty slots.
_LOCK = threading.Lock()


class Cancelled:
    """Set once by the runtime. `is_set()` anywhere, `wait(seconds)` in a sync tool, `await` in an async one."""

    __slots__ = ("_event", "_futures", "_set", "on_seen")

    def __init__(self) -> None:
        self._set = False
        self._event: threading.Event | None = None
        self._futures: list[asyncio.Future[None]] | None = None
        self.on_seen: Callable[[], None] | None = None
        """Told once, in whichever thread it is, that the tool has seen it."""

    def is_set(self) -> bool:
        if self._set:
            self._seen()
        return self._set

    def _seen(self) -> None:
        told, self.on_seen = self.on_seen, None
        if told is not None:
            told()

    def set(self) -> None:
        """Tell everybody who waits. From any thread, any number of times."""
        with _LOCK:
            self._set = True
            event, futures = self._event, self._futures
            self._futures = None
        if event is not None:
            event.set()
        for future in futures or ():
            try:
                future.get_loop().call_soon_threadsafe(_resolve, future)
            except RuntimeError:  # that loop is closed: nobody awaits there any more
                pass

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until the call is cancelled or the time is over; says whether it is cancelled."""
        if self._set or (timeout is not None and timeout <= 0):
            return self.is_set()
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("ctx.cancelled.wait() would block the event loop: use `await ctx.cancelled` here")
        with _LOCK:
            was_set = bool(self._set)  # since the first look
            self._event = event = self._event or threading.Event()
        return (was_set or event.wait(timeout)) and self.is_set()

    def __await__(self) -> Generator[None, None, None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with _LOCK:
            was_set = self._set
            self._futures = [*(waiting for waiting in self._futures or () if not waiting.done()), future]
        if not was_set:
            yield from future
        self._seen()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
