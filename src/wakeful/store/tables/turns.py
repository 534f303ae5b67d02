"""Rules of `turns`: a message or its start opens a turn, and its owner's facts move it on until it ends, once.

What others say to a turn is noted in its row, so that its owner sees at once that there is something new.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    EVENTS,
    MessageAdmitted,
    Terminal,
    ThreadDeleted,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnRetried,
    TurnStarted,
    TurnSuspended,
)
from wakeful.ports.turns import TURNS, TURNS_OF_THREAD, TurnRow, TurnState
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowKey, RowList, RowRule, Rules


def _message_admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[TurnRow]:
    if entry.fact.turn_id is None:
        return []  # it waits in its thread's queue, and the turn that takes it is opened by its start
    if rows.get(TURNS, entry.fact.turn_id) is not None:
        return _said(entry, event, rows)  # a further message of the same turn: its owner is given it
    opened = _opened(entry, event.prompt_preview)
    return [opened._replace(key=event.key, fingerprint=event.fingerprint, heard=entry.seq)]


def _opened(entry: LogEntry, preview: str) -> TurnRow:
    """The row of a turn that begins with this fact."""
    return TurnRow(
        turn_id=entry.fact.turn_id or "",
        agent_id=entry.agent_id,
        agent_name=entry.agent_name,
        thread_id=entry.fact.thread_id or "",
        state="admitted",
        first_seq=entry.seq,
        last_seq=entry.seq,
        window_from=entry.seq,
        turn_index=0,
        key=None,
        fingerprint="",
        prompt_preview=preview,
        waiting_for=(),
        created_at=entry.fact.at,
        ended_at=None,
    )


def _said(entry: LogEntry, event: Any, rows: AtHand) -> list[TurnRow]:
    """By anybody, at any time: also to a turn that is over."""
    if entry.fact.turn_id is None:
        return []
    row = rows.get(TURNS, entry.fact.turn_id)
    if row is None:
        raise _not_open(entry)
    return [row._replace(last_seq=entry.seq, heard=entry.seq)]


def _turn_started(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[TurnRow]:
    row = rows.get(TURNS, entry.fact.turn_id) or _opened(entry, event.prompt_preview or "")
    begun = {"turn_index": event.turn_index, "window_from": event.window_from, "agent_name": event.agent_name}
    return [_moved(entry, row, "running", **begun)]


def _turn_suspended(entry: LogEntry, event: TurnSuspended, rows: AtHand) -> list[TurnRow]:
    return _move(entry, rows, "suspended", waiting_for=event.waiting_for)


def _turn_resumed(entry: LogEntry, event: TurnResumed, rows: AtHand) -> list[TurnRow]:
    return _move(entry, rows, "running", waiting_for=())


def _turn_ended(entry: LogEntry, event: Terminal, rows: AtHand) -> list[TurnRow]:
    return _move(entry, rows, event.status, waiting_for=(), ended_at=entry.fact.at)


def _turn_retried(entry: LogEntry, event: TurnRetried, rows: AtHand) -> list[TurnRow]:
    """It rests, and is due: whoever takes it up goes on with it."""
    row = rows.get(TURNS, entry.fact.turn_id)
    if row is None:
        raise _not_open(entry)
    if entry.is_new and row.state not in RETRIED:
        raise EventRefused(f"turn {row.turn_id} is {row.state}", "A turn that failed can be tried again, and no other.")
    if entry.is_new and (later := _later_turn(row, rows)) is not None:
        raise EventRefused(
            f"turn {row.turn_id} has failed, and turn {later.turn_id} of thread {row.thread_id} has begun since then",
            "Send the message again in its place: what came later rests on the failure.",
        )
    return [row._replace(state="suspended", waiting_for=(), ended_at=None, last_seq=entry.seq, heard=entry.seq)]


def _later_turn(row: TurnRow, rows: AtHand) -> TurnRow | None:
    of_thread = rows.list(TURNS, TURNS_OF_THREAD, row.thread_id, row.agent_id)
    return next((each for each in of_thread if each.first_seq > row.first_seq and each.turn_index), None)


def _thread_deleted(entry: LogEntry, event: ThreadDeleted, rows: AtHand) -> list[TurnRow]:
    turns = rows.list(TURNS, TURNS_OF_THREAD, entry.fact.thread_id or "", entry.agent_id)
    return [row._replace(prompt_preview="", deleted_at=entry.fact.at) for row in turns]


def _move(entry: LogEntry, rows: AtHand, state: TurnState, **fields: Any) -> list[TurnRow]:
    row = rows.get(TURNS, entry.fact.turn_id)
    if row is None:
        raise _not_open(entry)
    return [_moved(entry, row, state, **fields)]


def _moved(entry: LogEntry, row: TurnRow, state: TurnState, **fields: Any) -> TurnRow:
    if not row.is_open:
        raise EventRefused(
            f"{entry.fact.event.kind} came after turn {row.turn_id} was {row.state}",
            "A turn ends once; fold its log again.",
        )
    return row._replace(state=state, last_seq=entry.seq, **fields)


def _not_open(entry: LogEntry) -> EventRefused:
    return EventRefused(
        f"{entry.fact.event.kind} names turn {entry.fact.turn_id}, which nothing has opened",
        "Admit its message, or start it with queued ones, first.",
    )


def own_turn(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return () if fact.turn_id is None else (RowKey(TURNS, (fact.turn_id,)),)


def _of_thread(agent_id: str, fact: Fact, event: Any) -> Sequence[RowList]:
    return (RowList(TURNS, TURNS_OF_THREAD, (fact.thread_id or "", agent_id)),)


RETRIED: Final[frozenset[TurnState]] = frozenset({"failed", "incomplete"})
"""How a turn ended that can be tried again."""
_MOVES: dict[type, Callable[[LogEntry, Any, AtHand], list[TurnRow]]] = {
    MessageAdmitted: _message_admitted,
    TurnStarted: _turn_started,
    TurnSuspended: _turn_suspended,
    TurnResumed: _turn_resumed,
    TurnCompleted: _turn_ended,
    TurnFailed: _turn_ended,
}
SAID = RowRule(_said, (own_turn,))
"""Of every kind that others than a turn's owner may write."""
TURN_RULES: Rules = {
    **{event: SAID for event in EVENTS if event.outsider},
    **{event: RowRule(move, (own_turn,)) for event, move in _MOVES.items()},
    TurnRetried: RowRule(_turn_retried, (own_turn, _of_thread)),
    ThreadDeleted: RowRule(_thread_deleted, (_of_thread,)),
}
