"""Which brief the end of a turn writes, and what a failure is called."""

from typing import get_args

import pytest

from kit.runs.event_samples import turn_completed, turn_failed
from wakeful.contracts.events import StopCause
from wakeful.decisions.briefs import PlannedBrief, brief_visibility, failure_text, turn_brief


@pytest.mark.spec("HOL-BRIEF-09")
def test_waiting_for_the_operator_comes_before_a_completed_item() -> None:
    assert brief_visibility(awaits_operator=True, completed_item=True) == "action_required"
    assert brief_visibility(awaits_operator=False, completed_item=True) == "work_done"
    assert brief_visibility(awaits_operator=False, completed_item=False) == "turn_result"


@pytest.mark.spec("HOL-BRIEF-07")
def test_a_turn_without_a_text_has_an_empty_result() -> None:
    assert turn_brief(turn_completed(), has_text=False, awaits_operator=False) == PlannedBrief(
        "result", "turn_result", ""
    )


@pytest.mark.spec("HOL-BRIEF-08")
def test_a_failure_is_told_in_words_for_people() -> None:
    failed = turn_failed()
    planned = turn_brief(failed, has_text=True, awaits_operator=False)
    assert planned == PlannedBrief("failure", "turn_result", "end")
    assert failure_text(failed) == "The model's provider did not answer."
    said = {cause: failure_text(turn_failed(stop_reason=cause)) for cause in get_args(StopCause)}
    assert [cause for cause, words in said.items() if words == "The run failed."] == ["natural"]


def test_a_turn_that_a_person_stopped_has_no_brief() -> None:
    stopped = turn_failed("cancelled", "cancelled")
    assert turn_brief(stopped, has_text=False, awaits_operator=False) is None
