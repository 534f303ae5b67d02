"""Named places to crash, and the switch that crashes there: the process ends by SIGKILL, with no word to anybody.

A place is reached many times; a kill point names one of them, before or after what happens there. Places are `append`
and `admit` (a commit of the store), `ledger` (an effect on the world) and `here` (anywhere a tool says so).
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Literal, NamedTuple, TypeAlias

Place: TypeAlias = Literal["append", "admit", "ledger", "here"]
Moment: TypeAlias = Literal["before", "after"]


class KillPoint(NamedTuple):
    """One moment of a run: `before` or `after` the `number`th (from 1) visit to a place."""

    place: Place
    number: int
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment} {self.place} {self.number}"


def kill_this_process() -> None:
    """No handlers, no flushing, no goodbye."""
    os.kill(os.getpid(), signal.SIGKILL)


class CrashSwitch:
    """Counts the visits to each place, and trips at one of them when it is armed."""

    def __init__(self, armed: KillPoint | None = None, trip: Callable[[], None] = kill_this_process) -> None:
        self._armed = armed
        self._trip = trip
        self._counters: dict[Place, count[int]] = {"append": count(1), "admit": count(1), "ledger": count(1)}
        self._counters["here"] = count(1)
        self.visits: Counter[Place] = Counter()

    @contextmanager
    def around(self, place: Place) -> Iterator[None]:
        """Before and after what happens inside. Visits overlap; each keeps its own number."""
        number = self._visit(place)
        self._maybe(KillPoint(place, number, "before"))
        yield
        self._maybe(KillPoint(place, number, "after"))

    def here(self) -> None:
        """A place without an inside: there is only a before."""
        self._maybe(KillPoint("here", self._visit("here"), "before"))

    def points(self) -> list[KillPoint]:
        """Every point that was passed."""
        moments: dict[Place, tuple[Moment, ...]] = {"here": ("before",)}
        return [
            KillPoint(place, number, moment)
            for place in self._counters
            for number in range(1, self.visits[place] + 1)
            for moment in moments.get(place, ("before", "after"))
        ]

    def _visit(self, place: Place) -> int:
        number = next(self._counters[place])  # atomic, unlike adding one: tools run on threads
        self.visits[place] = max(number, self.visits[place])
        return number

    def _maybe(self, point: KillPoint) -> None:
        if point == self._armed:
            self._trip()


_active = CrashSwitch()


def active_switch() -> CrashSwitch:
    """The switch of this process; never armed outside the crash suite's children."""
    return _active


def activate(switch: CrashSwitch) -> None:
    """For a child of the crash suite, before its scenario runs."""
    global _active
    _active = switch
