"""The machine's clock and ids: the only places where the runtime meets real time and real chance.

Both are handed in as ports (`Clock`, `Ids`), so that a test can hand in its own.
"""

import asyncio
import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
"""Ten bits at a time: half the steps of going letter by letter."""

_GROWING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine is suspended: a lease that ran out during the night has run out."""


class SystemClock:
    """The clock of this machine."""

    __slots__ = ()

    def now(self) -> int:
        """Microseconds since the epoch."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that only grow, time spent suspended included."""
        return time.clock_gettime(_GROWING)

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
    return "".join(_PAIRS[number >> shift & 1023] for shift in range(10 * (pairs - 1), -1, -10))
