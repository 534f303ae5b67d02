"""Wakes: when a thread is worth a look by whoever could run it, and why. Found by the time, never by going over agents.

A row is written in the transaction of the fact that causes it, and goes in that of the fact that settles it. To look
too early changes nothing, and leaves the row: whoever finds a turn still at rest looks again later, not at once.
"""

from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex

WakeCause: TypeAlias = Literal[
    "message", "deferral", "expiry", "decision", "window", "interrupt", "unpaused", "somebody"
]
"""message: one is queued and nothing is open in the thread. deferral: the deadline of a deferred message. expiry: what
a turn rests on runs out. decision: something was decided or answered. window: a spend window turns. interrupt: somebody
asked the turn to stop. unpaused: somebody let it go on. somebody: it rests until somebody acts; no time moves it."""
QUEUE: str = ""
"""The subject of a thread's queue."""


class WakeRow(NamedTuple):
    """Something to look at: a turn at rest, messages that nothing has taken, or one that was deferred."""

    agent_id: str
    thread_id: str
    subject: str
    """The turn, or the message that was deferred; blank: the thread's queue."""
    due_at: int | None
    """Unix microseconds. None: no time moves it."""
    cause: WakeCause
    cause_id: str
    """The message, action, window or request that made it due, or the turn whose end did."""


_TIMED = Condition("due_at", "IS NOT NULL")
BY_DUE_TIME = RowQuery(("due_at", "agent_id", "thread_id", "subject"), where=_TIMED, served_by="wakes_due")
OF_THREAD = RowQuery(("subject",), equal=("agent_id", "thread_id"), served_by="key")

WAKES = Table(
    "wakes",
    WakeRow,
    key=("agent_id", "thread_id", "subject"),
    indexes=(TableIndex("wakes_due", ("due_at",), where=_TIMED),),
    queries=(BY_DUE_TIME, OF_THREAD),
)


class Wakes(Rows, Protocol):
    """Reads what is due."""

    async def wake(self, agent_id: str, thread_id: str, turn_id: str = QUEUE) -> WakeRow | None:
        """Of a turn at rest, or of the thread's queue."""
        return await self.get_row(WAKES, agent_id, thread_id, turn_id)

    async def deferrals(self, agent_id: str, thread_id: str) -> list[WakeRow]:
        """Deferred messages of a thread (`subject`), each with its deadline; the first deadline first."""
        rows = await self.list_rows(WAKES, OF_THREAD, agent_id, thread_id)
        found = [row for row in rows if row.cause == "deferral"]
        return sorted(found, key=lambda row: (row.due_at or 0, row.subject))

    async def next_wake(self) -> WakeRow | None:
        """The one with the earliest time."""
        return next(iter(await self.list_rows(WAKES, BY_DUE_TIME, limit=1)), None)

    async def due_wakes(self, now: int, *, limit: int) -> list[WakeRow]:
        """At most so many of those whose time has come, earliest first."""
        rows = await self.list_rows(WAKES, BY_DUE_TIME, limit=limit)
        return [row for row in rows if row.due_at is not None and row.due_at <= now]
