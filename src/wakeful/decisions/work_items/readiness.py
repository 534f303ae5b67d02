"""Whether an item may be worked on now. It follows from the record and from the waits that are active; it is never
stored, and `open` alone says nothing about it.

Several conditions may hold at once. The first of these that does is the answer:

    completed           the item is
    waiting_operator    the plan needs input, or a wait is for the operator
    waiting_task        a wait is for a task
    waiting_external    a wait is for something outside, or for a time
    blocked             something blocks it
    runnable            nothing of this holds
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.contracts.work_items import ActiveWait, ReadinessLabel, SchedulingState, WorkItem

_LABELS: Final[Mapping[SchedulingState, ReadinessLabel]] = {
    "runnable": "runnable",
    "waiting_operator": "waiting_for_operator",
    "waiting_task": "blocked",
    "waiting_external": "blocked",
    "blocked": "blocked",
    "completed": "completed",
}


def scheduling_state(item: WorkItem, waits: Iterable[ActiveWait] = ()) -> SchedulingState:
    """What the scheduler makes of an item, given every active wait of its agent."""
    if not item.is_open:
        return "completed"
    kinds = {wait.kind for wait in waits if wait.work_item_id == item.work_item_id}
    if item.plan_status == "needs_input" or "operator" in kinds:
        return "waiting_operator"
    if "task" in kinds:
        return "waiting_task"
    if kinds:
        return "waiting_external"
    return "blocked" if item.blocked_by is not None else "runnable"


def readiness(item: WorkItem, waits: Iterable[ActiveWait] = ()) -> ReadinessLabel:
    """The same in the words that readers are shown."""
    return _LABELS[scheduling_state(item, waits)]


def is_recheck_due(item: WorkItem, now: int) -> bool:
    """Has the deadline of a blocker come, without that a message or a model turn has told the agent?"""
    return (
        item.is_open
        and item.blocked_by is not None
        and item.recheck_at is not None
        and item.recheck_at <= now
        and item.recheck_consumed_at is None
    )


def is_triggered(item: WorkItem, now: int) -> bool:
    """Blocked, and its wait fired or its recheck came due since a model was last shown it."""
    return item.is_open and item.blocked_by is not None and (item.triggered_at is not None or is_recheck_due(item, now))


class WorkViews(NamedTuple):
    """The items of an agent by what they are to it."""

    current: WorkItem | None
    queued: tuple[WorkItem, ...]
    """Open, not current, and not blocked."""
    blocked: tuple[WorkItem, ...]
    """Open, with a blocker; the current one among them."""
    completed: tuple[WorkItem, ...]


def work_views(items: Sequence[WorkItem], focus: str | None) -> WorkViews:
    """Each view in the order of the items."""
    return WorkViews(
        current=next((item for item in items if item.is_open and item.work_item_id == focus), None),
        queued=tuple(item for item in items if item.is_open and item.work_item_id != focus and item.blocked_by is None),
        blocked=tuple(item for item in items if item.is_open and item.blocked_by is not None),
        completed=tuple(item for item in items if not item.is_open),
    )
