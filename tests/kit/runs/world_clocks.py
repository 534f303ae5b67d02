"""Wall clocks that are wrong for a life of a runtime: ahead in one, set right before the next."""

import random
from dataclasses import dataclass, field

from wakeful.testing import FixedClock

HOUR, DAY = 3_600.0, 86_400.0
AHEAD = (0.5 * HOUR, 3 * HOUR, 2 * DAY, 20 * DAY)


@dataclass
class WrongClocks:
    """Sets the clock of a world between its lives, never in one. Chances of its own: the story stays the same."""

    clock: FixedClock
    seed: int
    ahead: float = field(default=0.0, init=False)
    """Seconds by which the clock is ahead now."""

    def __post_init__(self) -> None:
        self._chance = random.Random(f"clocks of {self.seed}")

    def set_for_a_life(self) -> None:
        """In one life of three the clock is ahead; in the others it is right."""
        if self._chance.random() < 1 / 3:
            self._set(self._chance.choice(AHEAD))
        else:
            self.set_right()

    def set_right(self) -> None:
        self._set(0.0)

    def _set(self, ahead: float) -> None:
        if ahead != self.ahead:
            self.clock.skip(ahead - self.ahead)
        self.ahead = ahead
