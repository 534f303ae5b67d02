"""What a turn's end does to the item that the turn was bound to: its blocker, and nothing else.

An item is completed by an explicit call alone. A wait that is active for it blocks it where nothing else does, with
words that the runtime knows again: when the wait is over, the same words are taken away, and no others. After many
turns without progress the runtime blocks an item, too. So does an agent that goes to sleep without an end and could go
on with an item: it means to rest, until somebody wakes it or the item is due to be looked at again.
"""

from collections.abc import Iterable
from typing import Final

from wakeful.contracts.events import WaitCreated, WorkItemBlockerChanged
from wakeful.contracts.work_items import MAX_BLOCKER, RECHECK_MS, ActiveWait, WorkItem
from wakeful.decisions.waking.backoff import NO_PROGRESS

WAITING: Final = "waiting: "
SLEEPING: Final = "sleeping"


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


def sleep_blocker(work_item_id: str, before: str | None, slept: WaitCreated, now: int) -> WorkItemBlockerChanged:
    """The agent sleeps without an end: the item that it could go on with, or slept over before, is looked at again
    after the usual time. `now` is the end of the turn, or the deadline of a wait that is open."""
    recheck_at = now + RECHECK_MS * 1_000
    return WorkItemBlockerChanged(
        work_item_id=work_item_id,
        before=before,
        blocked_by=SLEEPING,
        recheck_at=recheck_at,
        cause="sleep",
        wait_id=slept.wait_id,
    )


def sleep_over(item: WorkItem) -> WorkItemBlockerChanged:
    """The agent was woken, and did not go to sleep again."""
    return WorkItemBlockerChanged(work_item_id=item.work_item_id, before=SLEEPING, cause="sleep")


def no_progress_blocker(item: WorkItem) -> WorkItemBlockerChanged | None:
    """Turn after turn changed nothing: the item waits for the operator's word. One that is blocked stays as it is."""
    if not item.is_open or item.blocked_by is not None:
        return None
    return WorkItemBlockerChanged(work_item_id=item.work_item_id, blocked_by=NO_PROGRESS, cause="no_progress")
