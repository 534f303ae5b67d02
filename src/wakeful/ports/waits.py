"""Waits: what an agent said it waits for, until that comes or its deadline does. Hints that it may want to look.

And why an agent woke the last time: what its newest message meant to it.
"""

from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.events.waking import Treatment
from wakeful.contracts.messages import MessageKind
from wakeful.contracts.waking import WaitWake
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex

WaitState: TypeAlias = Literal["open", "resolved", "expired", "cancelled"]


class WaitRow(NamedTuple):
    """A wait. Its state leaves `open` once."""

    wait_id: str
    agent_id: str
    thread_id: str
    turn_id: str
    """The turn that ended with it."""
    state: WaitState
    wake: WaitWake
    reason: str
    resource: str | None
    work_item_id: str | None
    due_at: int
    """When it ends by itself: a timer's time, or the deadline."""
    is_sleep: bool
    derived_from: Authority | None
    created_at: int
    ended_at: int | None
    ended_by: str
    """The message that ended it, the newer wait, or who cancelled it; blank: it is open."""


_OPEN = Condition("state", "=", "open")
OPEN_WAITS = RowQuery(("thread_id", "created_at", "wait_id"), equal=("agent_id",), where=_OPEN, served_by="waits_open")
ALL_OPEN_WAITS = RowQuery(("agent_id", "thread_id", "created_at", "wait_id"), where=_OPEN, served_by="waits_open")

WAITS = Table(
    "waits",
    WaitRow,
    key=("wait_id",),
    indexes=(TableIndex("waits_open", ("agent_id", "thread_id", "created_at"), where=_OPEN),),
    queries=(OPEN_WAITS, ALL_OPEN_WAITS),
)


class PendingHintRow(NamedTuple):
    """Hints that no tick was made of yet. One row an agent, however many there are."""

    agent_id: str
    thread_id: str
    first_hint_id: str
    hints: int
    stored_seqs: tuple[int, ...]
    """The events that hold the newest ones that say something; of hints that say nothing, the newest one's alone."""
    first_at: int
    last_at: int


ALL_HINTS = RowQuery(("agent_id", "thread_id"), few="a row goes once its thread is free")

PENDING_HINTS = Table("pending_hints", PendingHintRow, key=("agent_id", "thread_id"), queries=(ALL_HINTS,))


class ContinuationRow(NamedTuple):
    """What the newest message of an agent meant to it. One row an agent."""

    agent_id: str
    thread_id: str
    message_id: str
    message_kind: MessageKind
    treatment: Treatment
    resolution: dict[str, Any]
    """A `ContinuationResolution`, as JSON."""
    at: int


CONTINUATIONS = Table("continuations", ContinuationRow, key=("agent_id",))


class AgentWaits(Rows, Protocol):
    """Reads waits and hints."""

    async def wait(self, wait_id: str) -> WaitRow | None:
        return await self.get_row(WAITS, wait_id)

    async def open_waits(self, agent_id: str | None = None) -> list[WaitRow]:
        """Of an agent, or of all; the oldest of a thread first."""
        if agent_id is None:
            return await self.list_rows(WAITS, ALL_OPEN_WAITS)
        return await self.list_rows(WAITS, OPEN_WAITS, agent_id)

    async def all_open_waits(self, *, after: WaitRow | None = None, limit: int | None = None) -> list[WaitRow]:
        """Of every agent; `after` is the last one of the page before."""
        place = () if after is None else (after.agent_id, after.thread_id, after.created_at, after.wait_id)
        return await self.list_rows(WAITS, ALL_OPEN_WAITS, after=place, limit=limit)

    async def all_pending_hints(
        self, *, after: PendingHintRow | None = None, limit: int | None = None
    ) -> list[PendingHintRow]:
        """Of every thread; `after` is the last one of the page before."""
        place = () if after is None else (after.agent_id, after.thread_id)
        return await self.list_rows(PENDING_HINTS, ALL_HINTS, after=place, limit=limit)

    async def pending_hint(self, agent_id: str, thread_id: str) -> PendingHintRow | None:
        return await self.get_row(PENDING_HINTS, agent_id, thread_id)

    async def last_continuation(self, agent_id: str) -> ContinuationRow | None:
        return await self.get_row(CONTINUATIONS, agent_id)
