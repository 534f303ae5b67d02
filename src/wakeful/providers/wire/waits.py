"""A limit on each of many short waits, with one timer for all of them.

Setting a timer for every piece of a stream costs more than reading the piece. Here a wait only notes until when it may
last; the timer looks at that when it rings, and goes to sleep again if there is time left.
"""

import asyncio
from typing import Any


class Waits:
    """The waits of one exchange, one at a time. Whichever task waits is the one that is woken."""

    __slots__ = ("_before", "_handle", "_loop", "_rings_at", "_rung", "_task", "_until")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._rings_at = 0.0
        self._until = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._before = 0
        self._rung = False

    def begin(self, until: float) -> None:
        """A wait begins, and may last until this time of the loop's clock."""
        self._task = task = asyncio.current_task(self._loop)
        assert task is not None
        self._before = task.cancelling()
        self._until = until
        if self._handle is None or self._rings_at > until:
            self._set(until)

    def end(self) -> None:
        """The wait is over, however it ended."""
        if self._rung and self._task is not None:  # something else ended it in the same moment: nothing is cancelled
            self._task.uncancel()
        self._rung = False
        self._task = None

    def was_too_long(self) -> bool:
        """Whether the cancellation that ended the wait came from here, and from nobody else. Takes it back."""
        if not self._rung or self._task is None:
            return False
        self._rung = False
        return self._task.uncancel() <= self._before

    def close(self) -> None:
        """No more waits."""
        self._task = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self, at: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._rings_at = at
        self._handle = self._loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._handle = None
        if self._task is None:
            return  # nobody waits; the next wait sets it again
        if self._until > self._loop.time():
            self._set(self._until)
        else:
            self._rung = True
            self._task.cancel()
