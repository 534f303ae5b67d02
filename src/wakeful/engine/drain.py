"""The end of a process, as its turns hear of it: none begins another step, and what is under way may end.

A step is a request to a model or a call of a tool: once it has begun it is paid for, or has its effect. A turn with no
step under way is let go of where it stands, as a kill would let go of it, and the next process takes it up. A turn that
only waits holds nobody up.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class StepUnderWay(NamedTuple):
    """What a drain waits for."""

    agent_id: str
    tool: str
    """Blank: a model is asked."""
    seconds: float
    """For so long already."""


class DrainingTurn(NamedTuple):
    """A turn that runs, as far as a drain has to do with it."""

    look_again: Callable[[], None]
    under_way: Callable[[], list[StepUnderWay]]


class Drain:
    """Whether the turns of a process are to come to rest at their next step."""

    __slots__ = ("_turns", "is_on")

    def __init__(self) -> None:
        self.is_on = False
        self._turns: dict[int, DrainingTurn] = {}

    def begin(self) -> None:
        self.is_on = True
        for turn in self._turns.values():
            turn.look_again()

    @contextmanager
    def joined(self, turn: DrainingTurn) -> Iterator[None]:
        """While a turn runs."""
        self._turns[id(turn)] = turn
        try:
            yield
        finally:
            del self._turns[id(turn)]

    def under_way(self) -> list[StepUnderWay]:
        return [step for turn in self._turns.values() for step in turn.under_way()]
