"""The mailbox: one row a message, from its admission to the end of the turn that took it; and what threads are at.

A message is not a turn: turns take messages, in the order of their bands, and first in first out within one.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.messages import MessageKind, Priority
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex

MessageState: TypeAlias = Literal["queued", "deferred", "taken", "interjected", "processed", "expired"]
"""queued: no turn has it. deferred: none has, and it starts none before its deadline. taken: a turn began with it.
interjected: it was said to a turn under way. processed: that turn has ended. expired: its sender's time was over before
a turn took it."""

BANDS: Final[Mapping[Priority, int]] = {"interject": 0, "next": 1, "normal": 2, "background": 3}
"""The order in which messages are taken."""


class MessageRow(NamedTuple):
    """Where a message is. What it says is in the event that admitted it."""

    message_id: str
    agent_id: str
    thread_id: str
    state: MessageState
    band: int
    kind: MessageKind
    authority: Authority
    key: str | None
    turn_id: str
    """The turn that took it, or that its caller opened for it; blank: none yet."""
    admitted_seq: int
    """The event that holds it."""
    admitted_at: int
    taken_at: int | None
    ended_at: int | None


_QUEUED = Condition("state", "=", "queued")
_DEFERRED = Condition("state", "=", "deferred")
_OPEN = Condition("ended_at", "IS NULL")
QUEUED_IN_THREAD = RowQuery(
    ("band", "admitted_seq"), equal=("agent_id", "thread_id"), where=_QUEUED, served_by="messages_queued"
)
DEFERRED_IN_THREAD = RowQuery(
    ("admitted_seq",), equal=("agent_id", "thread_id"), where=_DEFERRED, served_by="messages_deferred"
)
ALL_DEFERRED = RowQuery(("agent_id", "thread_id", "admitted_seq"), where=_DEFERRED, served_by="messages_deferred")
OPEN_OF_TURN = RowQuery(("admitted_seq",), equal=("turn_id",), where=_OPEN, served_by="messages_of_turn")

MESSAGES = Table(
    "messages",
    MessageRow,
    key=("message_id",),
    indexes=(
        TableIndex("messages_queued", ("agent_id", "thread_id", "band", "admitted_seq"), where=_QUEUED),
        TableIndex("messages_of_turn", ("turn_id", "admitted_seq"), where=_OPEN),
        TableIndex("messages_deferred", ("agent_id", "thread_id", "admitted_seq"), where=_DEFERRED),
    ),
    queries=(QUEUED_IN_THREAD, DEFERRED_IN_THREAD, ALL_DEFERRED, OPEN_OF_TURN),
)


class BusyThread(NamedTuple):
    """A thread in which something is open. The row goes when nothing is."""

    agent_id: str
    thread_id: str
    turns: int
    """Turns that have begun and not ended, those at rest included."""
    queued: int
    """Messages that no turn has taken."""


ALL_BUSY_THREADS = RowQuery(("agent_id", "thread_id"), few="a row goes when nothing is open in its thread")
BUSY_THREADS_OF = RowQuery(("thread_id",), equal=("agent_id",), served_by="key")

BUSY_THREADS = Table(
    "busy_threads", BusyThread, key=("agent_id", "thread_id"), queries=(ALL_BUSY_THREADS, BUSY_THREADS_OF)
)


class Mailbox(Rows, Protocol):
    """Reads where messages are."""

    async def message(self, message_id: str) -> MessageRow | None:
        return await self.get_row(MESSAGES, message_id)

    async def queued(
        self, agent_id: str, thread_id: str, *, after: MessageRow | None = None, limit: int | None = None
    ) -> list[MessageRow]:
        """Messages that no turn of the thread has taken, in the order in which they are to be."""
        place: Sequence[int] = () if after is None else (after.band, after.admitted_seq)
        return await self.list_rows(MESSAGES, QUEUED_IN_THREAD, agent_id, thread_id, after=place, limit=limit)

    async def deferred(self, agent_id: str, thread_id: str) -> list[MessageRow]:
        """Messages of a thread that were set aside, the oldest first."""
        return await self.list_rows(MESSAGES, DEFERRED_IN_THREAD, agent_id, thread_id)

    async def all_deferred(self, *, after: MessageRow | None = None, limit: int | None = None) -> list[MessageRow]:
        """Messages that were set aside, thread by thread; `after` is the last one of the page before."""
        place = () if after is None else (after.agent_id, after.thread_id, after.admitted_seq)
        return await self.list_rows(MESSAGES, ALL_DEFERRED, after=place, limit=limit)

    async def busy_thread(self, agent_id: str, thread_id: str) -> BusyThread | None:
        """What is open in a thread; None: nothing is."""
        return await self.get_row(BUSY_THREADS, agent_id, thread_id)

    async def busy_threads(
        self, agent_id: str | None = None, *, after: BusyThread | None = None, limit: int | None = None
    ) -> list[BusyThread]:
        """Of an agent, or of all; `after` is the last one of the page before."""
        place = () if after is None else (after.agent_id, after.thread_id)
        if agent_id is not None:
            return await self.list_rows(BUSY_THREADS, BUSY_THREADS_OF, agent_id)
        return await self.list_rows(BUSY_THREADS, ALL_BUSY_THREADS, after=place, limit=limit)
