"""A turn's end changes the blocker of the item that the turn was bound to, and nothing else."""

from kit.runs.work_items import item, wait
from wakeful.contracts.events import WorkItemBlockerChanged
from wakeful.decisions.work_items.blockers import no_progress_blocker, turn_end_blocker, wait_over


def test_an_active_wait_blocks_the_bound_item() -> None:
    expected = WorkItemBlockerChanged(
        work_item_id="wi_1", blocked_by="waiting: CI is green", cause="wait", wait_id="wait_external"
    )
    assert turn_end_blocker(item(), [wait("external")]) == expected
    assert turn_end_blocker(None, [wait("external")]) is None, "no item was bound"
    assert turn_end_blocker(item(), [wait("external", "wi_2")]) is None, "the item stays open"
    assert turn_end_blocker(item(blocked_by="a person"), [wait("external")]) is None
    assert turn_end_blocker(item(state="completed"), [wait("external")]) is None


def test_without_progress_an_item_is_blocked_unless_it_is_already() -> None:
    stuck = no_progress_blocker(item())
    assert stuck is not None and stuck.blocked_by == "no progress"
    assert no_progress_blocker(item(blocked_by="CI")) is None


def test_the_end_of_a_wait_takes_its_own_words_away_and_no_others() -> None:
    ended = wait_over(item(blocked_by="waiting: CI is green"), wait("external"))
    assert ended == WorkItemBlockerChanged(
        work_item_id="wi_1", before="waiting: CI is green", cause="wait_resolved", wait_id="wait_external"
    )
    assert wait_over(item(blocked_by="a person"), wait("external")) is None
    assert wait_over(item(), wait("external")) is None
