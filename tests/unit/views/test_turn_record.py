"""The record of a settled turn."""

from typing import Any

import pytest

from kit.runs.event_samples import (
    TURN,
    completed,
    in_step,
    log,
    requested,
    said,
    turn_completed,
    turn_failed,
    turn_started,
)
from wakeful.contracts.envelope import iso
from wakeful.views.turn_record import TurnTerminalRecord, terminal_record


@pytest.mark.spec("HOL-TURN-01")
def test_a_completed_turn_is_recorded_with_index_kind_words_time_and_duration() -> None:
    facts = log(turn_started(), requested(), completed(), said("4200 cents."), turn_completed())
    assert terminal_record(TURN, facts) == TurnTerminalRecord(
        turn_index=1,
        kind="completed",
        last_assistant_message="4200 cents.",
        completed_at=iso(facts[-1].fact.at),
        duration_ms=80,
    )


@pytest.mark.spec("HOL-TURN-01")
@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
def test_every_other_end_is_an_abort(status: Any) -> None:
    record = terminal_record(TURN, log(turn_started(), requested(), turn_failed(status)))
    assert record is not None
    assert (record.kind, record.duration_ms) == ("aborted", 81)


@pytest.mark.spec("HOL-TURN-05")
def test_the_last_message_is_the_final_text_of_the_turn_and_may_be_empty() -> None:
    def last(*events: Any) -> str | None:
        record = terminal_record(TURN, log(turn_started(), *events, turn_completed()))
        assert record is not None
        return record.last_assistant_message

    assert last(*in_step(1, said("first", "call_1")), *in_step(2, said("second"))) == "second"
    assert last(*in_step(1, said("first", "call_1")), *in_step(2, said("", "call_2"))) == "first"
    assert last(*in_step(1, said(""))) == ""
    assert last() is None


@pytest.mark.spec("HOL-TURN-02")
def test_words_that_sound_final_settle_nothing_and_a_terminal_fact_does_whatever_the_words_say() -> None:
    final = log(turn_started(), requested(), said("Done, the task is completed."))
    assert terminal_record(TURN, final) is None
    failed = terminal_record(TURN, [*final, *log(turn_failed(), start=4)])
    assert failed is not None
    assert (failed.kind, failed.last_assistant_message) == ("aborted", "Done, the task is completed.")
