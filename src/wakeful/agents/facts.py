"""Events become facts here: with the turn's ids and the clock's time."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    RuntimeToolRequested,
    RuntimeToolResolved,
)
from wakeful.ports import Clock


class FactMaker:
    """Stamps the events of one turn."""

    __slots__ = ("_clock", "_thread_id", "_turn_id")

    def __init__(self, clock: Clock, thread_id: str, turn_id: str) -> None:
        self._clock = clock
        self._thread_id = thread_id
        self._turn_id = turn_id

    def __call__(self, event: AnyEvent, step: int | None = None, call_id: str | None = None) -> Fact:
        fact = Fact(event, self._clock.now(), self._thread_id, self._turn_id, step, call_id)
        if isinstance(event, ActionRequired | ActionResolved):
            fact.action_id = event.action_id
        elif isinstance(event, RuntimeToolRequested | RuntimeToolResolved):
            fact.action_id = event.request_id
        return fact
