"""Rules of `threads`: a message makes a thread or wakes it, a turn that begins counts in it, and it can be deleted
while nothing is open in it."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import MessageAdmitted, ThreadDeleted, TurnStarted
from wakeful.ports.mailbox import BUSY_THREADS, DEFERRED_IN_THREAD, MESSAGES
from wakeful.ports.threads import THREADS, ThreadRow
from wakeful.ports.turns import TURNS
from wakeful.store.tables.mailbox import needs_thread
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, RowKey, RowList, RowRule, Rules
from wakeful.store.tables.turns import own_turn


def _message_admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[ThreadRow]:
    turn_id, row = entry.fact.turn_id, _thread(entry, rows)
    is_opened = turn_id is not None and rows.get(TURNS, turn_id) is None
    active = row._replace(active_at=max(row.active_at, entry.fact.at))
    return [_with_turn(active, turn_id or "", entry.agent_name) if is_opened else active]


def _turn_started(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[ThreadRow]:
    turn_id, row = entry.fact.turn_id or "", _thread(entry, rows)
    if rows.get(TURNS, turn_id) is None:  # of the queue: it is opened by its start
        active = row._replace(active_at=max(row.active_at, entry.fact.at))
        return [_with_turn(active, turn_id, event.agent_name)]
    is_same = row.newest_turn != turn_id or row.agent_name == event.agent_name
    return [] if is_same else [row._replace(agent_name=event.agent_name)]


def _deleted(entry: LogEntry, event: ThreadDeleted, rows: AtHand) -> list[Gone]:
    thread_id = entry.fact.thread_id or ""
    if entry.is_new:
        busy = rows.get(BUSY_THREADS, entry.agent_id, thread_id)
        if rows.get(THREADS, entry.agent_id, thread_id) is None:
            raise EventRefused(f"thread {thread_id!r} is not there", "Look at the threads again.")
        if busy is not None or rows.list(MESSAGES, DEFERRED_IN_THREAD, entry.agent_id, thread_id):
            raise EventRefused(f"something is open in thread {thread_id!r}", "Let it end first.")
    return [Gone((entry.agent_id, thread_id))]


def _thread(entry: LogEntry, rows: AtHand) -> ThreadRow:
    thread_id, at = entry.fact.thread_id or "", entry.fact.at
    there = rows.get(THREADS, entry.agent_id, thread_id)
    return there or ThreadRow(entry.agent_id, thread_id, entry.agent_name, 0, "", at, at)


def _with_turn(row: ThreadRow, turn_id: str, agent_name: str) -> ThreadRow:
    return row._replace(turns=row.turns + 1, newest_turn=turn_id, agent_name=agent_name)


def _own_thread(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return (RowKey(THREADS, (agent_id, fact.thread_id or "")),)


def _deferred(agent_id: str, fact: Fact, event: Any) -> Sequence[RowList]:
    return (RowList(MESSAGES, DEFERRED_IN_THREAD, (agent_id, fact.thread_id or "")),)


THREAD_RULES: Rules = {
    MessageAdmitted: RowRule(_message_admitted, (_own_thread, own_turn)),
    TurnStarted: RowRule(_turn_started, (_own_thread, own_turn)),
    ThreadDeleted: RowRule(_deleted, (_own_thread, needs_thread, _deferred)),
}
