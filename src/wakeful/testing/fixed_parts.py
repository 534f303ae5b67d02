"""Time that stands still, and ids that count."""

import asyncio
import heapq
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from itertools import count

START = datetime(2026, 1, 1, tzinfo=UTC)


class FixedClock:
    """A `Clock` that moves only when it is told to: `advance(seconds)` wakes those whose sleep is over, in order."""

    def __init__(self, start: datetime | int = START) -> None:
        """`start` is a moment with a time zone, or microseconds since the epoch."""
        if isinstance(start, datetime):
            if start.tzinfo is None:
                raise ValueError(f"FixedClock(start={start!r}): give the moment a time zone, such as UTC")
            start = round(start.timestamp() * 1_000_000)
        self._start = start
        self._passed = 0
        """Microseconds, so that many small steps add up exactly."""
        self._skipped = 0
        self._order = count()
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._fell_asleep = asyncio.Event()

    def now(self) -> int:
        return self._start + self._passed

    def monotonic(self) -> float:
        return self._passed / 1_000_000

    def skipped(self) -> int:
        return self._skipped

    def follow(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def sleep(self, seconds: float) -> None:
        """Until the clock was advanced past it; a sleep of nothing only lets others run."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + round(seconds * 1_000_000), next(self._order), woken))
        self._fell_asleep.set()
        await woken

    @property
    def sleeping(self) -> int:
        """How many are asleep."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def somebody_sleeps(self) -> None:
        """Until somebody is asleep, and `advance` has somebody to wake. For the sleepers' own loop."""
        while not self.sleeping:
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def skip(self, seconds: float) -> None:
        """Let time pass in which nothing could run, like a suspended machine. Below zero: set the clock back."""
        self._skipped += round(seconds * 1_000_000)
        if seconds >= 0:
            self.advance(seconds)
        else:
            self._start += round(seconds * 1_000_000)

    def advance(self, seconds: float) -> None:
        """Let time pass. May be called from another thread than the sleepers'."""
        if seconds < 0:
            raise ValueError(f"advance({seconds}): time does not go back")
        self._passed += round(seconds * 1_000_000)
        while self._sleepers and self._sleepers[0][0] <= self._passed:
            woken = heapq.heappop(self._sleepers)[2]
            loop = woken.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, woken)


class SequentialIds:
    """`Ids` that count, for each prefix: `turn_0001`, `turn_0002`. Unique in one process only."""

    def __init__(self) -> None:
        self._counters: dict[str, count[int]] = {}

    def new(self, prefix: str) -> str:
        return f"{prefix}_{next(self._counters.setdefault(prefix, count(1))):04d}"


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():  # it may have been cancelled meanwhile
        sleeper.set_result(None)
