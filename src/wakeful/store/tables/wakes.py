"""Rules of `wakes`: what makes a thread worth a look, and what settles it.

A turn has a row exactly while it rests, from `turn.suspended` to `turn.resumed` or its end; only the spend window that
it is about to rest on comes a moment earlier. A queue has one while nothing is open in its thread, and a deferred
message from its deferral until a turn takes it or its sender's time is over.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionResolved,
    LimitChanged,
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    RuntimeToolResolved,
    Terminal,
    TurnCompleted,
    TurnFailed,
    TurnInterruptRequested,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from wakeful.ports.approvals import ACTIONS
from wakeful.ports.wakes import QUEUE, WAKES, WakeCause, WakeRow
from wakeful.store.tables.mailbox import (
    is_queued,
    needs_admitted,
    needs_started,
    needs_turn,
    needs_waiting,
    thread_after_end,
    thread_row,
    thread_without,
)
from wakeful.store.tables.row_rules import OWN_AGENT, AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules


def _message_admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[WakeRow]:
    thread = thread_row(entry, rows)
    if thread.turns or thread.queued or not is_queued(entry, event, rows):
        return []  # somebody is at the thread, or is to look at its queue anyway
    return [_row(entry, QUEUE, entry.fact.at, "message", event.message_id)]


def _turn_started(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[Gone]:
    return [gone for subject in (QUEUE, *event.message_ids) for gone in _gone(entry, rows, subject)]


def _message_deferred(entry: LogEntry, event: MessageDeferred, rows: AtHand) -> list[WakeRow | Gone]:
    wake = _row(entry, event.message_id, event.deadline, "deferral", event.message_id)
    return [wake, *_queue_left(entry, event, rows)]


def _message_expired(entry: LogEntry, event: MessageExpired, rows: AtHand) -> list[Gone]:
    return [*_gone(entry, rows, event.message_id), *_queue_left(entry, event, rows)]


def _queue_left(entry: LogEntry, event: MessageDeferred | MessageExpired, rows: AtHand) -> list[Gone]:
    """Nobody is to look at a queue in which nothing waits."""
    return [] if thread_without(entry, event, rows).queued else _gone(entry, rows, QUEUE)


def _limit_changed(entry: LogEntry, event: LimitChanged, rows: AtHand) -> list[WakeRow]:
    window = event.window
    if window is None or window.is_hopeless:
        return []
    return [_row(entry, entry.fact.turn_id or "", window.turns, "window", f"{window.scope} {window.period}")]


def _turn_suspended(entry: LogEntry, event: TurnSuspended, rows: AtHand) -> list[WakeRow]:
    turn_id = entry.fact.turn_id or ""
    if event.reason == "budget_window" and _wake(entry, rows, turn_id) is not None:
        return []  # when the window turns is known from what filled it
    asked = [rows.get(ACTIONS, name) for name in _asked(event)]
    pending = [row for row in asked if row is not None and row.status == "pending"]
    first = min(pending, key=lambda row: row.expires_at, default=None)
    if first is None:
        return [_row(entry, turn_id, None, "somebody", ", ".join(event.waiting_for))]
    return [_row(entry, turn_id, first.expires_at, "expiry", first.action_id)]


def _asked(event: TurnSuspended) -> Sequence[str]:
    return event.waiting_for if event.reason in ("approval_required", "runtime_tool_pending") else ()


def _turn_resumed(entry: LogEntry, event: TurnResumed, rows: AtHand) -> list[Gone]:
    return _gone(entry, rows, entry.fact.turn_id or "")


def _turn_ended(entry: LogEntry, event: Terminal, rows: AtHand) -> list[WakeRow | Gone]:
    """What waited behind it is next."""
    found: list[WakeRow | Gone] = [*_gone(entry, rows, entry.fact.turn_id or "")]
    left, queue = thread_after_end(entry, rows), _wake(entry, rows, QUEUE)
    if left.queued and not left.turns and queue is None:
        found.append(_row(entry, QUEUE, entry.fact.at, "message", entry.fact.turn_id or ""))
    elif not left.queued and queue is not None:
        found += _gone(entry, rows, QUEUE)
    return found


def _action_resolved(entry: LogEntry, event: ActionResolved, rows: AtHand) -> list[WakeRow]:
    return _decided(entry, rows, event.action_id)


def _runtime_tool_resolved(entry: LogEntry, event: RuntimeToolResolved, rows: AtHand) -> list[WakeRow]:
    return _decided(entry, rows, event.request_id)


def _decided(entry: LogEntry, rows: AtHand, action_id: str) -> list[WakeRow]:
    wake = _wake(entry, rows, entry.fact.turn_id or "")
    if wake is None or wake.cause not in ("expiry", "decision"):
        return []  # a decision gives a turn no money, and does not lift a pause
    return _due_now(entry, rows, "decision", action_id)


def _interrupt_requested(entry: LogEntry, event: TurnInterruptRequested, rows: AtHand) -> list[WakeRow]:
    return _due_now(entry, rows, "interrupt", event.interrupt_id)


def _pause_lifted(entry: LogEntry, event: TurnPauseLifted, rows: AtHand) -> list[WakeRow]:
    return _due_now(entry, rows, "unpaused", event.requested_by)


def _pause_requested(entry: LogEntry, event: TurnPauseRequested, rows: AtHand) -> list[WakeRow]:
    turn_id = entry.fact.turn_id or ""
    wake = _wake(entry, rows, turn_id)
    return [] if wake is None else [_row(entry, turn_id, None, "somebody", event.requested_by)]


def _due_now(entry: LogEntry, rows: AtHand, cause: WakeCause, cause_id: str) -> list[WakeRow]:
    """Of a turn at rest. One that runs is told by whoever runs it."""
    turn_id = entry.fact.turn_id or ""
    return [_row(entry, turn_id, entry.fact.at, cause, cause_id)] if _wake(entry, rows, turn_id) is not None else []


def _row(entry: LogEntry, subject: str, due_at: int | None, cause: WakeCause, cause_id: str) -> WakeRow:
    return WakeRow(entry.agent_id, entry.fact.thread_id or "", subject, due_at, cause, cause_id)


def _wake(entry: LogEntry, rows: AtHand, subject: str) -> WakeRow | None:
    return rows.get(WAKES, entry.agent_id, entry.fact.thread_id or "", subject)


def _gone(entry: LogEntry, rows: AtHand, subject: str) -> list[Gone]:
    found = _wake(entry, rows, subject)
    return [] if found is None else [Gone(WAKES.key_of(found))]


def _of_turn(fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WAKES, (OWN_AGENT, fact.thread_id or "", fact.turn_id or "")),)


def _of_queue(fact: Fact) -> RowKey:
    return RowKey(WAKES, (OWN_AGENT, fact.thread_id or "", QUEUE))


def _of_message(fact: Fact, message_id: str) -> RowKey:
    return RowKey(WAKES, (OWN_AGENT, fact.thread_id or "", message_id))


def _needs_suspended(fact: Fact, event: TurnSuspended) -> Sequence[Need]:
    return (*_of_turn(fact, event), *(RowKey(ACTIONS, (name,)) for name in _asked(event)))


def _needs_started(fact: Fact, event: TurnStarted) -> Sequence[Need]:
    deferred = (_of_message(fact, message_id) for message_id in event.message_ids)
    return (_of_queue(fact), *deferred, *needs_started(fact, event))


def _needs_waiting(fact: Fact, event: MessageDeferred | MessageExpired) -> Sequence[Need]:
    return (_of_queue(fact), _of_message(fact, event.message_id), *needs_waiting(fact, event))


def _needs_ended(fact: Fact, event: Terminal) -> Sequence[Need]:
    return (_of_queue(fact), *_of_turn(fact, event), *needs_turn(fact, event))


def _needs_window(fact: Fact, event: LimitChanged) -> Sequence[Need]:
    return () if event.window is None else _of_turn(fact, event)


WAKE_RULES: Rules = {
    MessageAdmitted: RowRule(_message_admitted, needs_admitted),
    TurnStarted: RowRule(_turn_started, _needs_started),
    MessageDeferred: RowRule(_message_deferred, _needs_waiting),
    MessageExpired: RowRule(_message_expired, _needs_waiting),
    LimitChanged: RowRule(_limit_changed, _needs_window),
    TurnSuspended: RowRule(_turn_suspended, _needs_suspended),
    TurnResumed: RowRule(_turn_resumed, _of_turn),
    TurnCompleted: RowRule(_turn_ended, _needs_ended),
    TurnFailed: RowRule(_turn_ended, _needs_ended),
    ActionResolved: RowRule(_action_resolved, _of_turn),
    RuntimeToolResolved: RowRule(_runtime_tool_resolved, _of_turn),
    TurnInterruptRequested: RowRule(_interrupt_requested, _of_turn),
    TurnPauseRequested: RowRule(_pause_requested, _of_turn),
    TurnPauseLifted: RowRule(_pause_lifted, _of_turn),
}
