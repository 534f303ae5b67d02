"""The machine's clock and ids: the only places where the runtime meets real time and real chance.

Both are handed in as ports (`Clock`, `Ids`), so that a test can hand in its own.
"""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
"""Ten bits at a time: half the steps of going letter by letter."""

_GROWING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine is suspended: a lease that ran out during the night has run out."""


TICK_SECONDS = 1.0
SKIP_SECONDS = 5.0
"""A longer time between two ticks was no work of this process: it was stopped, or the machine, or the clock was set."""
_SURELY_NONE = int(SKIP_SECONDS * 0.5e9)
"""Nanoseconds since the last look in which nothing can have been skipped."""
_LINGER_TICKS = 10
"""Ticks without a follower after which the thread ends: runs one after another share it."""


class SkippedTime:
    """Notices time in which this process could not run.

    A thread of its own looks at the clock each second. Work that keeps the event loop busy does not hold it up; a
    stopped process and a suspended machine do. Whoever asks first after such a time finds it, the thread or `total`.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._total = 0
        self._last = self._last_growing = 0
        self._followers = 0
        self._thread: threading.Thread | None = None

    def total(self) -> int:
        """Microseconds skipped so far."""
        if 0 <= time.time_ns() - self._last < _SURELY_NONE:
            return self._total  # somebody looked just now; asked several times in each round of every turn
        if self._process != os.getpid():
            self._begin()  # a forked child: the thread is gone, and may have gone with the lock
        with self._lock:
            if self._followers:
                self._look()
            return self._total

    @contextmanager
    def follow(self) -> Iterator[None]:
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            if not self._followers:
                self._last, self._last_growing = time.time_ns(), time.monotonic_ns()
            self._followers += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="wakeful-skipped-time", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._followers -= 1

    def _look(self) -> None:
        now, growing = time.time_ns(), time.monotonic_ns()
        passed = now - self._last
        if passed > SKIP_SECONDS * 1e9 or passed < 0:
            worked = min(growing - self._last_growing, int(TICK_SECONDS * 1e9))
            self._total += (passed - worked) // 1000
        self._last, self._last_growing = now, growing

    def _tick(self) -> None:
        unused = 0
        while True:
            time.sleep(TICK_SECONDS)
            with self._lock:
                unused = 0 if self._followers else unused + 1
                if unused > _LINGER_TICKS:
                    self._thread = None
                    return
                if self._followers:
                    self._look()


_SKIPPED = SkippedTime()
"""One for the process: every turn in it was stopped together."""


class SystemClock:
    """The clock of this machine."""

    __slots__ = ()

    def now(self) -> int:
        """Microseconds since the epoch."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that only grow, time spent suspended included."""
        return time.clock_gettime(_GROWING)

    def skipped(self) -> int:
        """Microseconds in which this process could not run, or that the clock was set by."""
        return _SKIPPED.total()

    def follow(self) -> AbstractContextManager[None]:
        return _SKIPPED.follow()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class UniqueIds:
    """`turn_01K4M3...`: 26 letters and digits, 48 bits of milliseconds and then 80 random bits (a ULID).

    They sort by the millisecond they were made in. The random part is drawn anew each time, never counted on from the
    last one: two processes that were one before a fork must not give the same names.
    """

    __slots__ = ("_millisecond", "_stamp")

    def __init__(self) -> None:
        self._millisecond = -1
        self._stamp = ""

    def new(self, prefix: str) -> str:
        millisecond = time.time_ns() // 1_000_000
        if millisecond != self._millisecond:
            self._stamp = _letters(millisecond, 5)
            self._millisecond = millisecond
        chance, two = int.from_bytes(os.urandom(10), "big"), _PAIRS
        return (
            f"{prefix}_{self._stamp}"
            f"{two[chance >> 70]}{two[chance >> 60 & 1023]}{two[chance >> 50 & 1023]}{two[chance >> 40 & 1023]}"
            f"{two[chance >> 30 & 1023]}{two[chance >> 20 & 1023]}{two[chance >> 10 & 1023]}{two[chance & 1023]}"
        )


def _letters(number: int, pairs: int) -> str:
    """A number as Crockford base 32, two letters for each ten bits."""
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(10 * (pairs - 1), -1, -10)])
