"""Events become facts here: with the turn's ids and the clock's time."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    RuntimeToolRequested,
    RuntimeToolResolved,
)
from wakeful.decisions.levels import Level
from wakeful.ports import Clock

_ASKED_PEOPLE = (ActionRequired, ActionResolved)
_ABOUT_ACTIONS = (*_ASKED_PEOPLE, RuntimeToolRequested, RuntimeToolResolved)


class FactMaker:
    """Stamps the events of one turn."""

    __slots__ = ("_clock", "_thread_id", "_turn_id")

    def __init__(self, clock: Clock, thread_id: str, turn_id: str) -> None:
        self._clock = clock
        self._thread_id = thread_id
        self._turn_id = turn_id

    def __call__(
        self, event: AnyEvent, step: int | None = None, call_id: str | None = None, level: Level | None = None
    ) -> Fact:
        """The event as a fact of its level; without one, of the root."""
        fact = Fact(event, self._clock.now(), self._thread_id, self._turn_id, step, call_id)
        if level is not None and level.id is not None:
            fact.level, fact.depth = level.id, level.depth
            fact.parent_call_id = level.made_by.call_id if level.made_by is not None else None
        if isinstance(event, _ABOUT_ACTIONS):
            fact.action_id = event.action_id if isinstance(event, _ASKED_PEOPLE) else event.request_id
        return fact
