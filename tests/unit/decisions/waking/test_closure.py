"""Where an agent stands: every row of the table, and that the first one wins."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from wakeful.contracts.waking import ClosureDecision, WorkSignal
from wakeful.decisions.waking.closure import ClosureFacts, FocusedItem, OpenWait, closure_of, work_signal

DONE = ClosureFacts(started_turn="t1", terminal="completed")
ACTIVE = WorkSignal(work_item_id="w1", status="active", reactivation_mode="continue_active")
OPERATOR, EXTERNAL = OpenWait("wait_1", "operator_input"), OpenWait("wait_2", "external")
TASK, TIMER = OpenWait("wait_3", "task_result"), OpenWait("wait_4", "timer")
EVERYTHING = ClosureFacts(
    runtime_error="disk full",
    running_turn="t2",
    started_turn="t2",
    terminal="failed",
    runnable=ACTIVE,
    waits=(TIMER, EXTERNAL, OPERATOR),
    focused=FocusedItem("w1", "task"),
)


def waiting(reason: str, evidence: str) -> ClosureDecision:
    return ClosureDecision.model_validate(
        {"outcome": "waiting", "waiting_reason": reason, "runtime_posture": "awake", "evidence": (evidence,)}
    )


def ended(outcome: str, evidence: str) -> ClosureDecision:
    return ClosureDecision.model_validate({"outcome": outcome, "runtime_posture": "awake", "evidence": (evidence,)})


@pytest.mark.spec("HOL-CLOSE-01", "HOL-CLOSE-02", "HOL-CLOSE-03", "HOL-CLOSE-10")
def test_the_first_row_that_applies_wins_and_names_its_facts() -> None:
    left = EVERYTHING
    assert closure_of(left) == ended("failed", "runtime error: disk full")
    left = replace(left, runtime_error="")
    assert closure_of(left) == waiting("awaiting_external_change", "turn t2 is in progress")
    left = replace(left, running_turn="")
    assert closure_of(left) == ended("failed", "turn t2 ended as failed")
    without_end = replace(left, terminal=None)
    assert closure_of(without_end) == waiting("awaiting_external_change", "turn t2 started and has no end")
    left = replace(left, terminal="completed")
    assert closure_of(left).work_signal == ACTIVE
    assert closure_of(left).evidence == ("work item w1 is runnable (active)",)
    left = replace(left, runnable=None)
    assert closure_of(left) == waiting("awaiting_operator_input", "wait wait_1 for operator_input is open")
    left = replace(left, waits=(TIMER, EXTERNAL))
    assert closure_of(left) == waiting("awaiting_external_change", "wait wait_2 for external is open")
    left = replace(left, waits=(TIMER,))
    assert closure_of(left) == waiting("awaiting_timer", "wait wait_4 for timer is open")
    left = replace(left, waits=())
    assert closure_of(left) == waiting("awaiting_task_result", "work item w1 waits (task)")
    left = replace(left, focused=FocusedItem("w1"))
    assert closure_of(left) == ended("completed", "turn t2 completed")


@pytest.mark.parametrize("status", ["failed", "incomplete", "cancelled"])
def test_every_end_but_completed_is_a_failure(status: str) -> None:
    assert closure_of(replace(DONE, terminal=status)).outcome == "failed"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("waits_for", "reason"),
    [
        ("task", "awaiting_task_result"),
        ("external", "awaiting_external_change"),
        ("timer", "awaiting_timer"),
        ("operator", "awaiting_operator_input"),
        ("system", "awaiting_external_change"),
        ("blocked", "awaiting_external_change"),
    ],
)
def test_a_focused_item_that_waits_makes_its_agent_wait(waits_for: str, reason: str) -> None:
    """Also one that only has a blocker: work that stands still is not finished."""
    found = closure_of(replace(DONE, focused=FocusedItem("w1", waits_for)))  # type: ignore[arg-type]
    assert (found.outcome, found.waiting_reason) == ("waiting", reason)


def test_a_wait_for_a_task_awaits_its_result() -> None:
    assert closure_of(replace(DONE, waits=(TASK,))).waiting_reason == "awaiting_task_result"


@pytest.mark.spec("HOL-CLOSE-05", "HOL-CLOSE-06")
def test_reason_and_signal_are_there_exactly_when_they_mean_something() -> None:
    for fields in (
        {"outcome": "completed", "waiting_reason": "awaiting_timer"},
        {"outcome": "waiting"},
    ):
        with pytest.raises(ValidationError, match="waiting_reason"):
            ClosureDecision.model_validate({**fields, "runtime_posture": "awake"})
    for fields in ({"outcome": "completed", "work_signal": ACTIVE}, {"outcome": "continuable"}):
        with pytest.raises(ValidationError, match="work_signal"):
            ClosureDecision.model_validate({**fields, "runtime_posture": "awake"})


@pytest.mark.spec("HOL-CLOSE-07", "HOL-CLOSE-08")
def test_the_current_item_goes_on_and_a_queued_one_is_only_shown() -> None:
    assert work_signal("w1", "w2") == ACTIVE
    shown = work_signal(None, "w2")
    assert shown == WorkSignal(work_item_id="w2", status="queued", reactivation_mode="activate_queued")
    assert work_signal(None, None) is None
    with pytest.raises(ValidationError, match="does not go with"):
        WorkSignal(work_item_id="w2", status="queued", reactivation_mode="continue_active")


@pytest.mark.spec("HOL-CLOSE-09", "HOL-CLOSE-12")
def test_a_continuable_agent_has_settled_and_says_its_posture() -> None:
    found = closure_of(replace(DONE, runnable=ACTIVE, posture="sleeping"))
    assert (found.outcome, found.runtime_posture) == ("continuable", "sleeping")
    assert closure_of(replace(DONE, running_turn="t1", runnable=ACTIVE)).outcome == "waiting", "it is not settled yet"


@pytest.mark.spec("HOL-CLOSE-11")
def test_a_turn_whose_end_nobody_saw_is_not_completed() -> None:
    assert closure_of(ClosureFacts(started_turn="t1")).outcome == "waiting"
    assert closure_of(DONE).outcome == "completed"
    assert closure_of(ClosureFacts()).evidence == ("no turn yet",)
