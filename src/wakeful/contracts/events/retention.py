"""Facts about what is kept and what has gone: retention, and the store's own size."""

from typing import Any, ClassVar

from pydantic import Field

from wakeful.contracts.events.base import THREAD, Event, Need, RuntimeFact
from wakeful.contracts.values import Value


class EventExpired(Event):
    """Stands where an event was whose body is gone. It is read and never written: number, time, ids and the chain are
    as they were."""

    kind: ClassVar[str] = "event.expired"
    needs: ClassVar[tuple[Need, ...]] = ()

    event_type: str
    """What it was."""
    event_version: int = 1


class OutputExpired(RuntimeFact):
    """A result that was kept whole is gone; its preview stays where it is."""

    kind: ClassVar[str] = "output.expired"

    output_ref: str
    of_turn: str
    """The turn that left it."""
    size_bytes: int = 0


class ThreadDeleted(RuntimeFact):
    """A conversation is no more. The next message under its name begins an empty one.

    Its words leave the log with the next pass of retention (`turn.emptied`). Briefs, costs and approvals stay.
    """

    kind: ClassVar[str] = "thread.deleted"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    deleted_by: str
    reason: str = ""
    turns: int = 0
    """How many it had."""


class LeftOfEvent(Value):
    """What stays of an event that expired: its numbers and ids, without what was said."""

    event_seq: int
    payload: dict[str, Any]
    """Of the kind and version that the event had."""


class TurnEmptied(RuntimeFact):
    """The words of a turn of a deleted thread are leaving the log. Rows that are made again follow from what is left
    here."""

    kind: ClassVar[str] = "turn.emptied"

    of_turn: str
    left: tuple[LeftOfEvent, ...] = ()


class LogCheckpointed(RuntimeFact):
    """The log before this is gone. The chain goes on from `hash`, and rows from those that are kept here."""

    kind: ClassVar[str] = "log.checkpointed"

    upto: int
    """The last event that is gone."""
    hash: str
    """What this append is chained to."""
    agent_name: str = ""
    kept: dict[str, list[list[Any]]] = Field(default_factory=dict)
    """By table: rows that follow from what is gone, and stay."""
    gone: dict[str, list[list[Any]]] = Field(default_factory=dict)
    """By table: keys of the rows that go with it."""


class RetentionApplied(RuntimeFact):
    """What had reached its age was removed."""

    kind: ClassVar[str] = "retention.applied"

    turns: int = 0
    """Turns some of whose events expired."""
    events: int = 0
    """Events that expired."""
    rows: int = 0
    """Rows of the log that are stored together from now on, and take less."""
    streams: int = 0
    """Logs of temporary agents that are gone."""
    outputs: int = 0
    """Results that are gone; their previews stay."""
    tasks: int = 0
    """Tasks whose output is gone."""
    blobs: int = 0
    feed: int = 0
    """Rows of the feed over all agents."""
    freed_bytes: int = 0
    """An estimate: what was stored of all that."""


class StoreSizeNoticed(RuntimeFact):
    """The store is larger than its owner wants to be told of."""

    kind: ClassVar[str] = "store.size_noticed"

    size_bytes: int
    notice_bytes: int
