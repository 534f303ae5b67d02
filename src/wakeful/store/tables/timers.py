"""Rules of `timers`, and of their wakes: each due time ends once, as fired, folded or missed.

A fact names the due time that it ends, and is refused when that is not the next one any more: whoever comes second,
with an old row in hand, changes nothing.
"""

from collections.abc import Sequence
from typing import TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    TimerArmed,
    TimerCancelled,
    TimerFired,
    TimerFolded,
    TimerMissed,
    TimerSkipped,
    WakeMoved,
)
from wakeful.ports.timers import TIMERS, DueTimeEnd, TimerRow
from wakeful.ports.wakes import WakeRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules
from wakeful.store.tables.wakes import NEEDS_ALARM, wake_gone, wake_row

DueFact: TypeAlias = TimerFired | TimerFolded | TimerMissed | TimerSkipped
TimerFact: TypeAlias = TimerArmed | TimerFired | TimerFolded | TimerMissed | TimerSkipped | TimerCancelled


def timer_subject(timer_id: str) -> str:
    """What a timer's wake is called."""
    return f"timer:{timer_id}"


def _armed(entry: LogEntry, event: TimerArmed, rows: AtHand) -> list[TimerRow]:
    known = rows.get(TIMERS, event.timer_id)
    if known is not None and known.state == "armed":
        raise EventRefused(
            f"timer {event.timer_id} is armed already", "Cancel it first, or give the new one another id."
        )
    return [
        TimerRow(
            timer_id=event.timer_id,
            agent_id=entry.agent_id,
            thread_id=entry.fact.thread_id or "",
            name=event.name,
            state="armed",
            due_at=event.due_at,
            cron=event.cron,
            timezone=event.timezone,
            say=event.say,
            thread=event.thread,
            catch_up=event.catch_up,
            armed_by=event.armed_by,
            armed_at=entry.fact.at,
            derived_from=event.derived_from,
            last_due=known.last_due if known is not None else None,
            last_end=known.last_end if known is not None else None,
            last_message=known.last_message if known is not None else None,
            fired=known.fired if known is not None else 0,
            folded=known.folded if known is not None else 0,
            missed=known.missed if known is not None else 0,
            failures=known.failures if known is not None else 0,
            check_command=event.check,
            skipped=known.skipped if known is not None else 0,
        )
    ]


def _fired(entry: LogEntry, event: TimerFired, rows: AtHand) -> list[TimerRow]:
    row = _due(event, event.due_at, rows)
    fired = row._replace(last_message=event.message_id, fired=row.fired + 1, failures=event.failures)
    return [_ended(fired, event.due_at, "fired", event.next_at)]


def _folded(entry: LogEntry, event: TimerFolded, rows: AtHand) -> list[TimerRow]:
    row = _due(event, event.due_at, rows)
    return [_ended(row._replace(folded=row.folded + event.number), event.last, "folded", event.next_at)]


def _missed(entry: LogEntry, event: TimerMissed, rows: AtHand) -> list[TimerRow]:
    row = _due(event, event.due_at, rows)
    return [_ended(row._replace(missed=row.missed + event.number), event.last, "missed", event.next_at)]


def _skipped(entry: LogEntry, event: TimerSkipped, rows: AtHand) -> list[TimerRow]:
    """Failures are kept as they were: that nothing was to be done says nothing about them."""
    row = _due(event, event.due_at, rows)
    return [_ended(row._replace(skipped=row.skipped + event.number), event.last, "skipped", event.next_at)]


def _ended(row: TimerRow, last: int, end: DueTimeEnd, next_at: int | None) -> TimerRow:
    state = row.state if next_at is not None else "done"
    return row._replace(state=state, due_at=next_at, last_due=last, last_end=end)


def _cancelled(entry: LogEntry, event: TimerCancelled, rows: AtHand) -> list[TimerRow]:
    return [_armed_row(event, rows)._replace(state="cancelled", due_at=None)]


def _moved(entry: LogEntry, event: WakeMoved, rows: AtHand) -> list[TimerRow]:
    row = rows.get(TIMERS, event.cause_id) if event.cause == "timer" else None
    return [] if row is None or row.state != "armed" else [row._replace(due_at=event.moved_to)]


def _due(event: DueFact, due_at: int, rows: AtHand) -> TimerRow:
    row = _armed_row(event, rows)
    if row.due_at != due_at:
        raise EventRefused(
            f"{event.kind} names the due time {due_at} of timer {event.timer_id}, and its next one is {row.due_at}",
            "Look at the timer again: that due time has ended.",
        )
    return row


def _armed_row(event: TimerFact, rows: AtHand) -> TimerRow:
    row = rows.get(TIMERS, event.timer_id)
    if row is None or row.state != "armed":
        found = "there is none" if row is None else f"it is {row.state}"
        raise EventRefused(f"{event.kind} names timer {event.timer_id}, and {found}", "Arm it first.")
    return row


def _of_timer(agent_id: str, fact: Fact, event: TimerFact) -> Sequence[Need]:
    return (RowKey(TIMERS, (event.timer_id,)),)


def _of_moved(agent_id: str, fact: Fact, event: WakeMoved) -> Sequence[Need]:
    return (RowKey(TIMERS, (event.cause_id,)),) if event.cause == "timer" else ()


TIMER_RULES: Rules = {
    TimerArmed: RowRule(_armed, (_of_timer,)),
    TimerFired: RowRule(_fired, (_of_timer,)),
    TimerFolded: RowRule(_folded, (_of_timer,)),
    TimerMissed: RowRule(_missed, (_of_timer,)),
    TimerSkipped: RowRule(_skipped, (_of_timer,)),
    TimerCancelled: RowRule(_cancelled, (_of_timer,)),
    WakeMoved: RowRule(_moved, (_of_moved,)),
}


# --- wakes -------------------------------------------------------------------------------------------------------


def _wake_armed(entry: LogEntry, event: TimerArmed, rows: AtHand) -> list[WakeRow]:
    return [wake_row(entry, rows, timer_subject(event.timer_id), event.due_at, "timer", event.timer_id)]


def _wake_moved(entry: LogEntry, event: DueFact, rows: AtHand) -> list[WakeRow | Gone]:
    subject = timer_subject(event.timer_id)
    if event.next_at is None:
        return [wake_gone(entry, subject)]
    return [wake_row(entry, rows, subject, event.next_at, "timer", event.timer_id)]


def _wake_cancelled(entry: LogEntry, event: TimerCancelled, rows: AtHand) -> list[Gone]:
    return [wake_gone(entry, timer_subject(event.timer_id))]


TIMER_WAKES: Rules = {
    TimerArmed: RowRule(_wake_armed, NEEDS_ALARM),
    TimerFired: RowRule(_wake_moved, NEEDS_ALARM),
    TimerFolded: RowRule(_wake_moved, NEEDS_ALARM),
    TimerMissed: RowRule(_wake_moved, NEEDS_ALARM),
    TimerSkipped: RowRule(_wake_moved, NEEDS_ALARM),
    TimerCancelled: RowRule(_wake_cancelled),
}
