"""What an idle agent is woken for, with which words, and how far apart turns stand that bring nothing."""

from kit.runs.work_items import NOON, item, wait
from wakeful.contracts.events import WorkItemPicked, WorkItemUpdated
from wakeful.contracts.work_items import TodoItem
from wakeful.decisions.waking.backoff import TurnSigns
from wakeful.decisions.work_items.activation import activation, recheck_text, spacing_after, tick_text, work_signs


def test_a_current_item_that_is_runnable_is_continued() -> None:
    found = activation([item("wi_1"), item("wi_2")], "wi_2")
    assert found is not None
    assert (found.signal.work_item_id, found.signal.reactivation_mode) == ("wi_2", "continue_active")
    assert tick_text(found).startswith("Your current work item wi_2 is open and nothing blocks it: objective of wi_2")


def test_without_a_runnable_current_item_a_queued_one_wakes_the_agent_to_pick() -> None:
    found = activation([item("wi_1", blocked_by="CI"), item("wi_2"), item("wi_3")], "wi_1")
    assert found is not None
    assert (found.signal.work_item_id, found.signal.reactivation_mode) == ("wi_2", "activate_queued")
    assert "wi_2 (2 more open) is ready: objective of wi_2" in tick_text(found)


def test_items_that_may_not_be_worked_on_wake_nobody() -> None:
    items = [item("wi_1", blocked_by="CI"), item("wi_2", plan_status="needs_input"), item("wi_3")]
    assert activation(items, "wi_1", [wait("task", "wi_3")]) is None
    assert activation([], None) is None


def test_a_wake_carries_the_lowest_word_of_what_it_shows() -> None:
    items = [item("wi_1", derived_from="integration_signal"), item("wi_2")]
    current, queued = activation(items, "wi_2"), activation(items, None)
    assert current is not None and current.derived_from == "operator_instruction"
    assert queued is not None and queued.derived_from == "integration_signal"


def test_a_recheck_says_which_blocker_it_is_about() -> None:
    words = recheck_text(item(blocked_by="CI", recheck_at=NOON))
    assert words.startswith("Work item wi_1 has been blocked by 'CI': objective of wi_1\n")


def test_turns_without_progress_are_counted_and_plans_alone_count_twice() -> None:
    nothing, plan = TurnSigns(True), TurnSigns(True, frozenset({"plan"}))
    assert spacing_after(item(idle_turns=2), nothing)[:2] == (3, 0)
    assert spacing_after(item(idle_turns=2), nothing).pause.microseconds == 30_000_000
    assert spacing_after(item(idle_turns=9), nothing).pause.is_stalled
    assert spacing_after(item(idle_turns=9), TurnSigns(True, frozenset({"work"})))[:2] == (0, 0)
    assert spacing_after(item(idle_turns=9), TurnSigns(False))[:2] == (0, 0)
    assert spacing_after(item(plan_turns=1, idle_turns=4), plan)[:2] == (0, 2)
    assert spacing_after(item(plan_turns=2, idle_turns=4), plan)[:2] == (5, 3)


def test_a_changed_checklist_or_a_named_blocker_is_a_plan_and_a_blocker_that_is_gone_is_work() -> None:
    todo = WorkItemUpdated(work_item_id="wi_1", todo_list=(TodoItem(text="x"),))
    assert work_signs([todo]) == {"plan"}
    assert work_signs([WorkItemUpdated(work_item_id="wi_1", blocked_by="CI")]) == {"plan"}
    assert work_signs([WorkItemUpdated(work_item_id="wi_1", blocked_by="")]) == {"work"}
    assert work_signs([WorkItemPicked(work_item_id="wi_1"), todo]) == {"work", "plan"}
