"""Timers: due times of an agent, one by one or those of a schedule. What is next is here, why is in the log."""

from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.waking import CatchUp
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex

TimerState: TypeAlias = Literal["armed", "done", "cancelled"]
"""done: it has no further due time."""
DueTimeEnd: TypeAlias = Literal["fired", "folded", "missed", "skipped"]
"""What became of a due time. folded: it is told of in the message of another one. skipped: its check had nothing to
say."""


class TimerRow(NamedTuple):
    """A timer, and what became of its newest due time."""

    timer_id: str
    agent_id: str
    thread_id: str
    """The thread whose wakes it is among. Where it speaks is `thread`."""
    name: str
    state: TimerState
    due_at: int | None
    """The next due time, in Unix microseconds; None: there is none."""
    cron: str | None
    """None: it is due once."""
    timezone: str
    say: str
    thread: str
    """`fresh`: each due time has a thread of its own."""
    catch_up: CatchUp
    armed_by: str
    armed_at: int
    derived_from: Authority | None
    last_due: int | None
    """The newest due time that has ended somehow."""
    last_end: DueTimeEnd | None
    last_message: str | None
    """The message of the newest one that fired."""
    fired: int
    folded: int
    missed: int
    failures: int
    """Turns in a row that began with its message and failed, as of the newest one that fired."""
    check_command: str | None
    """Run at each due time: only when it has something to say, the timer fires."""
    skipped: int


_ARMED = Condition("state", "=", "armed")
ARMED_OF_AGENT = RowQuery(("due_at", "timer_id"), equal=("agent_id",), where=_ARMED, served_by="timers_armed_of_agent")
ALL_TIMERS = RowQuery(("due_at", "agent_id", "timer_id"), where=_ARMED, served_by="timers_armed")
TIMERS_OF_AGENT = RowQuery(("armed_at", "timer_id"), equal=("agent_id",), served_by="timers_of_agent")

TIMERS = Table(
    "timers",
    TimerRow,
    key=("timer_id",),
    indexes=(
        TableIndex("timers_armed", ("due_at",), where=_ARMED),
        TableIndex("timers_of_agent", ("agent_id", "armed_at")),
        TableIndex("timers_armed_of_agent", ("agent_id", "due_at"), where=_ARMED),
    ),
    queries=(ALL_TIMERS, TIMERS_OF_AGENT, ARMED_OF_AGENT),
)


class Timers(Rows, Protocol):
    """Reads due times."""

    async def timer(self, timer_id: str) -> TimerRow | None:
        return await self.get_row(TIMERS, timer_id)

    async def armed_timers(
        self, agent_id: str | None = None, *, after: TimerRow | None = None, limit: int | None = None
    ) -> list[TimerRow]:
        """Of an agent, or of all; the next due time first. `after` is the last one of the page before."""
        if agent_id is not None:
            return await self.list_rows(TIMERS, ARMED_OF_AGENT, agent_id)
        place = () if after is None else (after.due_at, after.agent_id, after.timer_id)
        return await self.list_rows(TIMERS, ALL_TIMERS, after=place, limit=limit)

    async def timers(self, agent_id: str | None = None) -> list[TimerRow]:
        """Those that are armed, the first due time first; of an agent all there ever were, the oldest first."""
        if agent_id is None:
            return await self.list_rows(TIMERS, ALL_TIMERS)
        return await self.list_rows(TIMERS, TIMERS_OF_AGENT, agent_id)
