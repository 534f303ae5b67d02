"""Rules of `work_items` and `work_focus`.

What an agent does to its items in a turn is taken as it is: two of its threads may be at work at once, and the log's
order says who was later. A change of an item that is completed by then changes nothing. What others write is compared
with the row and refused where it was settled before: a deadline reminds once, and a blocker that somebody else set
stays.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.authority import Authority, lowest
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    WakeMoved,
    WorkItemBlockerChanged,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemEnqueued,
    WorkItemPicked,
    WorkItemRechecked,
    WorkItemUpdated,
    WorkQueueActivated,
    WorkQueueProjected,
    WorkQueueScheduled,
)
from wakeful.contracts.work_items import KEPT_TURNS, TodoItem, WorkItem
from wakeful.ports.wakes import WAKES, WORK, WakeRow
from wakeful.ports.work_items import WORK_FOCUS, WORK_ITEMS, FocusRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules
from wakeful.store.tables.runtime_agents import agent_row
from wakeful.store.tables.wakes import NEEDS_ALARM, wake_gone, wake_row


def _created(entry: LogEntry, event: WorkItemCreated | WorkItemEnqueued, rows: AtHand) -> list[WorkItem]:
    if rows.get(WORK_ITEMS, event.work_item_id) is not None:
        if isinstance(event, WorkItemCreated):
            return []  # the same call, carried out again
        raise EventRefused(
            f"work item {event.work_item_id} is there already", "Use a new id; nothing was put into the queue."
        )
    at = entry.fact.at
    item = WorkItem(
        work_item_id=event.work_item_id,
        agent_id=entry.agent_id,
        thread_id=entry.fact.thread_id or MAIN_THREAD,
        workspace_id=event.workspace_id,
        objective=event.objective,
        state="open",
        plan_status=event.plan_status,
        todo_list=_todos(event.todo_list),
        blocked_by=None,
        recheck_at=None,
        recheck_message_id="",
        recheck_consumed_at=None,
        triggered_at=None,
        report_event_id="",
        derived_from=event.derived_from,
        turns=(),
        idle_turns=0,
        plan_turns=0,
        created_by=event.enqueued_by if isinstance(event, WorkItemEnqueued) else "agent",
        created_at=at,
        updated_at=at,
        completed_at=None,
        principal=event.principal if isinstance(event, WorkItemCreated) else "",
    )
    return [item]


def _updated(entry: LogEntry, event: WorkItemUpdated, rows: AtHand) -> list[WorkItem]:
    item = _item(event.work_item_id, event.kind, rows)
    if not item.is_open:
        return []
    said: dict[str, Any] = {"updated_at": entry.fact.at, "derived_from": _lower(item, event.derived_from)}
    if event.objective is not None:
        said["objective"] = event.objective
    if event.plan_status is not None:
        said["plan_status"] = event.plan_status
    if event.todo_list is not None:
        said["todo_list"] = _todos(event.todo_list)
    if event.blocked_by is not None:
        said |= _blocker(event.blocked_by or None, event.recheck_at)
    return [item._replace(**said)]


def _picked(entry: LogEntry, event: WorkItemPicked, rows: AtHand) -> list[WorkItem]:
    item = _item(event.work_item_id, event.kind, rows)
    return [item._replace(thread_id=entry.fact.thread_id or item.thread_id)] if item.is_open else []


def _completed(entry: LogEntry, event: WorkItemCompleted, rows: AtHand) -> list[WorkItem]:
    item = _item(event.work_item_id, event.kind, rows)
    if not item.is_open:
        return []
    at = entry.fact.at
    ended = item._replace(state="completed", updated_at=at, completed_at=at, triggered_at=None)
    return [ended._replace(report_event_id=event.text_ref or "", **_blocker(None, None))]


def _shown(entry: LogEntry, event: WorkQueueProjected, rows: AtHand) -> list[WorkItem]:
    """The newest turn of the current item, and that a model has seen what fired."""
    changed: dict[str, WorkItem] = {}
    for name in _named(event):
        item = _item(name, event.kind, rows)
        if name in event.triggered:
            is_due = item.recheck_at is not None and item.recheck_at <= entry.fact.at
            seen_at = entry.fact.at if is_due and item.recheck_consumed_at is None else item.recheck_consumed_at
            item = item._replace(triggered_at=None, recheck_consumed_at=seen_at)
        if name == event.current:
            turns = (entry.fact.turn_id or "", *item.turns)[:KEPT_TURNS]
            item = item._replace(turns=turns)
        changed[name] = item
    return [*changed.values()]


def _rechecked(entry: LogEntry, event: WorkItemRechecked, rows: AtHand) -> list[WorkItem]:
    item = _item(event.work_item_id, event.kind, rows)
    settled = item.recheck_message_id or item.recheck_consumed_at is not None
    if not item.is_open or item.recheck_at != event.recheck_at or settled:
        raise EventRefused(
            f"the recheck of work item {event.work_item_id} at {event.recheck_at} is settled",
            "Leave it: a deadline reminds once, and the item may have been changed since.",
        )
    return [item._replace(recheck_message_id=event.message_id, triggered_at=entry.fact.at)]


def _wake_moved(entry: LogEntry, event: WakeMoved, rows: AtHand) -> list[WorkItem]:
    item = rows.get(WORK_ITEMS, event.cause_id) if event.cause == "recheck" else None
    return [] if item is None or item.recheck_at != event.due_at else [item._replace(recheck_at=event.moved_to)]


def _of_moved(agent_id: str, fact: Fact, event: WakeMoved) -> Sequence[Need]:
    return (RowKey(WORK_ITEMS, (event.cause_id,)),) if event.cause == "recheck" else ()


def _blocker_changed(entry: LogEntry, event: WorkItemBlockerChanged, rows: AtHand) -> list[WorkItem]:
    item = _item(event.work_item_id, event.kind, rows)
    if not item.is_open or item.blocked_by != event.before:
        now = "completed" if not item.is_open else f"blocked by {item.blocked_by!r}" if item.blocked_by else "open"
        raise EventRefused(
            f"work item {event.work_item_id} is {now} and no longer blocked by {event.before!r}",
            "Leave it: somebody else changed it first.",
        )
    changed = item._replace(updated_at=entry.fact.at, **_blocker(event.blocked_by, event.recheck_at))
    return [changed._replace(triggered_at=entry.fact.at) if event.cause == "wait_resolved" else changed]


def _scheduled(entry: LogEntry, event: WorkQueueScheduled, rows: AtHand) -> list[WorkItem]:
    if event.work_item_id is None:
        return []
    item = _item(event.work_item_id, event.kind, rows)
    return [item._replace(idle_turns=event.idle_turns, plan_turns=event.plan_turns)]


def _blocker(blocked_by: str | None, recheck_at: int | None) -> dict[str, Any]:
    return {
        "blocked_by": blocked_by,
        "recheck_at": recheck_at if blocked_by is not None else None,
        "recheck_message_id": "",
        "recheck_consumed_at": None,
    }


def _todos(given: Sequence[TodoItem]) -> tuple[dict[str, Any], ...]:
    return tuple(item.model_dump() for item in given)


def _lower(item: WorkItem, derived_from: Authority) -> Authority:
    return derived_from if lowest((item.derived_from, derived_from)) == derived_from else item.derived_from


def _item(work_item_id: str, kind: str, rows: AtHand) -> WorkItem:
    row = rows.get(WORK_ITEMS, work_item_id)
    if row is None:
        raise EventRefused(f"{kind} names work item {work_item_id}, which this agent has not", "Name one of its items.")
    return row


def _named(event: WorkQueueProjected) -> list[str]:
    return [*dict.fromkeys([*([event.current] if event.current is not None else []), *event.triggered])]


def _of_item(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WORK_ITEMS, (event.work_item_id,)),)


def _of_scheduled(agent_id: str, fact: Fact, event: WorkQueueScheduled) -> Sequence[Need]:
    return () if event.work_item_id is None else (RowKey(WORK_ITEMS, (event.work_item_id,)),)


def _of_shown(agent_id: str, fact: Fact, event: WorkQueueProjected) -> Sequence[Need]:
    return [RowKey(WORK_ITEMS, (name,)) for name in _named(event)]


WORK_ITEM_RULES: Rules = {
    WorkItemCreated: RowRule(_created, (_of_item,)),
    WorkItemEnqueued: RowRule(_created, (_of_item,)),
    WorkItemUpdated: RowRule(_updated, (_of_item,)),
    WorkItemPicked: RowRule(_picked, (_of_item,)),
    WorkItemCompleted: RowRule(_completed, (_of_item,)),
    WorkQueueProjected: RowRule(_shown, (_of_shown,)),
    WorkItemRechecked: RowRule(_rechecked, (_of_item,)),
    WorkItemBlockerChanged: RowRule(_blocker_changed, (_of_item,)),
    WorkQueueScheduled: RowRule(_scheduled, (_of_scheduled,)),
    WakeMoved: RowRule(_wake_moved, (_of_moved,)),
}


# --- work_focus --------------------------------------------------------------------------------------------------


def _focused(entry: LogEntry, event: WorkItemPicked, rows: AtHand) -> list[FocusRow]:
    if not _item(event.work_item_id, event.kind, rows).is_open:
        return []  # another thread completed it in the same moment
    return [FocusRow(entry.agent_id, event.work_item_id, entry.fact.at)]


def _left(entry: LogEntry, event: WorkItemCompleted, rows: AtHand) -> list[Gone]:
    focus = rows.get(WORK_FOCUS, entry.agent_id)
    if focus is None or focus.current_work_item_id != event.work_item_id:
        return []
    return [Gone((entry.agent_id,))]


def _of_focus(agent_id: str, fact: Fact, event: WorkItemCompleted) -> Sequence[Need]:
    return (RowKey(WORK_FOCUS, (agent_id,)),)


FOCUS_RULES: Rules = {
    WorkItemPicked: RowRule(_focused, (_of_item,)),
    WorkItemCompleted: RowRule(_left, (_of_focus,)),
}


# --- wakes -------------------------------------------------------------------------------------------------------


def recheck_subject(work_item_id: str) -> str:
    """What the wake of an item's recheck is called, in its agent's thread `main`."""
    return f"recheck:{work_item_id}"


def _recheck_wake(
    entry: LogEntry,
    event: WorkItemUpdated | WorkItemCompleted | WorkItemBlockerChanged | WorkItemRechecked,
    rows: AtHand,
) -> list[WakeRow | Gone]:
    """The wake follows the deadline: a new blocker brings one, its end takes it away."""
    if isinstance(event, WorkItemUpdated) and event.blocked_by is None:
        return []
    item, subject = rows.get(WORK_ITEMS, event.work_item_id), recheck_subject(event.work_item_id)
    due_at = event.recheck_at if isinstance(event, WorkItemUpdated | WorkItemBlockerChanged) else None
    if item is not None and item.is_open and due_at is not None:
        agent = agent_row(entry, rows)
        alarm = due_at if agent is not None and agent.control == "running" else None
        at = entry.fact.at
        return [WakeRow(entry.agent_id, MAIN_THREAD, subject, due_at, "recheck", event.work_item_id, alarm, at)]
    known = rows.get(WAKES, entry.agent_id, MAIN_THREAD, subject)
    return [] if known is None else [Gone(WAKES.key_of(known))]


def _work_wake(entry: LogEntry, event: WorkQueueScheduled, rows: AtHand) -> list[WakeRow | Gone]:
    if event.due_at is not None:
        cause = entry.fact.turn_id or event.work_item_id or ""
        return [wake_row(entry, rows, WORK, event.due_at, "work", cause)]
    return [] if _known_wake(entry, rows) is None else [wake_gone(entry, WORK)]


def _activated(entry: LogEntry, event: WorkQueueActivated, rows: AtHand) -> list[Gone]:
    wake = _known_wake(entry, rows)
    if wake is None or wake.due_at != event.due_at:
        raise EventRefused(
            f"thread {entry.fact.thread_id} has no work that is due at {event.due_at}",
            "Leave it: somebody was faster, or a turn has ended since.",
        )
    return [wake_gone(entry, WORK)]


def _known_wake(entry: LogEntry, rows: AtHand) -> WakeRow | None:
    return rows.get(WAKES, entry.agent_id, entry.fact.thread_id or "", WORK)


def _of_recheck(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, MAIN_THREAD, recheck_subject(event.work_item_id))),)


def _of_work_wake(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(WAKES, (agent_id, fact.thread_id or "", WORK)),)


_NEEDS_RECHECK = (_of_item, _of_recheck, *NEEDS_ALARM)
WORK_WAKES: Rules = {
    WorkItemUpdated: RowRule(_recheck_wake, _NEEDS_RECHECK),
    WorkItemCompleted: RowRule(_recheck_wake, _NEEDS_RECHECK),
    WorkItemBlockerChanged: RowRule(_recheck_wake, _NEEDS_RECHECK),
    WorkItemRechecked: RowRule(_recheck_wake, _NEEDS_RECHECK),
    WorkQueueScheduled: RowRule(_work_wake, (_of_work_wake, *NEEDS_ALARM)),
    WorkQueueActivated: RowRule(_activated, (_of_work_wake,)),
}
