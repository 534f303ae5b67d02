"""Rows of turns whose words have left the log are made again from what is left of their events (`turn.emptied`).

What is left stands later in the log than what it is left of. So it is looked up, once, when the first event is met that
expired and from which rows follow.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from pydantic_core import to_json

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import BY_KIND, AnyEvent, EventExpired, TurnEmptied
from wakeful.contracts.history import parse
from wakeful.store.encoding import EncodedFact, decode_event
from wakeful.store.tables import RULES_OF_EVENT


class LeftEvents:
    """Of the log of one agent."""

    def __init__(self, events: Callable[[], Iterable[AnyEvent]]) -> None:
        self._events = events
        self._left: dict[int, bytes] | None = None

    def read_as(self, seq: int, fact: Fact) -> Fact:
        """The fact as rows follow from it."""
        event = fact.event
        if not isinstance(event, EventExpired) or BY_KIND.get(event.event_type) not in RULES_OF_EVENT:
            return fact
        if self._left is None:
            emptied = (each for each in self._events() if isinstance(each, TurnEmptied))
            self._left = {left.event_seq: to_json(left.payload) for each in emptied for left in each.left}
        payload = self._left.get(seq)
        return fact if payload is None else replace(fact, event=parse(event.event_type, event.event_version, payload))


def emptied_among(entries: Iterable[EncodedFact]) -> Iterable[AnyEvent]:
    """What the facts of a log say of emptied turns; the others are not decoded."""
    return (decode_event(entry.head, entry.payload) for entry in entries if entry.head.kind == TurnEmptied.kind)
