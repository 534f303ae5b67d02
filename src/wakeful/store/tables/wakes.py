"""Rules of `wakes`: what makes a thread worth a look, and what settles it.

A turn has a row exactly while it rests, from `turn.suspended` to `turn.resumed` or its end; only the spend window that
it is about to rest on comes a moment earlier. A queue has one while nothing is open in its thread, and a deferred
message from its deferral until a turn takes it or its sender's time is over. A runtime has alarms for the rows of its
agents that run, and for no others.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    ActionResolved,
    AgentCreated,
    AgentStateChanged,
    LimitChanged,
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    MessageSettled,
    RuntimeToolResolved,
    Terminal,
    TurnCompleted,
    TurnFailed,
    TurnInterruptRequested,
    TurnPatienceEnded,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnProviderReturned,
    TurnResumed,
    TurnRetried,
    TurnStarted,
    TurnSuspended,
    WakeMoved,
)
from wakeful.ports.approvals import ACTIONS
from wakeful.ports.mailbox import BusyThread
from wakeful.ports.wakes import AGENT, HINT, OF_AGENT, QUEUE, WAKES, WakeCause, WakeRow
from wakeful.store.tables.mailbox import (
    NEEDS_ADMITTED,
    NEEDS_ENDED,
    NEEDS_STARTED,
    NEEDS_WAITING,
    Unread,
    is_queued,
    thread_after_end,
    thread_row,
    thread_without,
)
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowList, RowRule, Rules
from wakeful.store.tables.runtime_agents import NEEDS_AGENT, agent_row, is_outdated


def _message_admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[WakeRow]:
    thread = thread_row(entry, rows)
    if thread.turns or thread.queued or not is_queued(entry, event, rows):
        return []  # somebody is at the thread, or is to look at its queue anyway
    return [wake_row(entry, rows, QUEUE, entry.fact.at, "message", event.message_id)]


def _turn_started(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[Gone]:
    return [gone for subject in (QUEUE, *event.message_ids) for gone in _gone(entry, rows, subject)]


def _message_deferred(entry: LogEntry, event: MessageDeferred, rows: AtHand) -> list[WakeRow | Gone]:
    wake = wake_row(entry, rows, event.message_id, event.deadline, "deferral", event.folder or event.message_id)
    return [wake, *_queue_left(entry, event, rows)]


def _message_left(entry: LogEntry, event: MessageExpired | MessageSettled, rows: AtHand) -> list[WakeRow | Gone]:
    return [*_gone(entry, rows, event.message_id), *_queue_left(entry, event, rows)]


def _queue_left(entry: LogEntry, event: Unread, rows: AtHand) -> list[WakeRow | Gone]:
    """Nobody is to look at a queue in which nothing waits."""
    left = thread_without(entry, event, rows)
    return [] if left.queued else [*_gone(entry, rows, QUEUE), *_hint_next(entry, rows, left)]


def _hint_next(entry: LogEntry, rows: AtHand, left: BusyThread) -> list[WakeRow]:
    """Hints that came to a busy thread are looked at once it is free."""
    hint = _wake(entry, rows, HINT)
    if hint is None or left.queued or left.turns:
        return []
    return [wake_row(entry, rows, HINT, entry.fact.at, "hint", hint.cause_id)]


def _limit_changed(entry: LogEntry, event: LimitChanged, rows: AtHand) -> list[WakeRow]:
    window = event.window
    if window is None or window.is_hopeless:
        return []
    return [wake_row(entry, rows, entry.fact.turn_id or "", window.turns, "window", f"{window.scope} {window.period}")]


def _turn_suspended(entry: LogEntry, event: TurnSuspended, rows: AtHand) -> list[WakeRow]:
    turn_id = entry.fact.turn_id or ""
    if event.reason == "budget_window" and _wake(entry, rows, turn_id) is not None:
        return []  # when the window turns is known from what filled it
    asked = [rows.get(ACTIONS, name) for name in _asked(event)]
    pending = [row for row in asked if row is not None and row.status == "pending"]
    first = min(pending, key=lambda row: row.expires_at, default=None)
    if event.next_try is not None and (first is None or event.next_try < first.expires_at):
        return [wake_row(entry, rows, turn_id, event.next_try, "provider", ", ".join(event.waiting_for))]
    if first is None:
        cause: WakeCause = "paused" if event.reason == "paused" else "somebody"
        return [wake_row(entry, rows, turn_id, None, cause, ", ".join(event.waiting_for))]
    return [wake_row(entry, rows, turn_id, first.expires_at, "expiry", first.action_id)]


def _asked(event: TurnSuspended) -> Sequence[str]:
    return event.waiting_for if event.reason in ("approval_required", "runtime_tool_pending") else ()


def _turn_resumed(entry: LogEntry, event: TurnResumed, rows: AtHand) -> list[Gone]:
    return _gone(entry, rows, entry.fact.turn_id or "")


def _turn_ended(entry: LogEntry, event: Terminal, rows: AtHand) -> list[WakeRow | Gone]:
    """What waited behind it is next."""
    found: list[WakeRow | Gone] = [*_gone(entry, rows, entry.fact.turn_id or "")]
    left, queue = thread_after_end(entry, rows), _wake(entry, rows, QUEUE)
    if left.queued and not left.turns and queue is None:
        found.append(wake_row(entry, rows, QUEUE, entry.fact.at, "message", entry.fact.turn_id or ""))
    elif not left.queued and queue is not None:
        found += _gone(entry, rows, QUEUE)
    return [*found, *_hint_next(entry, rows, left)]


def _turn_retried(entry: LogEntry, event: TurnRetried, rows: AtHand) -> list[WakeRow | Gone]:
    """It is next. What waits in the queue of its thread waits behind it."""
    due = wake_row(entry, rows, entry.fact.turn_id or "", entry.fact.at, "retry", event.requested_by)
    return [due, *_gone(entry, rows, QUEUE)]


def _action_resolved(entry: LogEntry, event: ActionResolved, rows: AtHand) -> list[WakeRow]:
    return _decided(entry, rows, event.action_id)


def _runtime_tool_resolved(entry: LogEntry, event: RuntimeToolResolved, rows: AtHand) -> list[WakeRow]:
    return _decided(entry, rows, event.request_id)


def _decided(entry: LogEntry, rows: AtHand, action_id: str) -> list[WakeRow]:
    wake = _wake(entry, rows, entry.fact.turn_id or "")
    if wake is None or wake.cause not in ("expiry", "decision", "provider"):
        return []  # a decision gives a turn no money, and does not lift a pause
    return _due_now(entry, rows, "decision", action_id)


def _interrupt_requested(entry: LogEntry, event: TurnInterruptRequested, rows: AtHand) -> list[WakeRow]:
    return _due_now(entry, rows, "interrupt", event.interrupt_id)


def _provider_returned(entry: LogEntry, event: TurnProviderReturned, rows: AtHand) -> list[WakeRow]:
    wake = _wake(entry, rows, entry.fact.turn_id or "")
    return _due_now(entry, rows, "provider", event.provider) if wake is not None and wake.cause == "provider" else []


def _patience_ended(entry: LogEntry, event: TurnPatienceEnded, rows: AtHand) -> list[WakeRow]:
    return _due_now(entry, rows, "interrupt", "")


def _pause_lifted(entry: LogEntry, event: TurnPauseLifted, rows: AtHand) -> list[WakeRow]:
    return _due_now(entry, rows, "unpaused", event.requested_by)


def _pause_requested(entry: LogEntry, event: TurnPauseRequested, rows: AtHand) -> list[WakeRow]:
    turn_id = entry.fact.turn_id or ""
    wake = _wake(entry, rows, turn_id)
    if wake is None or wake.cause == "interrupt":
        return []  # a turn that is to stop is not kept from it
    return [wake_row(entry, rows, turn_id, None, "paused", event.requested_by)]


def _wake_moved(entry: LogEntry, event: WakeMoved, rows: AtHand) -> list[WakeRow]:
    wake = _wake(entry, rows, event.subject)
    if wake is None or wake.due_at != event.due_at:
        raise EventRefused(
            f"{event.kind} names a due time of {event.subject or 'the queue'} that is over",
            "Leave it: somebody was faster.",
        )
    alarm = None if wake.alarm is None else event.moved_to
    return [wake._replace(due_at=event.moved_to, alarm=alarm, set_at=entry.fact.at)]


def _due_now(entry: LogEntry, rows: AtHand, cause: WakeCause, cause_id: str) -> list[WakeRow]:
    """Of a turn at rest. One that runs is told by whoever runs it."""
    turn_id = entry.fact.turn_id or ""
    return (
        [wake_row(entry, rows, turn_id, entry.fact.at, cause, cause_id)]
        if _wake(entry, rows, turn_id) is not None
        else []
    )


def wake_row(
    entry: LogEntry, rows: AtHand, subject: str, due_at: int | None, cause: WakeCause, cause_id: str
) -> WakeRow:
    agent = agent_row(entry, rows)
    alarm = due_at if agent is not None and agent.control == "running" else None
    return WakeRow(entry.agent_id, entry.fact.thread_id or "", subject, due_at, cause, cause_id, alarm, entry.fact.at)


def wake_gone(entry: LogEntry, subject: str) -> Gone:
    """The end of a wake that is known to be there."""
    return Gone((entry.agent_id, entry.fact.thread_id or "", subject))


def _wake(entry: LogEntry, rows: AtHand, subject: str) -> WakeRow | None:
    return rows.get(WAKES, entry.agent_id, entry.fact.thread_id or "", subject)


def _gone(entry: LogEntry, rows: AtHand, subject: str) -> list[Gone]:
    found = _wake(entry, rows, subject)
    return [] if found is None else [Gone(WAKES.key_of(found))]


def _of_turn(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", fact.turn_id or "")),)


def _of_queue(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", QUEUE)),)


def _of_hint(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", HINT)),)


def _of_message(agent_id: str, fact: Fact, event: Unread) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", event.message_id)),)


def _of_taken(agent_id: str, fact: Fact, event: TurnStarted) -> Sequence[Need]:
    return [RowKey(WAKES, (agent_id, fact.thread_id or "", message_id)) for message_id in event.message_ids]


def _of_subject(agent_id: str, fact: Fact, event: WakeMoved) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", event.subject)),)


def _of_asked(agent_id: str, fact: Fact, event: TurnSuspended) -> Sequence[Need]:
    return [RowKey(ACTIONS, (name,)) for name in _asked(event)]


def _of_window(agent_id: str, fact: Fact, event: LimitChanged) -> Sequence[Need]:
    return () if event.window is None else _of_turn(agent_id, fact, event)


def _state_changed(entry: LogEntry, event: AgentStateChanged, rows: AtHand) -> list[WakeRow | Gone]:
    """Everything of the agent waits until it runs, but for what it has to tell people and what is to end; only the end
    of its pause has a time of its own."""
    row = agent_row(entry, rows)
    if row is None or is_outdated(event, row):
        return []  # refused by the agent's own row
    known = rows.list(WAKES, OF_AGENT, entry.agent_id)
    others = [wake for wake in known if wake.subject != AGENT]
    runs = event.control == "running"
    changed: list[WakeRow | Gone] = [
        wake._replace(alarm=wake.due_at if runs or wake.cause in ("notice", "stop") else None) for wake in others
    ]
    if event.control == "paused" and event.resumes_at is not None:
        ends = event.resumes_at
        by, at = event.changed_by, entry.fact.at
        changed.append(WakeRow(entry.agent_id, MAIN_THREAD, AGENT, ends, "resumption", by, ends, at))
    elif len(others) < len(known):
        changed.append(Gone((entry.agent_id, MAIN_THREAD, AGENT)))
    return changed


def _agent_created(entry: LogEntry, event: AgentCreated, rows: AtHand) -> list[WakeRow]:
    """A stream of the library's may become an agent of a runtime, with what waits in it."""
    return [wake._replace(alarm=wake.due_at) for wake in rows.list(WAKES, OF_AGENT, entry.agent_id)]


def _of_agent(agent_id: str, fact: Fact, event: AgentCreated | AgentStateChanged) -> Sequence[Need]:
    return (RowList(WAKES, OF_AGENT, (agent_id,)),)


NEEDS_ALARM = NEEDS_AGENT
"""What `wake_row` reads."""
WAKE_RULES: Rules = {
    MessageAdmitted: RowRule(_message_admitted, (*NEEDS_ADMITTED, *NEEDS_AGENT)),
    TurnStarted: RowRule(_turn_started, (_of_queue, _of_taken, *NEEDS_STARTED)),
    MessageDeferred: RowRule(_message_deferred, (_of_queue, _of_message, _of_hint, *NEEDS_WAITING, *NEEDS_AGENT)),
    MessageExpired: RowRule(_message_left, (_of_queue, _of_message, _of_hint, *NEEDS_WAITING, *NEEDS_AGENT)),
    MessageSettled: RowRule(_message_left, (_of_queue, _of_message, _of_hint, *NEEDS_WAITING, *NEEDS_AGENT)),
    LimitChanged: RowRule(_limit_changed, (_of_window, *NEEDS_AGENT)),
    TurnSuspended: RowRule(_turn_suspended, (_of_turn, _of_asked, *NEEDS_AGENT)),
    TurnResumed: RowRule(_turn_resumed, (_of_turn,)),
    TurnCompleted: RowRule(_turn_ended, (_of_queue, _of_turn, _of_hint, *NEEDS_ENDED, *NEEDS_AGENT)),
    TurnFailed: RowRule(_turn_ended, (_of_queue, _of_turn, _of_hint, *NEEDS_ENDED, *NEEDS_AGENT)),
    TurnRetried: RowRule(_turn_retried, (_of_queue, _of_turn, *NEEDS_AGENT)),
    ActionResolved: RowRule(_action_resolved, (_of_turn, *NEEDS_AGENT)),
    RuntimeToolResolved: RowRule(_runtime_tool_resolved, (_of_turn, *NEEDS_AGENT)),
    TurnInterruptRequested: RowRule(_interrupt_requested, (_of_turn, *NEEDS_AGENT)),
    TurnProviderReturned: RowRule(_provider_returned, (_of_turn, *NEEDS_AGENT)),
    TurnPatienceEnded: RowRule(_patience_ended, (_of_turn, *NEEDS_AGENT)),
    TurnPauseRequested: RowRule(_pause_requested, (_of_turn, *NEEDS_AGENT)),
    TurnPauseLifted: RowRule(_pause_lifted, (_of_turn, *NEEDS_AGENT)),
    WakeMoved: RowRule(_wake_moved, (_of_subject,)),
    AgentCreated: RowRule(_agent_created, (_of_agent, *NEEDS_AGENT)),
    AgentStateChanged: RowRule(_state_changed, (_of_agent, *NEEDS_AGENT)),
}
