"""The end of the serving process, once somebody asks for it: turns come to rest, then requests, then the store.

No turn begins another step, and whoever waits is told to come back. Calls of models and tools that are under way have
as long as the owner says. A second signal, or a drain of 0, ends that at once: what is cut off is settled at the next
start.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from wakeful.service import owner_drain
from wakeful.service.living_runtime import LivingRuntime
from wakeful.service.serving.autostart import notify
from wakeful.service.serving.options import END_SECONDS
from wakeful.views.process_status import DrainStatus, WaitedFor, drain_words

TELL_SECONDS = 1.0
"""What is waited for is told after so long: most of it is over by then."""


class ServingDrain:
    """The end that somebody asks for."""

    def __init__(self, living: LivingRuntime, announce: Callable[[str], None], close: Callable[[], None]) -> None:
        self.closing = asyncio.Event()
        """Set when it begins: streams and waiting answers end."""
        self._living = living
        self._announce = announce
        self._close = close
        """Called when no turn runs any more: no new connection, and requests come to their end."""
        self._until = 0.0
        self._timeout: asyncio.Timeout | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._is_over = False
        """No turn runs any more, or is waited for."""

    def begin(self, seconds: float | None = None) -> None:
        """With calls under way given these seconds, or those of the owner. Asked for again, other seconds count from
        now."""
        if self.closing.is_set() and (seconds is None or self._is_over):
            return
        seconds = owner_drain() if seconds is None else seconds
        self._until = asyncio.get_running_loop().time() + seconds
        notify(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={round((seconds + END_SECONDS) * 1_000_000)}")
        if self._waiting is None:
            self.closing.set()
            self._announce("draining")
            self._living.begin_no_step()
            self._waiting = asyncio.create_task(self._wait())
        elif self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(self._until)

    @property
    def status(self) -> DrainStatus | None:
        if not self.closing.is_set():
            return None
        left = max(0.0, self._until - asyncio.get_running_loop().time())
        steps = self._living.drain.under_way()
        return DrainStatus(
            seconds_left=round(left, 3),
            waits_for=tuple(
                WaitedFor(agent_id=each.agent_id, tool=each.tool, seconds=round(each.seconds, 3)) for each in steps
            ),
        )

    def hear_signals(self) -> None:
        """A signal begins it, and another one ends it at once. A terminal that is closed says so by signals, too, and
        more than once, unless the process was begun with `nohup`: they only begin it."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, lambda: self.begin(0 if self.closing.is_set() else None))
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            loop.add_signal_handler(signal.SIGHUP, self.begin)

    async def _wait(self) -> None:
        telling = asyncio.create_task(self._tell())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._until) as self._timeout:
                    await self._living.scheduler.drain()
            self._is_over = True
            await self._living.scheduler.abandon()
        finally:
            telling.cancel()
            self._close()

    async def _tell(self) -> None:
        await asyncio.sleep(TELL_SECONDS)
        if (status := self.status) is not None:
            self._announce(f"{drain_words(status)}; a second signal (Ctrl-C) ends it now")
