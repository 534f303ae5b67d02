"""When a schedule is due, and what becomes of each due time: it fires, is folded into another, or is missed.

A line with a fixed hour means the clock on the wall: an hour that the clocks repeat fires once, one that they skip
fires at its end. A line for every hour or every few minutes means the time that passes, and keeps its beat. All times
are Unix microseconds. The next due time follows from the one before, not from the clock: a clock that is set back
fires nothing twice.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final, NamedTuple

from wakeful.contracts.waking import CatchUp

LATE: Final = 60 * 1_000_000
"""A due time that is looked at so much later was not met."""
MOST_CAUGHT_UP: Final = 24
"""Due times that are made up for, one by one, with `catch_up: all`."""
MOST_COUNTED: Final = 10_000
"""Due times that are counted; a range that holds more says that it does."""
CLOCK_STEP: Final = 5 * 1_000_000
"""A difference between the clock on the wall and the time that passed which is no drift: the clock was set."""
CLOCK_JUMP: Final = 3600 * 1_000_000
"""A difference between the clock on the wall and the time that passed which is worth a fact."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NoDueTime(ValueError):
    """The line cannot be read, or has no due time at all; the message says which."""


class Schedule(NamedTuple):
    """A cron line with five fields, and whose clock it means."""

    line: str
    zone: tzinfo


class DueTimes(NamedTuple):
    """Some due times in a row."""

    first: int
    last: int
    number: int
    """At most `MOST_COUNTED`."""


class Settlement(NamedTuple):
    """What becomes of the due times up to now. One that has neither is not due yet."""

    missed: DueTimes | None
    folded: DueTimes | None
    """These are told of in the message of the one that fires."""
    fires: int | None
    next_at: int | None
    """The first due time after all of these; None: there is none."""


def schedule_of(line: str, zone: tzinfo, now: int) -> Schedule:
    """A schedule that has a due time after `now`. Raises NoDueTime with the line."""
    fields = line.split()
    if len(fields) != 5:
        raise NoDueTime(f"{line!r} has {len(fields)} fields, and a cron line has 5: minute hour day month weekday")
    schedule = Schedule(" ".join(fields), zone)
    from cronsim import CronSimError

    try:
        found = next_due(schedule, now)
    except CronSimError as error:
        raise NoDueTime(f"{line!r} is not a cron line: {str(error)[:1].lower()}{str(error)[1:]}") from None
    if found is None:
        raise NoDueTime(f"{line!r} has no due time in the next 50 years")
    return schedule


def next_due(schedule: Schedule, after: int) -> int | None:
    """The first due time after a moment; None: there is none."""
    for found in _due_times(schedule, after):
        if found > after:  # inside a repeated hour the wall clock alone does not tell
            return found
    return None


def _due_times(schedule: Schedule, start: int, *, backwards: bool = False) -> Iterator[int]:
    from cronsim import CronSim  # an agent without a schedule must not pay for it

    local = (_EPOCH + timedelta(microseconds=start)).astimezone(schedule.zone)
    minute, hour, rest = schedule.line.split(maxsplit=2)
    if minute.startswith("*") and not hour.startswith("*"):
        minute = f"0-59{minute[1:]}"  # with a fixed hour its minutes, too, are those of the clock on the wall
    for moment in CronSim(f"{minute} {hour} {rest}", local, reverse=backwards):
        yield round(moment.timestamp()) * 1_000_000


def settle(due_at: int, now: int, catch_up: CatchUp, schedule: Schedule | None) -> Settlement:
    """What becomes of `due_at`, and of every later due time up to `now`. Without a schedule there is no later one."""
    if due_at > now:
        return Settlement(None, None, None, due_at)
    times, count = _passed(due_at, now, schedule)
    newest = times[-1]
    next_at = next_due(schedule, max(newest, now)) if schedule is not None else None
    earlier = DueTimes(due_at, times[-2], count - 1) if count > 1 else None
    if catch_up == "none":
        if now - newest > LATE:
            return Settlement(DueTimes(due_at, newest, count), None, None, next_at)
        return Settlement(earlier, None, newest, next_at)
    if catch_up == "one":
        return Settlement(None, earlier, newest, next_at)
    missed = None
    if count > MOST_CAUGHT_UP:
        missed = DueTimes(due_at, times[-MOST_CAUGHT_UP - 1], count - MOST_CAUGHT_UP)
        times = times[-MOST_CAUGHT_UP:]
    return Settlement(missed, None, times[0], times[1] if len(times) > 1 else next_at)


def _passed(due_at: int, now: int, schedule: Schedule | None) -> tuple[list[int], int]:
    """The newest due times up to now, oldest first, and how many there are in all, as far as they are counted."""
    times, count = [due_at], 1
    while schedule is not None and count < MOST_COUNTED:
        found = next_due(schedule, times[-1])
        if found is None or found > now:
            return times, count
        times = [*times[-MOST_CAUGHT_UP:], found]
        count += 1
    if schedule is None:
        return times, count
    latest = _due_times(schedule, now + 1_000_000, backwards=True)
    found_back = [each for each in islice(latest, MOST_CAUGHT_UP + 2) if due_at < each <= now]
    return sorted({*times[-1:], *found_back})[-MOST_CAUGHT_UP - 1 :], count


def has_stepped(wall: int, passed: int) -> bool:
    """Was the wall clock set?"""
    return abs(wall - passed) > CLOCK_STEP


def has_jumped(wall: int, passed: int) -> bool:
    """Did the wall clock move by over an hour more, or less, than the time that passed?"""
    return abs(wall - passed) > CLOCK_JUMP
