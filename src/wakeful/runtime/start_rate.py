"""How fast a runtime begins: after an outage everything is due at once, and providers would be asked all of it at once.

A bucket that fills with time: what is idle for a while may begin a whole second's worth together, and no more than
that in each second that follows.
"""

from wakeful.ports import Clock


class StartRate:
    """So many beginnings a second, by the clock's growing seconds."""

    def __init__(self, clock: Clock, per_second: int) -> None:
        self._clock, self._per_second = clock, per_second
        self._left, self._filled_at = float(per_second), clock.monotonic()

    def take(self) -> bool:
        """Begin one more now, if there is room."""
        now = self._clock.monotonic()
        self._left = min(self._per_second, self._left + max(0.0, now - self._filled_at) * self._per_second)
        self._filled_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def pause(self) -> float:
        """Seconds until there is room for one more."""
        return max(0.0, 1 - self._left) / self._per_second
