"""What becomes of due times when the wall clock is set.

A clock that was ahead wrote due times that are too far off. Whoever starts a runtime, and whoever sees the wall clock
and the time that passed part, looks for what was written at a time that has not come yet, and moves it: a span is
counted from now, a schedule is due at its next time, and what was to be looked at at once is. A date that somebody
was told, or gave, stays. So a wrong clock may end a span too early, and never holds anything up.
"""

from contextlib import suppress

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import ClockJumped, WakeMoved
from wakeful.decisions.waking.due_times import has_jumped, has_stepped, next_due, schedule_of
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.runtime.own_streams import append_to_stream
from wakeful.settings.spend_windows import zone_named

CLOCK_STREAM = "runtime-clock"
"""The stream in which jumps of the clock are: they belong to no single agent."""
_DATES = ("expiry", "reminder")
"""A person was told until when to decide."""


class ClockWatch:
    """Notices when the clock on the wall moved by more, or less, than time passed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._wall, self._passed = engine.clock.now(), engine.clock.monotonic()

    async def look(self) -> None:
        """Write down a jump since the last look, and move what waits for a time that the clock was set back from. Due
        times that it passes are caught up with like any others."""
        clock = self._engine.clock
        wall, passed = clock.now(), clock.monotonic()
        moved, lasted = wall - self._wall, round((passed - self._passed) * 1_000_000)
        self._wall, self._passed = wall, passed
        if has_stepped(moved, lasted):
            await move_due_times(self._engine)
        if has_jumped(moved, lasted):
            jump = Fact(ClockJumped(by_us=moved - lasted), wall)
            await append_to_stream(self._engine.store, CLOCK_STREAM, [jump])


async def move_due_times(engine: Engine) -> None:
    """Move what was set by a clock that was ahead."""
    now = engine.clock.now()
    for wake in await engine.store.wakes_set_after(now):
        due_at, moved_to = wake.due_at, await _due_again(engine, wake, now)
        if due_at is None or moved_to is None or moved_to >= due_at:
            continue
        event = WakeMoved(
            subject=wake.subject, cause=wake.cause, cause_id=wake.cause_id, due_at=due_at, moved_to=moved_to
        )
        with suppress(EventRefused):  # it was settled meanwhile
            await engine.store.admit(wake.agent_id, [Fact(event, now, wake.thread_id)])


async def _due_again(engine: Engine, wake: WakeRow, now: int) -> int | None:
    """None: it stays."""
    if wake.cause in _DATES or wake.due_at is None:
        return None
    if wake.cause == "window":
        return now  # a turn that is taken up too early rests anew, until the window turns
    timer = await engine.store.timer(wake.cause_id) if wake.cause == "timer" else None
    if timer is None:
        return now + max(0, wake.due_at - wake.set_at)
    if timer.cron is None:
        return None
    return next_due(schedule_of(timer.cron, zone_named(timer.timezone, f"timer {timer.timer_id}:"), now), now)
