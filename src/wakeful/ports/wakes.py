"""Wakes: when a thread is worth a look by whoever could run it, and why. Found by the time, never by going over agents.

A row is written in the transaction of the fact that causes it, and goes in that of the fact that settles it. To look
too early changes nothing, and leaves the row: whoever finds a turn still at rest looks again later, not at once.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex, Value

WakeCause: TypeAlias = Literal[
    "message",
    "deferral",
    "expiry",
    "decision",
    "window",
    "provider",
    "interrupt",
    "unpaused",
    "retry",
    "paused",
    "somebody",
    "resumption",
    "timer",
    "wait",
    "hint",
    "work",
    "recheck",
    "notice",
    "reminder",
    "probe",
    "reload",
    "worktree",
    "stop",
    "channel",
]
"""message: one is queued and nothing is open in the thread. deferral: the deadline of a deferred message. expiry: what
a turn rests on runs out. decision: something was decided or answered. window: a spend window turns. provider: one
that is away is asked again. interrupt: somebody asked the turn to stop. unpaused: somebody let it go on. retry: it had
failed, and is tried again. paused: somebody asked it to rest. somebody: it rests until somebody acts; no time moves it.
resumption: the agent's pause ends by itself. timer: a due time. wait: the time or the deadline of a wait. hint:
something outside changed; it has a time once its thread is free. work: an idle agent has work of its own. recheck: what
blocks a work item is to be looked at again. notice: somebody is to be told. reminder: half of the time for a decision
is over. probe: a provider that let nobody in is asked again. reload: the files of the home are to be read again.
worktree: one was left, or its making or removal was cut off. stop: a task is to end; looked at whatever its agent may
do, because nothing of it should run. channel: a phone wants something, or is to be told something."""
QUEUE: str = ""
"""The subject of a thread's queue."""
AGENT: str = "agent"
"""The subject of an agent's own pause, in its thread `main`."""
HINT: str = "hint"
"""The subject of the hints that are pending for a thread."""
RELOAD: str = "reload:files"
"""The subject of files that are to be read again, in the runtime's own stream."""
WORK: str = "work"
"""The subject of an idle agent's own work in a thread."""


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
    """The message, action, window or request that made it due, or the turn whose end did; of a message that waits for
    a folder, that folder."""
    alarm: int | None
    """When a runtime looks at it: `due_at` of an agent that runs. None: no time moves it, its agent is paused or
    stopped, or belongs to no runtime."""
    set_at: int
    """When it was written. Later than now: the clock was ahead then, and has been set back since."""


_TIMED = Condition("alarm", "IS NOT NULL")
BY_ALARM = RowQuery(("alarm", "agent_id", "thread_id", "subject"), where=_TIMED, served_by="wakes_by_alarm")
OF_THREAD = RowQuery(("subject",), equal=("agent_id", "thread_id"), served_by="key")
OF_AGENT = RowQuery(("thread_id", "subject"), equal=("agent_id",), served_by="key")
OF_ALL = RowQuery(("agent_id", "thread_id", "subject"), served_by="key")

WAKES = Table(
    "wakes",
    WakeRow,
    key=("agent_id", "thread_id", "subject"),
    indexes=(TableIndex("wakes_by_alarm", ("alarm",), where=_TIMED),),
    queries=(BY_ALARM, OF_THREAD, OF_AGENT, OF_ALL),
)


class Wakes(Rows, Protocol):
    """Reads what is due."""

    async def wake(self, agent_id: str, thread_id: str, turn_id: str = QUEUE) -> WakeRow | None:
        """Of a turn at rest, or of the thread's queue."""
        return await self.get_row(WAKES, agent_id, thread_id, turn_id)

    async def deferrals(self, agent_id: str, thread_id: str) -> list[WakeRow]:
        """Deferred messages of a thread (`subject`), each with its deadline; the first deadline first."""
        found = [row for row in await self.wakes_of_thread(agent_id, thread_id) if row.cause == "deferral"]
        return sorted(found, key=lambda row: (row.due_at or 0, row.subject))

    async def wakes_of_thread(self, agent_id: str, thread_id: str) -> list[WakeRow]:
        return await self.list_rows(WAKES, OF_THREAD, agent_id, thread_id)

    async def next_wake(self, after: int | None = None) -> WakeRow | None:
        """The one that a runtime is to look at first; or first after a moment, in Unix microseconds."""
        place = () if after is None else (after,)
        return next(iter(await self.list_rows(WAKES, BY_ALARM, after=place, limit=1)), None)

    async def wakes_of(self, agent_id: str) -> list[WakeRow]:
        """All of an agent's, those without a time included."""
        return await self.list_rows(WAKES, OF_AGENT, agent_id)

    async def wakes_set_after(self, now: int) -> list[WakeRow]:
        """Those that were written by a clock that was ahead. Goes over all there are."""
        return [row for row in await self.list_rows(WAKES, OF_ALL) if row.due_at is not None and row.set_at > now]

    async def all_timed_wakes(self) -> list[WakeRow]:
        """Every one that a runtime looks at by itself, earliest first."""
        return await self.list_rows(WAKES, BY_ALARM)

    async def due_wakes(self, now: int, *, limit: int, after: WakeRow | None = None) -> list[WakeRow]:
        """At most so many of those whose time has come, earliest first; `after` is the last of the page before."""
        place: Sequence[Value] = () if after is None else (after.alarm, after.agent_id, after.thread_id, after.subject)
        rows = await self.list_rows(WAKES, BY_ALARM, after=place, limit=limit)
        return [row for row in rows if row.alarm is not None and row.alarm <= now]
