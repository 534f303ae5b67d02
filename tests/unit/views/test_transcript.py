"""Transcript entries, from facts made by hand."""

import pytest
from pydantic import TypeAdapter

from kit.runs.event_samples import (
    TURN,
    completed,
    in_step,
    log,
    message,
    model_failed,
    requested,
    said,
    tool_failed,
    tool_result,
    tool_started,
    turn_completed,
    turn_failed,
    turn_started,
)
from kit.runs.whole_views import transcript
from wakeful.contracts.envelope import iso
from wakeful.contracts.events import AnyEvent, UnknownResolved
from wakeful.contracts.models import ProviderAttemptRecord, ProviderAttemptTimeline, TokenUsage
from wakeful.contracts.tools import ToolError
from wakeful.views.transcript import AssistantRound, RuntimeFailure, ToolOutcome, TranscriptEntry

USED = TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)


def entries(*events: AnyEvent) -> list[object]:
    return list(transcript(log(*events)))


def test_a_turn_reads_as_what_was_said_done_and_answered() -> None:
    facts = log(
        message("Hello"),
        turn_started(),
        *in_step(1, requested(), completed(USED), said("Looking.", "call_1"), tool_started(), tool_result()),
        *in_step(2, requested(), completed(USED), said("4200 cents.")),
        turn_completed(),
    )
    found = transcript(facts)
    assert [(entry.kind, entry.step) for entry in found] == [
        ("user_message", 1),
        ("assistant_round", 1),
        ("tool_result", 1),
        ("assistant_round", 2),
    ]
    assert [entry.event_seq for entry in found] == [1, 5, 7, 10]
    assert {(entry.turn_id, entry.created_at) for entry in found} == {(TURN, iso(facts[0].fact.at))}
    as_json = TypeAdapter[TranscriptEntry](TranscriptEntry)
    for entry in found:
        assert as_json.validate_json(as_json.dump_json(entry)) == entry


@pytest.mark.spec("HOL-TOK-03")
def test_a_round_carries_its_tokens_at_the_top_and_again_in_its_data() -> None:
    (round_,) = entries(requested(), completed(USED), said("hi"))
    assert isinstance(round_, AssistantRound)
    assert (round_.input_tokens, round_.output_tokens) == (5, 2)
    shown = round_.model_dump(mode="json")
    assert (shown["input_tokens"], shown["output_tokens"]) == (5, 2)
    assert shown["data"]["token_usage"]["input_tokens"] == 5
    assert shown["data"]["token_usage"]["output_tokens"] == 2
    assert shown["data"]["token_usage"]["total_tokens"] == 7


def test_tokens_that_nobody_reported_are_absent_and_not_zero() -> None:
    (round_,) = entries(requested(), completed(None), said("hi"))
    assert isinstance(round_, AssistantRound)
    assert (round_.input_tokens, round_.output_tokens, round_.data.token_usage) == (None, None, None)


def test_the_attempts_of_a_round_that_was_retried_stand_with_it() -> None:
    attempt = ProviderAttemptRecord(
        provider="scripted", model_ref="scripted:list", attempt=1, max_attempts=3, outcome="retrying"
    )
    timeline = ProviderAttemptTimeline(attempts=(attempt,), requested_model_ref="scripted:list")
    (round_,) = entries(requested(), completed(USED).model_copy(update={"timeline": timeline}), said("hi"))
    assert isinstance(round_, AssistantRound)
    assert round_.data.provider_attempt_timeline == timeline


@pytest.mark.spec("HOL-ERR-08")
def test_a_failed_call_keeps_its_structured_error_under_error() -> None:
    (outcome,) = entries(tool_failed())
    assert isinstance(outcome, ToolOutcome)
    assert outcome.model_dump(mode="json")["data"]["error"] == {
        "kind": "execution_failed",
        "message": "no such order",
        "details": None,
        "recovery_hint": "look the order up first",
        "retryable": False,
    }
    assert isinstance(outcome.data.error, ToolError)
    (good,) = entries(tool_result())
    assert isinstance(good, ToolOutcome)
    assert good.data.error is None


def test_a_failed_turn_carries_the_tokens_of_its_lost_attempts_only_when_they_were_reported() -> None:
    spent = TokenUsage(input_tokens=3, total_tokens=3)
    (reported,) = entries(requested(), model_failed(spent), requested(2), model_failed(spent), turn_failed())
    assert isinstance(reported, RuntimeFailure)
    assert reported.data.token_usage == spent + spent
    (silent,) = entries(requested(), model_failed(None), turn_failed())
    assert isinstance(silent, RuntimeFailure)
    assert "token_usage" not in silent.model_dump(mode="json", exclude_none=True)["data"]
    # Attempts of a round that was answered in the end belong to that round, not to a later failure.
    later = entries(requested(), model_failed(spent), requested(2), completed(USED), said("hi"), turn_failed())[-1]
    assert isinstance(later, RuntimeFailure)
    assert later.data.token_usage is None


def test_a_limit_or_a_cancel_is_no_runtime_failure() -> None:
    assert entries(turn_failed("incomplete", "max_steps"), turn_failed("cancelled", "cancelled")) == []


def test_facts_read_twice_make_one_entry_and_a_later_correction_removes_no_failed_call() -> None:
    resolved = UnknownResolved(
        call_id="call_1", tool_name="refund", happened=True, result="refunded", source="operator"
    )
    facts = log(tool_failed(status="interrupted"), resolved)
    once = transcript(facts)
    assert [entry.kind for entry in once] == ["tool_result"]
    assert transcript([*facts, *facts]) == once
