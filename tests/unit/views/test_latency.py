"""Where a turn's time went, from the durations its facts carry."""

from dataclasses import replace

import pytest

from kit.runs.event_samples import (
    NOON,
    TURN,
    as_published,
    completed,
    fact,
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
    turn_started,
)
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import (
    AssistantRecorded,
    ContextResolved,
    MessageAdmitted,
    ModelCompleted,
    ModelRequested,
    TurnStarted,
)
from wakeful.contracts.models import TokenUsage
from wakeful.views.latency import turn_latency
from wakeful.views.turn_record import RoundLatency, ToolLatency, TurnLatency

CONTEXT = ContextResolved(context_id="c", tokens_used=1, tokens_are_estimate=True, context_build_ms=0.25)
FACTS = log(
    turn_started(),
    CONTEXT,
    *in_step(1, requested(), model_failed(), requested(2), completed(), said("", "call_1", "call_2")),
    fact(tool_started("call_1"), call="call_1"),
    *in_step(1, tool_result("call_1"), tool_failed("call_2")),
    *in_step(2, requested(), completed(), said("done")),
    fact(turn_completed(), step=2),
)


def test_the_report_adds_up_context_provider_and_tools_and_names_each() -> None:
    started, ended = "2027-01-15T08:00:00.000Z", "2027-01-15T08:00:00.012Z"
    assert turn_latency(TURN, FACTS) == TurnLatency(
        turn_id=TURN,
        context_build_ms=0.25 + 0.5 + 0.5,
        provider_ms=30 + 12.0 + 12.0,
        tools_ms=3.5 + 2.0,
        turn_ms=80.4,
        active_ms=79.0,
        cleanup_ms=79.0 - (30 + 12.0 + 12.0) - (3.5 + 2.0) - (0.5 + 0.5),
        rounds=(
            RoundLatency(
                step=1,
                model_ref="scripted:list",
                context_build_ms=0.5,
                provider_round_ms=12.0,
                started_at=started,
                completed_at=ended,
                lost_attempts=1,
                lost_ms=30,
            ),
            RoundLatency(
                step=2,
                model_ref="scripted:list",
                context_build_ms=0.5,
                provider_round_ms=12.0,
                started_at=started,
                completed_at=ended,
                lost_attempts=0,
                lost_ms=0,
            ),
        ),
        tools=(
            ToolLatency(step=1, call_id="call_1", tool="look_up", execution_ms=3.5, succeeded=True),
            ToolLatency(step=1, call_id="call_2", tool="look_up", execution_ms=2.0, succeeded=False),
        ),
    )


def test_an_open_turn_has_no_total_and_other_turns_do_not_count() -> None:
    open_turn = FACTS[:-1]
    others = [StoredFact(one.agent_id, one.seq + 100, fact(one.fact.event, turn="turn_2")) for one in FACTS]
    report = turn_latency(TURN, [*open_turn, *others])
    assert (report.turn_ms, report.active_ms) == (None, None)
    assert report.provider_ms == turn_latency(TURN, FACTS).provider_ms


def test_a_request_that_is_under_way_says_since_when() -> None:
    sent = [number for number, one in enumerate(FACTS) if isinstance(one.fact.event, ModelRequested)]
    assert turn_latency(TURN, FACTS).asked_at is None
    asked = FACTS[sent[0]]
    assert turn_latency(TURN, FACTS[: sent[0] + 1]).asked_at == asked.fact.at / 1e6
    answered = [number for number, one in enumerate(FACTS) if isinstance(one.fact.event, ModelCompleted)]
    assert turn_latency(TURN, FACTS[: answered[0] + 1]).asked_at is None


@pytest.mark.spec("HOL-LAT-02", "HOL-LAT-03")
def test_the_wait_in_the_queue_and_the_cleanup_are_told_apart() -> None:
    admitted = replace(fact(message()), at=NOON - 2_500)
    report = turn_latency(TURN, log(admitted, *(one.fact for one in FACTS)))
    assert {"message_admitted"} <= set(MessageAdmitted.aliases)
    assert {"message_processing_started"} <= set(TurnStarted.aliases)
    assert report.queue_wait_ms == 2.5
    # The terminal fact's own duration, whatever was waited in the queue and assembled before the loop began.
    assert report.cleanup_ms == turn_latency(TURN, FACTS).cleanup_ms == 18.5
    slower_start = CONTEXT.model_copy(update={"context_build_ms": 40.0})
    changed = [fact(slower_start) if one.fact.event == CONTEXT else one.fact for one in FACTS]
    assert turn_latency(TURN, log(*changed)).cleanup_ms == 18.5
    assert turn_latency(TURN, FACTS).queue_wait_ms is None  # nothing is made up


@pytest.mark.spec("HOL-LAT-04")
def test_a_completed_round_carries_its_own_timing() -> None:
    payload = as_published(completed())["payload"]
    assert payload["context_build_ms"] == 0.5
    assert payload["provider_round_ms"] == 12.0
    assert payload["provider_started_at"] == "2027-01-15T08:00:00.000Z"
    assert payload["provider_completed_at"] == "2027-01-15T08:00:00.012Z"
    assert "provider_round_completed" in ModelCompleted.aliases
    for field in ("context_build_ms", "provider_round_ms", "provider_started_at", "provider_completed_at"):
        assert ModelCompleted.model_fields[field].is_required()


@pytest.mark.spec("HOL-LAT-05")
def test_telemetry_of_a_round_and_what_was_said_are_two_events() -> None:
    usage = TokenUsage(input_tokens=1)
    telemetry = as_published(completed(usage))["payload"]
    assert not {"item", "text_preview", "calls"} & set(ModelCompleted.model_fields)
    assert "Looking" not in str(telemetry)
    spoken = as_published(said("Looking.", "call_1"))["payload"]
    assert (spoken["text_preview"], spoken["calls"]) == (
        "Looking.",
        [{"call_id": "call_1", "name": "look_up", "malformed": False}],
    )
    assert "assistant_round_recorded" in AssistantRecorded.aliases
    assert "token_usage" not in AssistantRecorded.model_fields
