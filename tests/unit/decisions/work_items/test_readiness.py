"""Readiness is derived from the record and the active waits, in one order of precedence."""

import pytest

from kit.runs.work_items import NOON, item, wait
from wakeful.contracts.work_items import WaitKind
from wakeful.decisions.work_items.readiness import (
    is_recheck_due,
    is_triggered,
    readiness,
    scheduling_state,
    work_views,
)


@pytest.mark.spec("HOL-WORK-09")
@pytest.mark.parametrize(
    ("fields", "waits", "expected"),
    [
        ({"state": "completed", "plan_status": "needs_input", "blocked_by": "CI"}, ("task",), "completed"),
        ({"plan_status": "needs_input", "blocked_by": "CI"}, ("task",), "waiting_operator"),
        ({"blocked_by": "CI"}, ("external", "operator"), "waiting_operator"),
        ({"blocked_by": "CI"}, ("external", "task"), "waiting_task"),
        ({"blocked_by": "CI"}, ("external",), "waiting_external"),
        ({}, ("timer",), "waiting_external"),
        ({"blocked_by": "CI"}, (), "blocked"),
        ({"plan_status": "ready"}, (), "runnable"),
        ({}, (), "runnable"),
    ],
)
def test_the_first_condition_that_holds_decides(
    fields: dict[str, str], waits: tuple[WaitKind, ...], expected: str
) -> None:
    assert scheduling_state(item(**fields), [wait(kind) for kind in waits]) == expected


def test_waits_of_other_items_change_nothing() -> None:
    assert scheduling_state(item(), [wait("task", "wi_2")]) == "runnable"


@pytest.mark.spec("HOL-WORK-10", "HOL-WORK-11")
def test_labels_follow_from_the_scheduling_state() -> None:
    assert readiness(item()) == "runnable"
    assert readiness(item(plan_status="needs_input")) == "waiting_for_operator"
    assert readiness(item(blocked_by="CI")) == "blocked"
    assert readiness(item(), [wait("task")]) == "blocked"
    assert readiness(item(), [wait("external")]) == "blocked", "open alone says nothing"
    assert readiness(item(state="completed")) == "completed"


@pytest.mark.spec("HOL-WORK-08")
def test_views_are_derived_from_records_and_focus() -> None:
    items = [item("wi_1"), item("wi_2"), item("wi_3", blocked_by="CI"), item("wi_4", state="completed")]
    views = work_views(items, "wi_1")
    assert views.current == items[0]
    assert [views.queued, views.blocked, views.completed] == [(items[1],), (items[2],), (items[3],)]
    assert work_views(items, "wi_4").current is None, "a completed item is not worked on"


@pytest.mark.spec("HOL-WORK-13")
def test_a_recheck_that_is_due_triggers_a_blocked_item_and_makes_nothing_runnable() -> None:
    blocked = item(blocked_by="CI", recheck_at=NOON)
    assert not is_recheck_due(blocked, NOON - 1)
    assert is_recheck_due(blocked, NOON)
    assert is_triggered(blocked, NOON)
    assert scheduling_state(blocked) == "blocked"
    assert not is_recheck_due(blocked._replace(recheck_consumed_at=NOON), NOON)
    assert not is_triggered(item(triggered_at=NOON), NOON), "only what is blocked"
    assert is_triggered(item(blocked_by="CI", triggered_at=NOON - 5), NOON)
