"""Rules of `wakes` for `liveness.violated`: what was lost is written again, unless it was settled in the meantime.

The fact is compared with the rows in its own transaction: a watchdog that looked a moment too early, or a second one,
changes nothing.
"""

from collections.abc import Sequence
from typing import Any, cast

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import LivenessViolated
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES
from wakeful.ports.runtime_agents import RUNTIME_AGENTS
from wakeful.ports.tables import Table
from wakeful.ports.timers import TIMERS
from wakeful.ports.turns import TURNS
from wakeful.ports.waits import PENDING_HINTS, WAITS
from wakeful.ports.wakes import WAKES, WakeCause, WakeRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, Need, RowKey, RowRule, Rules
from wakeful.store.tables.wakes import NEEDS_ALARM, wake_row


def _violated(entry: LogEntry, event: LivenessViolated, rows: AtHand) -> list[WakeRow]:
    thread_id = entry.fact.thread_id or ""
    wake = rows.get(WAKES, entry.agent_id, thread_id, event.subject)
    if entry.is_new and not (_is_owed(entry, event, rows) and _is_missing(event, wake)):
        raise EventRefused(
            f"{event.owed} {event.owed_id} of thread {thread_id} is looked after again, or is over",
            "Look at the thread again: nothing has to be repaired.",
        )
    if event.violation == "cut_off":
        return []  # no time makes it due: whoever finds it runs it
    row = wake_row(entry, rows, event.subject, event.due_at, cast(WakeCause, event.cause), event.owed_id)
    return [row._replace(alarm=event.due_at) if event.owed == "pause" else row]


def _is_owed(entry: LogEntry, event: LivenessViolated, rows: AtHand) -> bool:
    table, key = _place(entry.agent_id, entry.fact, event)
    row: Any = rows.get(table, *key)
    if row is None:
        return False
    match event.owed:
        case "turn":
            at_rest = "suspended" if event.violation != "cut_off" else None
            return bool(row.is_open) and (row.state == "suspended") == (at_rest is not None)
        case "queue":
            return bool(row.queued) and not row.turns
        case "deferral":
            return bool(row.state == "deferred")
        case "wait":
            return bool(row.state == "open")
        case "timer":
            return bool(row.state == "armed")
        case "hint":
            return True
        case "pause":
            return bool(row.control == "paused" and row.resumes_at is not None)


def _is_missing(event: LivenessViolated, wake: WakeRow | None) -> bool:
    match event.violation:
        case "no_wake":
            return wake is None or wake.due_at is None
        case "no_alarm":
            return wake is not None and wake.alarm is None
        case "cut_off":
            return True


def _place(agent_id: str, fact: Fact, event: LivenessViolated) -> tuple[Table[Any], tuple[str, ...]]:
    """The row that says that it is owed."""
    thread = agent_id, fact.thread_id or ""
    places: dict[str, tuple[Table[Any], tuple[str, ...]]] = {
        "turn": (TURNS, (event.owed_id,)),
        "queue": (BUSY_THREADS, thread),
        "deferral": (MESSAGES, (event.owed_id,)),
        "wait": (WAITS, (event.owed_id,)),
        "timer": (TIMERS, (event.owed_id,)),
        "hint": (PENDING_HINTS, thread),
        "pause": (RUNTIME_AGENTS, (agent_id,)),
    }
    return places[event.owed]


def _of_violation(agent_id: str, fact: Fact, event: LivenessViolated) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", event.subject)), RowKey(*_place(agent_id, fact, event)))


LIVENESS_WAKES: Rules = {LivenessViolated: RowRule(_violated, (_of_violation, *NEEDS_ALARM))}
