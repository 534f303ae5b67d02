"""What a turn's end does to the item that the turn was bound to: its blocker, and nothing else.

An item is completed by an explicit call alone. A wait that is active for it blocks it where nothing else does, with
words that the runtime knows again: when the wait is over, the same words are taken away, and no others. After many
turns without progress the runtime blocks an item, too.
"""

from collections.abc import Iterable
from typing import Final

from wakeful.contracts.events import WorkItemBlockerChanged
from wakeful.contracts.work_items import MAX_BLOCKER, ActiveWait, WorkItem
from wakeful.decisions.waking.backoff import NO_PROGRESS

WAITING: Final = "waiting: "


def waiting_words(reason: str) -> str:
    """The blocker that a wait sets."""
    return f"{WAITING}{reason}"[:MAX_BLOCKER]


def turn_end_blocker(bound: WorkItem | None, waits: Iterable[ActiveWait]) -> WorkItemBlockerChanged | None:
    """The change of the item that the turn began with; None: it stays as it is."""
    if bound is None or not bound.is_open or bound.blocked_by is not None:
        return None
    wait = next((each for each in waits if each.work_item_id == bound.work_item_id), None)
    if wait is None:
        return None
    return WorkItemBlockerChanged(
        work_item_id=bound.work_item_id, blocked_by=waiting_words(wait.reason), cause="wait", wait_id=wait.wait_id
    )


def wait_over(item: WorkItem | None, wait: ActiveWait) -> WorkItemBlockerChanged | None:
    """The change of the item when a wait for it is over; None: its blocker is none of the wait's."""
    words = waiting_words(wait.reason)
    if item is None or not item.is_open or item.blocked_by != words:
        return None
    return WorkItemBlockerChanged(
        work_item_id=item.work_item_id, before=words, cause="wait_resolved", wait_id=wait.wait_id
    )


def no_progress_blocker(item: WorkItem) -> WorkItemBlockerChanged | None:
    """Turn after turn changed nothing: the item waits for the operator's word. One that is blocked stays as it is."""
    if not item.is_open or item.blocked_by is not None:
        return None
    return WorkItemBlockerChanged(work_item_id=item.work_item_id, blocked_by=NO_PROGRESS, cause="no_progress")
