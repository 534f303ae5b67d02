"""What a prompt shows of work items: the current one in full, others by class, in order, bounded."""

import pytest

from kit.runs.work_items import NOON, item, wait
from wakeful.decisions.work_items.projection import CurrentDetails, candidates, project


@pytest.mark.spec("HOL-PROJ-04")
def test_candidates_stand_in_their_classes_and_orders() -> None:
    items = [
        item("wi_current"),
        item("wi_late", updated_at=NOON + 2),
        item("wi_early", updated_at=NOON + 1),
        item("wi_asked", plan_status="needs_input"),
        item("wi_blocked_1", blocked_by="CI", updated_at=NOON + 1),
        item("wi_blocked_2", blocked_by="CI", updated_at=NOON + 2),
        item("wi_fired_1", blocked_by="CI", triggered_at=NOON - 2),
        item("wi_fired_2", blocked_by="CI", recheck_at=NOON - 1),
        item("wi_done", state="completed", report_event_id="agent_1:4"),
        item("wi_silent", state="completed"),
    ]
    found = candidates(items, "wi_current", [wait("task", "wi_late")], NOON)
    assert {name: [each.work_item_id for each in of_class] for name, of_class in found.items()} == {
        "triggered_blocked": ["wi_fired_2", "wi_fired_1"],
        "queued_runnable": ["wi_early"],
        "waiting_for_operator": ["wi_asked"],
        "blocked": ["wi_late", "wi_blocked_2", "wi_blocked_1"],
        "completed_recent": ["wi_done"],
    }


def test_each_class_is_bounded_and_says_what_it_leaves_out() -> None:
    items = [item(f"wi_{place}", updated_at=NOON + place) for place in range(8)]
    shown = project(items, None, NOON)
    assert [each.work_item_id for each in shown.others] == ["wi_0", "wi_1", "wi_2", "wi_3", "wi_4"]
    assert "- and 3 more: list_work_items shows them" in shown.text


@pytest.mark.spec("HOL-PROJ-02")
def test_the_current_item_is_shown_in_full() -> None:
    todos = ({"text": "read the log", "state": "completed"}, {"text": "mend it", "state": "pending"})
    current = item(blocked_by="a review", todo_list=todos, plan_status="ready")
    details = CurrentDetails("/home/plan.md", "First look, then mend.", False, ("called exec_command",))
    shown = project([current], "wi_1", NOON, waits=[wait("external")], details=details)
    assert shown.text == (
        "# Your work items\n\n"
        "## Current: wi_1\n"
        "Objective: objective of wi_1\n"
        "Plan: ready. Readiness: blocked.\n"
        "Blocked by: a review\n"
        "Waits for: CI is green (external)\n"
        "Checklist:\n"
        "- [completed] read the log\n"
        "- [pending] mend it\n"
        "Plan file /home/plan.md (its beginning; read the file for the rest):\n"
        "First look, then mend.\n"
        "What was done for it lately:\n"
        "- called exec_command"
    )


@pytest.mark.spec("HOL-PROJ-05")
def test_a_completed_item_is_shown_by_its_report_alone() -> None:
    done = item("wi_1", state="completed", report_event_id="agent_1:4")
    shown = project([done, item("wi_2", state="completed")], None, NOON, reports={"wi_1": "The build is green."})
    assert "- wi_1: The build is green." in shown.text
    assert "wi_2" not in shown.text
    assert "objective of" not in shown.text


@pytest.mark.spec("HOL-PROJ-06")
def test_without_items_there_is_nothing_to_show() -> None:
    assert project([], None, NOON).text == ""


def test_items_whose_words_derive_from_no_instruction_are_named() -> None:
    shown = project([item("wi_1"), item("wi_2", derived_from="external_evidence")], "wi_1", NOON)
    assert shown.untrusted == "work item wi_2, which derives from external_evidence"
    assert project([item("wi_1")], "wi_1", NOON).untrusted == ""
