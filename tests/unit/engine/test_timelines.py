"""The attempts of a round, as they are kept: on the events, on the transcript, and apart from waiting."""

from typing import Any

import pytest

from kit.runs.whole_views import transcript
from wakeful import Agent, Retry, run
from wakeful.contracts.envelope import published
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import ModelCompleted, ModelFailed, ModelRequested, TurnFailed
from wakeful.contracts.models import (
    ProviderAttemptRecord,
    ProviderAttemptTimeline,
    TokenUsage,
    TransportDiagnostics,
)
from wakeful.ports import ModelRequest
from wakeful.service.run_result import RunResult
from wakeful.testing import scripted

USED = TokenUsage(input_tokens=3, output_tokens=1, total_tokens=4)
BUSY = {"kind": "overloaded", "message": "busy", "retry_after": 0.02}
WRONG = {"kind": "auth_error", "message": "wrong key"}


def of_kind(result: RunResult[Any], kind: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kind)]


async def asked(*script: Any, **options: Any) -> RunResult[Any]:
    return await run(Agent("a", scripted(list(script)), retry=Retry(patience=0), **options), "go")


@pytest.mark.spec("HOL-TIMELINE-01", "HOL-TIMELINE-02", "HOL-TIMELINE-04")
async def test_a_round_that_was_answered_keeps_the_attempts_that_were_lost_before() -> None:
    result = await asked({"text": "hi", "fail": [BUSY]}, fallbacks=[])
    (completed,) = of_kind(result, ModelCompleted)
    assert all(isinstance(attempt, ProviderAttemptRecord) for attempt in completed.timeline.attempts)
    assert [(record.attempt, record.outcome, record.failure_kind) for record in completed.timeline.attempts] == [
        (1, "retrying", "overloaded"),
        (2, "succeeded", None),
    ]
    lost = await asked({"fail": WRONG})
    assert [record.outcome for record in of_kind(lost, TurnFailed)[0].timeline.attempts] == ["fail_fast_aborted"]
    spent = await asked({"fail": {**BUSY, "retry_after": 0.001}})
    assert of_kind(spent, TurnFailed)[0].timeline.attempts[-1].outcome == "retries_exhausted"


@pytest.mark.spec("HOL-TIMELINE-03", "HOL-TIMELINE-13", "HOL-TIMELINE-14", "HOL-TIMELINE-15")
async def test_events_and_transcript_show_one_timeline() -> None:
    answered = await asked({"text": "hi", "fail": [BUSY]})
    lost = await asked({"fail": WRONG})
    for result, kind, entry_kind in (
        (answered, ModelCompleted, "assistant_round"),
        (lost, TurnFailed, "runtime_failure"),
    ):
        (recorded,) = [entry for entry in result.facts() if isinstance(entry.fact.event, kind)]
        shown = ProviderAttemptTimeline.model_validate(published(recorded, "rt").payload["timeline"])
        (entry,) = [entry for entry in transcript(result.facts()) if entry.kind == entry_kind]
        assert entry.data.provider_attempt_timeline == shown, "the same contract on both surfaces"
        assert shown.attempts


async def test_a_single_attempt_has_a_timeline_for_readers_and_none_in_the_log() -> None:
    result = await asked("hi")
    (recorded,) = [entry for entry in result.facts() if isinstance(entry.fact.event, ModelCompleted)]
    assert isinstance(recorded.fact.event, ModelCompleted) and recorded.fact.event.timeline is None
    (attempt,) = published(recorded, "rt").payload["timeline"]["attempts"]
    assert attempt["outcome"] == "succeeded" and attempt["duration_ms"] >= 0


@pytest.mark.spec("HOL-TIMELINE-06", "HOL-TIMELINE-07", "HOL-TIMELINE-08")
async def test_an_attempts_time_is_its_own_and_waiting_stands_apart() -> None:
    result = await asked({"text": "hi", "fail": [{**BUSY, "retry_after": 0.3}]})
    (completed,) = of_kind(result, ModelCompleted)
    first, second = completed.timeline.attempts
    assert all(record.started_at and record.completed_at for record in (first, second))
    assert (first.backoff_ms, second.backoff_ms) == (None, 300)
    assert of_kind(result, ModelRequested)[1].backoff_ms == 300
    assert first.duration_ms is not None and second.duration_ms is not None
    assert first.duration_ms < 300 and second.duration_ms < 300, "each is the request alone"
    assert completed.provider_round_ms < 300


@pytest.mark.spec("HOL-TIMELINE-09")
def test_times_are_filled_in_from_the_round_for_a_single_attempt_and_never_for_several() -> None:
    fields: dict[str, Any] = {
        "model_ref": "x:m",
        "attempt": 1,
        "stop_reason": "end",
        "context_build_ms": 0.0,
        "provider_round_ms": 12.0,
        "provider_started_at": "2026-01-01T00:00:00.000Z",
        "provider_completed_at": "2026-01-01T00:00:00.012Z",
    }
    (only,) = ModelCompleted(**fields).whole_timeline().attempts
    assert (only.duration_ms, only.started_at) == (12, fields["provider_started_at"])
    record = ProviderAttemptRecord(provider="x", model_ref="x:m", attempt=1, max_attempts=3, outcome="retrying")
    several = ProviderAttemptTimeline(attempts=(record, record), requested_model_ref="x:m")
    kept = ModelCompleted(**fields, timeline=several).whole_timeline()
    assert [attempt.duration_ms for attempt in kept.attempts] == [None, None]


@pytest.mark.spec("HOL-TIMELINE-10", "HOL-TIMELINE-11", "HOL-TIMELINE-12")
async def test_what_an_attempt_used_and_what_its_transport_knew_stay_on_its_record_and_out_of_the_summary() -> None:
    chain = tuple(f"cause {n}: a long story about a socket" for n in range(20))
    knew = TransportDiagnostics(stage="body", provider="scripted", source_chain=chain)

    def answer(request: ModelRequest) -> Any:
        raise ModelFailure("broke off", kind="contract_error", stage="body", usage=USED, diagnostics=knew)

    result = await run(Agent("a", scripted(answer)), "go")
    (failed,) = of_kind(result, TurnFailed)
    (attempt,) = failed.timeline.attempts
    assert attempt.token_usage == USED
    assert attempt.transport_diagnostics == knew
    assert failed.timeline.aggregated_token_usage == USED
    assert "a long story" not in failed.message + failed.failure_artifact.summary + result.message


@pytest.mark.spec("HOL-RETRY-01", "HOL-RETRY-02", "HOL-RETRY-05")
async def test_each_attempt_is_judged_by_itself_and_one_candidate_has_three() -> None:
    other = scripted(["from the other"], name="other")
    result = await asked({"fail": [BUSY, {"kind": "timeout"}, BUSY, BUSY]}, fallbacks=[other])
    assert result.output == "from the other"
    tried = [(event.candidate, event.attempt) for event in of_kind(result, ModelRequested)]
    assert tried == [(0, 1), (0, 2), (0, 3), (1, 1)], "the same candidate first, at most three times"
    judged = [(event.failure_kind, event.disposition) for event in of_kind(result, ModelFailed)]
    assert judged == [("overloaded", "retry"), ("timeout", "retry"), ("overloaded", "fallback")]
    mixed = await asked({"fail": [BUSY, WRONG]}, fallbacks=[other])
    assert [event.disposition for event in of_kind(mixed, ModelFailed)] == ["retry", "fallback"]


@pytest.mark.spec("HOL-RETRY-09")
async def test_retry_fail_fast_and_fallback_stand_in_the_timeline_of_log_and_transcript() -> None:
    second, third = scripted([{"fail": WRONG}], name="second"), scripted(["hi"], name="third")
    result = await asked({"fail": {**BUSY, "retry_after": 0.001}}, fallbacks=[second, third])
    (completed,) = of_kind(result, ModelCompleted)
    told = [(record.disposition, record.advanced_to_fallback) for record in completed.timeline.attempts]
    assert told == [("retry", False), ("retry", False), ("fallback", True), ("fallback", True), (None, False)]
    (entry,) = [entry for entry in transcript(result.facts()) if entry.kind == "assistant_round"]
    assert entry.data.provider_attempt_timeline == completed.timeline


@pytest.mark.spec("HOL-RETRY-11")
async def test_a_conversation_that_is_too_long_ends_the_turn_and_is_not_sent_elsewhere() -> None:
    too_long = {"kind": "context_length_exceeded", "message": "too long"}
    result = await asked({"fail": too_long}, fallbacks=[scripted(["never"], name="other", leftover="ignore")])
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    assert result.failure_artifact is not None and result.failure_artifact.kind == "context_length_exceeded"
    assert [event.candidate for event in of_kind(result, ModelRequested)] == [0]
