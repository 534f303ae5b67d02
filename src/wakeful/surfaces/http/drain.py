"""The end of a serving process: who hears of it, and by when all of it is over.

There is one deadline. Requests that are being answered and turns that run have the same seconds, at the same time, so
that whoever ends the process (`wakeful daemon stop`, a manager of services) does not run out of patience in between.
"""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

DRAIN_SECONDS = 10.0


@dataclass(slots=True)
class Drain:
    """The end that somebody asks for, once."""

    tell: Callable[[], None]
    """Called when it begins."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it begins: streams and waiting answers end."""
    _until: float = 0.0

    def begin(self) -> None:
        if self.closing.is_set():
            return
        self._until = asyncio.get_running_loop().time() + DRAIN_SECONDS
        self.closing.set()
        self.tell()

    @property
    def seconds_left(self) -> float:
        """Of those that it has, once it has begun."""
        return max(0.0, self._until - asyncio.get_running_loop().time())

    def hear_signals(self) -> None:
        """A signal begins it, and another one cuts nothing short: as long as the loop runs, none ends the process."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self.begin)
