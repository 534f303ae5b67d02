"""Rules of `waits` and `pending_hints`, and of their wakes: a wait ends once, and hints become one tick."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    ContinuationResolved,
    TurnStarted,
    WaitCancelled,
    WaitCreated,
    WaitExpired,
    WaitResolved,
    WakeHintStored,
    WakeHintTriggered,
    WakeMoved,
)
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES
from wakeful.ports.waits import (
    OPEN_WAITS,
    PENDING_HINTS,
    WAITS,
    ContinuationRow,
    PendingHintRow,
    WaitRow,
    WaitState,
)
from wakeful.ports.wakes import HINT, WakeRow
from wakeful.store.tables.mailbox import NEEDS_STARTED, thread_row
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowList, RowRule, Rules
from wakeful.store.tables.wakes import NEEDS_ALARM, wake_gone, wake_row

WaitEnd: TypeAlias = WaitResolved | WaitExpired | WaitCancelled
MOST_BODIES: Final = 8
"""Hints that say something and are shown one by one; of more than that, how many there were."""


def wait_subject(wait_id: str) -> str:
    """What a wait's wake is called."""
    return f"wait:{wait_id}"


def _created(entry: LogEntry, event: WaitCreated, rows: AtHand) -> list[WaitRow]:
    if event.due_at is None:
        return []  # a sleep until a message comes: nobody has to end it
    if rows.get(WAITS, event.wait_id) is not None:
        raise EventRefused(f"there is a wait {event.wait_id} already", "Give the new one another id.")
    fact = entry.fact
    replaced = [
        row._replace(state="cancelled", ended_at=fact.at, ended_by=event.wait_id)
        for row in _replaced(entry, event, rows)
    ]
    created = WaitRow(
        wait_id=event.wait_id,
        agent_id=entry.agent_id,
        thread_id=fact.thread_id or "",
        turn_id=fact.turn_id or "",
        state="open",
        wake=event.wake,
        reason=event.reason,
        resource=event.resource,
        work_item_id=event.work_item_id,
        due_at=event.due_at,
        is_sleep=event.is_sleep,
        derived_from=event.derived_from,
        created_at=fact.at,
        ended_at=None,
        ended_by="",
    )
    return [*replaced, created]


def _replaced(entry: LogEntry, event: WaitCreated, rows: AtHand) -> list[WaitRow]:
    """Open waits of the thread for the same thing: one is enough, however often the model says it."""
    same = event.wake, event.resource, event.work_item_id, event.is_sleep
    return [
        row
        for row in rows.list(WAITS, OPEN_WAITS, entry.agent_id)
        if row.thread_id == entry.fact.thread_id and (row.wake, row.resource, row.work_item_id, row.is_sleep) == same
    ]


def _resolved(entry: LogEntry, event: WaitResolved, rows: AtHand) -> list[WaitRow]:
    return [_end(entry, event, rows, "resolved", event.message_id)]


def _expired(entry: LogEntry, event: WaitExpired, rows: AtHand) -> list[WaitRow]:
    return [_end(entry, event, rows, "expired", event.message_id)]


def _cancelled(entry: LogEntry, event: WaitCancelled, rows: AtHand) -> list[WaitRow]:
    """Where it ended in the same moment, there is nothing to cancel, and its turn goes on."""
    row = rows.get(WAITS, event.wait_id)
    if row is None or row.state != "open":
        return []
    return [row._replace(state="cancelled", ended_at=entry.fact.at, ended_by=event.cancelled_by)]


def _moved(entry: LogEntry, event: WakeMoved, rows: AtHand) -> list[WaitRow]:
    row = rows.get(WAITS, event.cause_id) if event.cause == "wait" else None
    return [] if row is None or row.state != "open" else [row._replace(due_at=event.moved_to)]


def _end(entry: LogEntry, event: WaitResolved | WaitExpired, rows: AtHand, state: WaitState, by: str) -> WaitRow:
    row = rows.get(WAITS, event.wait_id)
    if row is None or row.state != "open":
        found = "there is none" if row is None else f"it was {row.state}"
        raise EventRefused(f"{event.kind} names wait {event.wait_id}, and {found}", "Look at the wait again.")
    return row._replace(state=state, ended_at=entry.fact.at, ended_by=by)


def _of_open(agent_id: str, fact: Fact, event: WaitCreated) -> Sequence[Need]:
    return (RowList(WAITS, OPEN_WAITS, (agent_id,)),)


def _of_wait(agent_id: str, fact: Fact, event: WaitCreated | WaitEnd) -> Sequence[Need]:
    return (RowKey(WAITS, (event.wait_id,)),)


def _of_moved(agent_id: str, fact: Fact, event: WakeMoved) -> Sequence[Need]:
    return (RowKey(WAITS, (event.cause_id,)),) if event.cause == "wait" else ()


WAIT_RULES: Rules = {
    WaitCreated: RowRule(_created, (_of_wait, _of_open)),
    WaitResolved: RowRule(_resolved, (_of_wait,)),
    WaitExpired: RowRule(_expired, (_of_wait,)),
    WaitCancelled: RowRule(_cancelled, (_of_wait,)),
    WakeMoved: RowRule(_moved, (_of_moved,)),
}


# --- hints -------------------------------------------------------------------------------------------------------


def _hint_stored(entry: LogEntry, event: WakeHintStored, rows: AtHand) -> list[PendingHintRow]:
    at, seq = entry.fact.at, entry.seq
    there = _pending(entry, rows)
    if there is None:
        return [PendingHintRow(entry.agent_id, entry.fact.thread_id or "", event.hint_id, 1, (seq,), at, at)]
    says_something = event.body is not None or event.body_ref is not None
    seqs = (*there.stored_seqs, seq)[-MOST_BODIES:] if says_something else there.stored_seqs
    return [there._replace(hints=there.hints + 1, stored_seqs=seqs, last_at=at)]


def _hint_triggered(entry: LogEntry, event: WakeHintTriggered, rows: AtHand) -> list[Gone]:
    there = _pending(entry, rows)
    if there is None or there.first_hint_id != event.first_hint_id or there.hints != event.hints:
        raise EventRefused(
            f"{event.kind} names hint {event.first_hint_id} and {event.hints} in all, and that is not what is pending",
            "Look at the pending hint again.",
        )
    return [Gone((entry.agent_id, entry.fact.thread_id or ""))]


def _pending(entry: LogEntry, rows: AtHand) -> PendingHintRow | None:
    return rows.get(PENDING_HINTS, entry.agent_id, entry.fact.thread_id or "")


def _of_hint(agent_id: str, fact: Fact, event: object) -> Sequence[Need]:
    return (RowKey(PENDING_HINTS, (agent_id, fact.thread_id or "")),)


def _of_thread(agent_id: str, fact: Fact, event: object) -> Sequence[Need]:
    return (RowKey(BUSY_THREADS, (agent_id, fact.thread_id or "")),)


HINT_RULES: Rules = {
    WakeHintStored: RowRule(_hint_stored, (_of_hint,)),
    WakeHintTriggered: RowRule(_hint_triggered, (_of_hint,)),
}


# --- continuations -----------------------------------------------------------------------------------------------


def _resolved_continuation(entry: LogEntry, event: ContinuationResolved, rows: AtHand) -> list[ContinuationRow]:
    return [
        ContinuationRow(
            agent_id=entry.agent_id,
            thread_id=entry.fact.thread_id or "",
            message_id=event.message_id,
            message_kind=event.message_kind,
            treatment=event.treatment,
            resolution=event.resolution.model_dump(mode="json", exclude_none=True),
            at=entry.fact.at,
        )
    ]


def _began(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[ContinuationRow]:
    first = rows.get(MESSAGES, event.message_ids[0]) if event.continuation is not None and event.message_ids else None
    if first is None or event.continuation is None:
        return []
    return [
        ContinuationRow(
            agent_id=entry.agent_id,
            thread_id=entry.fact.thread_id or "",
            message_id=first.message_id,
            message_kind=first.kind,
            treatment="turn",
            resolution=event.continuation.model_dump(mode="json", exclude_none=True),
            at=entry.fact.at,
        )
    ]


CONTINUATION_RULES: Rules = {
    ContinuationResolved: RowRule(_resolved_continuation),
    TurnStarted: RowRule(_began, NEEDS_STARTED),
}


# --- wakes -------------------------------------------------------------------------------------------------------


def _wake_created(entry: LogEntry, event: WaitCreated, rows: AtHand) -> list[WakeRow | Gone]:
    if event.due_at is None:
        return []
    replaced = [wake_gone(entry, wait_subject(row.wait_id)) for row in _replaced(entry, event, rows)]
    return [*replaced, wake_row(entry, rows, wait_subject(event.wait_id), event.due_at, "wait", event.wait_id)]


def _wake_ended(entry: LogEntry, event: WaitEnd, rows: AtHand) -> list[Gone]:
    row = rows.get(WAITS, event.wait_id)
    return [] if row is None or row.state != "open" else [wake_gone(entry, wait_subject(event.wait_id))]


def _wake_hinted(entry: LogEntry, event: WakeHintStored, rows: AtHand) -> list[WakeRow]:
    """A thread that is free is looked at now; one that is not, when it is (`wakes`)."""
    thread = thread_row(entry, rows)
    is_free = not thread.turns and not thread.queued
    return [wake_row(entry, rows, HINT, entry.fact.at if is_free else None, "hint", event.hint_id)]


def _wake_triggered(entry: LogEntry, event: WakeHintTriggered, rows: AtHand) -> list[Gone]:
    return [wake_gone(entry, HINT)]


WAIT_WAKES: Rules = {
    WaitCreated: RowRule(_wake_created, (_of_open, *NEEDS_ALARM)),
    WaitResolved: RowRule(_wake_ended, (_of_wait,)),
    WaitExpired: RowRule(_wake_ended, (_of_wait,)),
    WaitCancelled: RowRule(_wake_ended, (_of_wait,)),
    WakeHintStored: RowRule(_wake_hinted, (_of_thread, *NEEDS_ALARM)),
    WakeHintTriggered: RowRule(_wake_triggered),
}
