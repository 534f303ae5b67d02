"""What is handed over to be let in: facts from outside, and whether they may share an append with their neighbours."""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted
from wakeful.store.encoding import PackedRow


class OutsideFacts(NamedTuple):
    """Facts that come from outside, and the rows they are stored as."""

    agent_id: str
    facts: Sequence[Fact]
    stored: Sequence[PackedRow]

    @property
    def new_message(self) -> MessageAdmitted | None:
        """A message for a thread's queue that has an id of its own, where that is all."""
        fact = self.facts[0]
        event = fact.event
        if len(self.facts) > 1 or not isinstance(event, MessageAdmitted) or event.key is not None:
            return None
        return event if fact.turn_id is None else None
