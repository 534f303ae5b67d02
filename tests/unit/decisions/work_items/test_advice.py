"""The words of the runtime to a model about its work items: with a completion, and in a long turn."""

import pytest

from kit.runs.work_items import item
from wakeful.decisions.work_items.advice import (
    CompletionVerdict,
    ReminderTerms,
    completion_verdict,
    fits_prompt,
    is_reminder_due,
    reminder_text,
)


@pytest.mark.parametrize(
    ("text", "completions", "focus", "warning"),
    [
        ("Done.", 1, "wi_1", None),
        (" \n", 1, "wi_1", "missing_completion_report"),
        ("Done.", 2, "wi_1", "several_completions"),
        ("Done.", 1, "wi_2", "not_current"),
        ("Done.", 1, None, "not_current"),
    ],
)
def test_a_report_needs_text_one_completion_and_the_focus(
    text: str, completions: int, focus: str | None, warning: str | None
) -> None:
    verdict = completion_verdict("wi_1", text=text, completions=completions, focus=focus)
    assert verdict == CompletionVerdict(warning is None, warning)  # type: ignore[arg-type]


def test_the_result_says_why_there_is_no_report() -> None:
    told = CompletionVerdict(False, "missing_completion_report").told()
    assert told["reported"] is False
    assert told["warning"]["kind"] == "missing_completion_report"
    assert CompletionVerdict(True).told() == {"reported": True}


TERMS = ReminderTerms()


@pytest.mark.spec("HOL-WTOOL-20")
def test_rounds_without_a_change_make_a_reminder_due_and_then_the_cooldown_holds() -> None:
    def due(step: int, changed_in: int = 0, reminded_in: int = 0) -> bool:
        return is_reminder_due(TERMS, step=step, changed_in=changed_in, reminded_in=reminded_in)

    assert not due(9)
    assert due(10)
    assert not due(12, changed_in=3)
    assert due(13, changed_in=3)
    assert not due(19, reminded_in=10)
    assert due(20, reminded_in=10)
    assert due(25, changed_in=15, reminded_in=10), "a change begins the count anew"


@pytest.mark.spec("HOL-WTOOL-21", "HOL-WTOOL-22")
def test_a_reminder_shows_the_item_without_what_is_done_and_is_bounded() -> None:
    todos = ({"text": "read the log", "state": "completed"}, {"text": "mend it", "state": "in_progress"})
    stuck = item(todo_list=todos, blocked_by="CI", plan_status="ready")
    told = reminder_text(stuck, "First look.", TERMS)
    assert told.startswith(
        "Your current work item is wi_1 (ready): objective of wi_1\nIt is blocked by: CI\n"
        "Its plan begins: First look.\n- mend it (in_progress)\n\n"
    )
    assert "read the log" not in told
    assert "not progress by itself. Update the item only if something really changed" in told
    long = reminder_text(item(objective="x" * 4_000), "y" * 4_000, TERMS)
    assert len(long) <= 512 * 4
    assert len(reminder_text(item(), "", ReminderTerms(max_tokens=10))) <= 40
    assert fits_prompt(told, baseline_tokens=100, prompt_budget=None)
    assert not fits_prompt(told, baseline_tokens=100, prompt_budget=110)
