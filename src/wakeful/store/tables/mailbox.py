"""Rules of `messages` and `busy_threads`: where each message is, and what is open in a thread."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    MessageSettled,
    Terminal,
    TurnCompleted,
    TurnFailed,
    TurnInterjected,
    TurnRetried,
    TurnStarted,
)
from wakeful.ports.mailbox import (
    BANDS,
    BUSY_THREADS,
    MESSAGES,
    OPEN_OF_TURN,
    QUEUED_IN_THREAD,
    BusyThread,
    MessageRow,
    MessageState,
)
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowList, RowRule, Rules

Unread: TypeAlias = MessageDeferred | MessageExpired | MessageSettled
"""What is said of a message that no turn has."""


def is_under_way(messages: Sequence[MessageRow]) -> bool:
    """Has a turn with these open messages begun?"""
    return any(row.state == "taken" for row in messages)


def is_new(rows: AtHand, event: MessageAdmitted) -> bool:
    return rows.get(MESSAGES, event.message_id) is None


def is_queued(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> bool:
    """Does the message wait for a turn? One that is admitted to a turn under way does not."""
    if not is_new(rows, event):
        return False
    turn_id = entry.fact.turn_id
    return turn_id is None or not is_under_way(rows.list(MESSAGES, OPEN_OF_TURN, turn_id))


def was_queued(event: Unread, rows: AtHand) -> bool:
    """Did the message wait in its thread's queue? One that was deferred before did not."""
    row = rows.get(MESSAGES, event.message_id)
    return row is not None and row.state == "queued"


def leaves_queue(entry: LogEntry, event: TurnInterjected, rows: AtHand) -> bool:
    """Is it a message of the queue, and the turn that it is said to under way?"""
    row = rows.get(MESSAGES, event.message_id)
    if row is None or row.state != "queued" or row.turn_id or row.thread_id != entry.fact.thread_id:
        return False
    return is_under_way(rows.list(MESSAGES, OPEN_OF_TURN, entry.fact.turn_id or ""))


def waiting(event: TurnStarted, rows: AtHand) -> int:
    """How many messages leave the queue with this turn."""
    found = [rows.get(MESSAGES, message_id) for message_id in event.message_ids]
    return sum(row is not None and row.state == "queued" for row in found)


def thread_after_end(entry: LogEntry, rows: AtHand) -> BusyThread:
    """What is open in the thread once this turn has ended."""
    thread_id, turn_id = entry.fact.thread_id or "", entry.fact.turn_id or ""
    thread = thread_row(entry, rows)
    messages = rows.list(MESSAGES, OPEN_OF_TURN, turn_id)
    unread = sum(row.state == "queued" for row in messages)
    begun = is_under_way(messages)
    return BusyThread(entry.agent_id, thread_id, max(0, thread.turns - begun), max(0, thread.queued - unread))


def thread_without(entry: LogEntry, event: Unread, rows: AtHand) -> BusyThread:
    """What is open in the thread once this message is out of its queue."""
    thread = thread_row(entry, rows)
    return thread._replace(queued=max(0, thread.queued - was_queued(event, rows)))


def thread_row(entry: LogEntry, rows: AtHand) -> BusyThread:
    thread_id = entry.fact.thread_id or ""
    return rows.get(BUSY_THREADS, entry.agent_id, thread_id) or BusyThread(entry.agent_id, thread_id, 0, 0)


def needs_thread(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(BUSY_THREADS, (agent_id, fact.thread_id or "")),)


def needs_message(agent_id: str, fact: Fact, event: MessageAdmitted | TurnInterjected | Unread) -> Sequence[Need]:
    return (RowKey(MESSAGES, (event.message_id,)),)


def needs_turn(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    """What is open of the turn, if the fact names one."""
    return () if fact.turn_id is None else (RowList(MESSAGES, OPEN_OF_TURN, (fact.turn_id,)),)


def needs_answered(agent_id: str, fact: Fact, event: TurnRetried) -> Sequence[Need]:
    return [RowKey(MESSAGES, (message_id,)) for message_id in event.message_ids]


def needs_taken(agent_id: str, fact: Fact, event: TurnStarted) -> Sequence[Need]:
    taken: list[Need] = [RowKey(MESSAGES, (message_id,)) for message_id in event.message_ids]
    if event.opens_turn:
        taken.append(RowList(MESSAGES, QUEUED_IN_THREAD, (agent_id, fact.thread_id or "")))
    return taken


NEEDS_ADMITTED = (needs_thread, needs_message, needs_turn)
NEEDS_STARTED = (needs_thread, needs_taken)
NEEDS_WAITING = (needs_thread, needs_message)
NEEDS_ENDED = (needs_thread, needs_turn)
NEEDS_RETRIED = (needs_thread, needs_answered)


# --- messages ----------------------------------------------------------------------------------------------------


def _admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[MessageRow]:
    if is_queued(entry, event, rows):
        return [_message(entry, event, "queued")]
    return [_message(entry, event, "interjected")] if is_new(rows, event) else []


def _interjected(entry: LogEntry, event: TurnInterjected, rows: AtHand) -> list[MessageRow]:
    known = rows.get(MESSAGES, event.message_id)
    if known is not None:
        if not leaves_queue(entry, event, rows):
            return []  # the turn was over first: the message waits in its queue, before all others
        return [known._replace(state="interjected", turn_id=entry.fact.turn_id or "", taken_at=entry.fact.at)]
    if not rows.list(MESSAGES, OPEN_OF_TURN, entry.fact.turn_id or ""):
        return []  # the turn was over: whoever said it is told so, and nothing is kept of it
    return [_message(entry, event, "interjected")]


def _message(entry: LogEntry, event: MessageAdmitted | TurnInterjected, state: MessageState) -> MessageRow:
    return message_row(entry.agent_id, entry.seq, entry.fact, event, state)


def message_row(
    agent_id: str, seq: int, fact: Fact, event: MessageAdmitted | TurnInterjected, state: MessageState
) -> MessageRow:
    """The row of a message that comes with this fact."""
    said = event if isinstance(event, MessageAdmitted) else None  # else its turn's owner said it, to the turn
    return MessageRow(
        message_id=event.message_id,
        agent_id=agent_id,
        thread_id=fact.thread_id or "",
        state=state,
        band=BANDS[said.priority if said is not None else "interject"],
        kind=said.message_kind if said is not None else "operator_prompt",
        authority=said.authority_class if said is not None else "operator_instruction",
        key=said.key if said is not None else None,
        turn_id=fact.turn_id or "",
        admitted_seq=seq,
        admitted_at=fact.at,
        taken_at=None if state == "queued" else fact.at,
        ended_at=None,
    )


def _started(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[MessageRow]:
    turn_id, thread_id, at = entry.fact.turn_id or "", entry.fact.thread_id, entry.fact.at
    taken: list[MessageRow] = []
    if event.opens_turn:
        of_caller = [
            row for row in rows.list(MESSAGES, QUEUED_IN_THREAD, entry.agent_id, thread_id or "") if row.turn_id
        ]
        if of_caller:
            raise EventRefused(
                f"turn {turn_id} would begin before turn {of_caller[0].turn_id}, which its caller has opened",
                "Run that turn first: turns of a thread begin in the order in which they were opened.",
            )
    for message_id in event.message_ids:
        row = rows.get(MESSAGES, message_id)
        if row is None:
            continue
        is_elsewhere = row.thread_id != thread_id or row.state == "expired"
        if row.turn_id != turn_id and (row.turn_id or is_elsewhere):
            where = f"turn {row.turn_id}" if row.turn_id else f"thread {row.thread_id}"
            raise EventRefused(
                f"turn {turn_id} takes message {message_id}, which is {row.state} ({where})",
                "Look at the thread's queue again: a message is taken once, in its own thread.",
            )
        taken.append(row._replace(state="taken", turn_id=turn_id, taken_at=at))
    return taken


def _deferred(entry: LogEntry, event: MessageDeferred, rows: AtHand) -> list[MessageRow]:
    return [_waiting(entry, event, rows)._replace(state="deferred")]


def _expired(entry: LogEntry, event: MessageExpired, rows: AtHand) -> list[MessageRow]:
    return [_waiting(entry, event, rows)._replace(state="expired", ended_at=entry.fact.at)]


def _settled(entry: LogEntry, event: MessageSettled, rows: AtHand) -> list[MessageRow]:
    return [_waiting(entry, event, rows)._replace(state="processed", ended_at=entry.fact.at)]


def _waiting(entry: LogEntry, event: Unread, rows: AtHand) -> MessageRow:
    """A message that no turn has. Raises EventRefused: it is elsewhere, its caller waits, or a turn was faster."""
    row = rows.get(MESSAGES, event.message_id)
    if row is None or row.thread_id != entry.fact.thread_id:
        raise EventRefused(
            f"{event.kind} names message {event.message_id}, which is not in thread {entry.fact.thread_id}",
            "Name a message of that thread's queue.",
        )
    if row.turn_id or row.state not in ("queued", "deferred"):
        whose = f" by turn {row.turn_id}" if row.turn_id else ""
        raise EventRefused(
            f"{event.kind} names message {event.message_id}, which is {row.state}{whose}",
            "Leave it: only a message that waits and that no turn was opened for can be set aside.",
        )
    return row


def _processed(entry: LogEntry, event: Terminal, rows: AtHand) -> list[MessageRow]:
    found = rows.list(MESSAGES, OPEN_OF_TURN, entry.fact.turn_id or "")
    return [row._replace(state="processed", ended_at=entry.fact.at) for row in found]


def _taken_again(entry: LogEntry, event: TurnRetried, rows: AtHand) -> list[MessageRow]:
    return [row._replace(state="taken", ended_at=None) for row in answered(event, rows)]


def answered(event: TurnRetried, rows: AtHand) -> list[MessageRow]:
    """The messages of a turn that is open again. Retention may have removed them."""
    found = [rows.get(MESSAGES, message_id) for message_id in event.message_ids]
    return [row for row in found if row is not None]


MESSAGE_RULES: Rules = {
    MessageAdmitted: RowRule(_admitted, NEEDS_ADMITTED),
    TurnInterjected: RowRule(_interjected, (needs_turn, needs_message)),
    TurnStarted: RowRule(_started, NEEDS_STARTED),
    MessageDeferred: RowRule(_deferred, NEEDS_WAITING),
    MessageExpired: RowRule(_expired, NEEDS_WAITING),
    MessageSettled: RowRule(_settled, NEEDS_WAITING),
    TurnCompleted: RowRule(_processed, NEEDS_ENDED),
    TurnFailed: RowRule(_processed, NEEDS_ENDED),
    TurnRetried: RowRule(_taken_again, NEEDS_RETRIED),
}


# --- busy_threads ------------------------------------------------------------------------------------------------


def _more_queued(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[BusyThread]:
    thread = thread_row(entry, rows)
    return [thread._replace(queued=thread.queued + 1)] if is_queued(entry, event, rows) else []


def _more_under_way(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[BusyThread]:
    thread = thread_row(entry, rows)
    return [thread._replace(turns=thread.turns + 1, queued=max(0, thread.queued - waiting(event, rows)))]


def _less_queued(entry: LogEntry, event: Unread, rows: AtHand) -> list[BusyThread | Gone]:
    return _left(thread_without(entry, event, rows)) if was_queued(event, rows) else []


def _less_waiting(entry: LogEntry, event: TurnInterjected, rows: AtHand) -> list[BusyThread | Gone]:
    if not leaves_queue(entry, event, rows):
        return []
    thread = thread_row(entry, rows)
    return _left(thread._replace(queued=max(0, thread.queued - 1)))


def _less_open(entry: LogEntry, event: Terminal, rows: AtHand) -> list[BusyThread | Gone]:
    return _left(thread_after_end(entry, rows))


def _open_again(entry: LogEntry, event: TurnRetried, rows: AtHand) -> list[BusyThread]:
    thread = thread_row(entry, rows)
    return [thread._replace(turns=thread.turns + 1)] if answered(event, rows) else []


def _left(thread: BusyThread) -> list[BusyThread | Gone]:
    return [thread if thread.turns or thread.queued else Gone((thread.agent_id, thread.thread_id))]


BUSY_RULES: Rules = {
    MessageAdmitted: RowRule(_more_queued, NEEDS_ADMITTED),
    TurnInterjected: RowRule(_less_waiting, (needs_thread, needs_turn, needs_message)),
    TurnStarted: RowRule(_more_under_way, NEEDS_STARTED),
    MessageDeferred: RowRule(_less_queued, NEEDS_WAITING),
    MessageExpired: RowRule(_less_queued, NEEDS_WAITING),
    MessageSettled: RowRule(_less_queued, NEEDS_WAITING),
    TurnCompleted: RowRule(_less_open, NEEDS_ENDED),
    TurnFailed: RowRule(_less_open, NEEDS_ENDED),
    TurnRetried: RowRule(_open_again, NEEDS_RETRIED),
}
