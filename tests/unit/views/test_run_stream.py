"""The run stream, from facts made by hand in the order the log has them."""

import itertools

import pytest
from pydantic import TypeAdapter

from kit.runs.event_samples import (
    TURN,
    completed,
    fact,
    in_step,
    log,
    message,
    model_failed,
    progress,
    requested,
    said,
    tool_failed,
    tool_result,
    tool_started,
    turn_completed,
    turn_failed,
    turn_started,
)
from kit.runs.whole_views import run_stream
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import AnyEvent, ToolDispatched, TurnResumed, TurnSuspended
from wakeful.contracts.models import ReasoningDelta, TextDelta, TokenUsage
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import (
    ErrorEvent,
    McpProgressEvent,
    RunEvent,
    StatusEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)

USED = TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)


def called(call: str, event: AnyEvent, step: int = 1) -> Fact:
    return fact(event, call=call, step=step)


def shape(event: RunEvent) -> str:
    """An event in the words of the canonical trace."""
    match event:
        case StatusEvent():
            return f"status({event.status})"
        case StepEvent():
            return f"step({event.step}, {event.status})"
        case TextEvent():
            return f"text({event.text!r})"
        case UsageEvent():
            return f"usage({event.step})"
        case ToolCallEvent():
            return f"tool_call({event.tool_call_id})"
        case McpProgressEvent():
            return f"mcp_progress({event.tool_call_id} {event.progress:g} of {event.total or 0:g})"
        case ToolResultEvent():
            return f"tool_result({event.tool_call_id}, {'success' if event.success else 'error'})"
        case ErrorEvent():
            return f"error({event.step}, attempt {event.attempt})"


def shapes(facts: list[StoredFact]) -> list[str]:
    return [shape(event) for event in run_stream(TURN, facts)]


CANONICAL = log(
    fact(message(), step=None),
    fact(turn_started(), step=None),
    *in_step(1, requested(), completed(USED), said("", "call_1"), tool_started()),
    *in_step(1, progress(1), progress(2), tool_result()),
    *in_step(2, requested(), completed(USED), said("Final answer")),
    fact(turn_completed(), step=2),
)


@pytest.mark.spec("CTL-TRACE-01", "CTL-TRACE-02", "CTL-TRACE-05")
def test_the_canonical_run_is_shown_as_its_thirteen_events() -> None:
    shown = shapes(CANONICAL)
    assert shown == [
        "status(starting)",
        "step(1, started)",
        "usage(1)",
        "tool_call(call_1)",
        "mcp_progress(call_1 1 of 2)",
        "mcp_progress(call_1 2 of 2)",
        "tool_result(call_1, success)",
        "step(1, completed)",
        "step(2, started)",
        "text('Final answer')",
        "usage(2)",
        "step(2, completed)",
        "status(completed)",
    ]
    # The first event precedes step 1, each step is bracketed, and the last event is the only terminal one.
    assert shown.index("status(starting)") == 0 < shown.index("step(1, started)")
    assert [one for one in shown if one.startswith("status(") and one != "status(starting)"] == [shown[-1]]


@pytest.mark.spec("CTL-TRACE-05")
def test_nothing_follows_the_terminal_status() -> None:
    stream = RunStream(TURN)
    for recorded in CANONICAL:
        stream.feed(recorded)
    assert stream.ended
    late = log(*in_step(2, tool_result("call_9")), turn_failed(), start=len(CANONICAL) + 1)
    assert [stream.feed(recorded) for recorded in late] == [[], []]
    assert stream.glimpse(2, TextDelta(text="late")) == []


@pytest.mark.spec("CTL-TRACE-05")
@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
def test_every_way_to_end_is_one_terminal_status(status: str) -> None:
    events = run_stream(TURN, log(turn_started(), requested(), model_failed(), turn_failed(status)))
    ends = [event for event in events if isinstance(event, StatusEvent) and event.is_terminal]
    assert [event.status for event in ends] == [status]
    assert events[-1] is ends[0]
    assert (ends[0].stop_reason, ends[0].retryable) == ("provider_error", True)


@pytest.mark.spec("CTL-TRACE-03")
def test_usage_comes_after_the_text_although_the_log_has_it_before() -> None:
    shown = shapes(log(turn_started(), requested(), completed(USED), said("Looking.", "call_1"), tool_started()))
    assert shown[2:] == ["text('Looking.')", "usage(1)", "tool_call(call_1)"]


@pytest.mark.spec("CTL-TRACE-03", "CTL-TRACE-04")
@pytest.mark.parametrize("order", list(itertools.permutations(["call_1", "call_2", "call_3"])))
def test_results_are_shown_in_model_order_whatever_finished_first(order: tuple[str, ...]) -> None:
    calls = ["call_1", "call_2", "call_3"]
    shown = shapes(
        log(
            turn_started(),
            *in_step(1, requested(), completed(USED), said("", *calls)),
            *(called(call, tool_started(call)) for call in calls),
            *(one for call in order for one in (called(call, progress()), called(call, tool_result(call)))),
            *in_step(2, requested()),
        )
    )
    assert [one for one in shown if one.startswith("tool_call(")] == [f"tool_call({call})" for call in calls]
    results = [one for one in shown if one.startswith("tool_result(")]
    assert results == [f"tool_result({call}, success)" for call in calls]
    assert shown.index("usage(1)") < shown.index("tool_call(call_1)")
    assert shown.index("tool_call(call_3)") < shown.index(results[0])
    for call in calls:
        path = [f"tool_call({call})", f"mcp_progress({call} 1 of 2)", f"tool_result({call}, success)"]
        places = [shown.index(one) for one in path]
        assert places == sorted(places)
    assert shown[-2:] == ["step(1, completed)", "step(2, started)"]


@pytest.mark.spec("CTL-TRACE-04")
def test_progress_is_shown_at_once_while_results_wait_for_their_turn() -> None:
    stream = RunStream(TURN)
    facts = log(
        turn_started(),
        *in_step(1, requested(), completed(USED), said("", "call_1", "call_2")),
        called("call_1", tool_started("call_1")),
        called("call_2", tool_started("call_2")),
        called("call_2", tool_result("call_2")),
        called("call_1", progress()),
    )
    shown = [[shape(event) for event in stream.feed(recorded)] for recorded in facts]
    assert shown[-2:] == [[], ["mcp_progress(call_1 1 of 2)"]]


def test_serial_calls_announce_the_next_before_the_result_of_the_one_before() -> None:
    shown = shapes(
        log(
            turn_started(),
            *in_step(1, requested(), completed(USED), said("", "call_1", "call_2")),
            called("call_1", tool_started("call_1")),
            called("call_1", tool_result("call_1")),
            called("call_2", tool_started("call_2")),
            called("call_2", tool_result("call_2")),
        )
    )
    assert shown[3:] == [
        "tool_call(call_1)",
        "tool_call(call_2)",
        "tool_result(call_1, success)",
        "tool_result(call_2, success)",
        "step(1, completed)",
    ]


def test_a_call_that_was_refused_before_it_started_is_still_shown_before_its_result() -> None:
    events = run_stream(
        TURN,
        log(
            turn_started(),
            *in_step(1, requested(), completed(USED), said("", "call_1")),
            called("call_1", tool_failed("call_1", status="invalid")),
        ),
    )
    call, result = events[3], events[4]
    assert call == ToolCallEvent(step=1, tool_call_id="call_1", tool_name="look_up")
    assert call.event_seq is None, "it stands for no fact of its own"
    assert isinstance(result, ToolResultEvent)


def test_a_call_that_is_run_again_after_a_crash_is_announced_once() -> None:
    shown = shapes(
        log(
            turn_started(),
            *in_step(1, requested(), completed(USED), said("", "call_1"), tool_started()),
            TurnResumed(),
            called("call_1", ToolDispatched(attempt=2, cause="recovery")),
            called("call_1", tool_result("call_1")),
        )
    )
    assert shown.count("tool_call(call_1)") == 1
    assert shown[-2:] == ["tool_result(call_1, success)", "step(1, completed)"]


@pytest.mark.spec("CTL-META-01", "CTL-META-02", "CTL-META-09")
@pytest.mark.parametrize("outcome", [tool_result(), tool_failed(), tool_failed(status="timed_out")])
def test_a_tool_result_mirrors_the_facts_metadata_and_its_flat_fields_agree(outcome: AnyEvent) -> None:
    assert outcome.kind in ("tool.result", "tool.failed")
    events = run_stream(
        TURN, log(turn_started(), requested(), completed(), said("", "call_1"), tool_started(), outcome)
    )
    shown = next(event for event in events if isinstance(event, ToolResultEvent))
    assert shown.metadata == outcome.metadata  # type: ignore[union-attr]
    assert shown.success is (shown.metadata.status == "success")
    assert shown.duration_ms == shown.metadata.execution_time_ms
    assert (shown.error is None) is shown.success
    # It survives being sent as JSON, value for value.
    as_json = TypeAdapter[RunEvent](RunEvent)
    assert as_json.validate_json(as_json.dump_json(shown)) == shown


def test_glimpsed_text_is_not_shown_again_when_the_reply_is_recorded() -> None:
    stream = RunStream(TURN)
    for recorded in log(turn_started(), requested()):
        stream.feed(recorded)
    glimpsed = [*stream.glimpse(1, TextDelta(text="Final ")), *stream.glimpse(1, TextDelta(text="answer"))]
    assert [shape(event) for event in glimpsed] == ["text('Final ')", "text('answer')"]
    assert [event.event_seq for event in glimpsed] == [None, None]
    assert stream.glimpse(1, ReasoningDelta(text="hm")) == []
    rest = [shape(e) for one in log(completed(USED), said("Final answer"), start=3) for e in stream.feed(one)]
    assert rest == ["usage(1)", "step(1, completed)"]


def test_words_whose_glimpse_was_lost_are_shown_with_the_fact() -> None:
    stream = RunStream(TURN)
    for recorded in log(turn_started(), requested()):
        stream.feed(recorded)
    stream.glimpse(1, TextDelta(text="Final "))
    rest = [shape(e) for one in log(completed(USED), said("Final answer"), start=3) for e in stream.feed(one)]
    assert rest == ["text('answer')", "usage(1)", "step(1, completed)"]


def test_a_lost_attempt_is_an_error_that_names_the_attempt_whose_text_is_void() -> None:
    stream = RunStream(TURN)
    for recorded in log(turn_started(), requested()):
        stream.feed(recorded)
    void = stream.glimpse(1, TextDelta(text="I thi"))
    (error,) = stream.feed(log(model_failed(), start=3)[0])
    assert isinstance(error, ErrorEvent)
    assert [(event.step, event.attempt) for event in void if isinstance(event, TextEvent)] == [
        (error.step, error.attempt)
    ]
    assert error.retryable
    assert stream.glimpse(1, TextDelta(text="nk")) == [], "a glimpse of a lost attempt is dropped"
    again = log(requested(2), completed(USED), said("Final answer"), start=4)
    text = [e for one in again for e in stream.feed(one) if isinstance(e, TextEvent)]
    assert text == [TextEvent(step=1, attempt=2, text="Final answer", event_seq=6)]
    (gave_up,) = RunStreamAfter(turn_started(), requested()).feed(log(model_failed(disposition="abort"), start=3)[0])
    assert isinstance(gave_up, ErrorEvent)
    assert not gave_up.retryable


def test_retries_are_one_step() -> None:
    shown = shapes(log(turn_started(), requested(), model_failed(), requested(2), completed(USED), said("done")))
    assert shown.count("step(1, started)") == shown.count("step(1, completed)") == 1


def test_a_suspended_turn_shows_what_is_done_and_goes_on_in_order_when_it_resumes() -> None:
    facts = log(
        turn_started(),
        *in_step(1, requested(), completed(USED), said("", "call_1", "call_2")),
        called("call_1", tool_started("call_1")),
        called("call_1", tool_result("call_1")),
        TurnSuspended(reason="tool_missing", waiting_for=("refund",)),
        TurnResumed(cause="supplied"),
        called("call_2", tool_started("call_2")),
        called("call_2", tool_result("call_2")),
        turn_completed(),
    )
    assert shapes(facts)[3:] == [
        "tool_call(call_1)",
        "tool_result(call_1, success)",
        "status(suspended)",
        "tool_call(call_2)",
        "tool_result(call_2, success)",
        "step(1, completed)",
        "status(completed)",
    ]


def test_facts_delivered_twice_or_again_from_the_start_change_nothing_and_a_failed_call_stays() -> None:
    facts = log(
        turn_started(),
        *in_step(1, requested(), completed(USED), said("", "call_1"), tool_started(), tool_failed()),
        *in_step(2, requested(), completed(USED), said("done")),
        turn_completed(),
    )
    once = shapes(facts)
    assert "tool_result(call_1, error)" in once
    assert shapes([one for recorded in facts for one in (recorded, recorded)]) == once
    for cut in range(len(facts)):
        assert shapes([*facts[:cut], *facts]) == once


def test_facts_of_another_turn_are_not_shown() -> None:
    other = [StoredFact(one.agent_id, one.seq, fact(one.fact.event, turn="turn_2")) for one in CANONICAL]
    assert run_stream(TURN, other) == []


class RunStreamAfter(RunStream):
    """A stream that was fed these events already."""

    def __init__(self, *events: AnyEvent) -> None:
        super().__init__(TURN)
        for recorded in log(*events):
            self.feed(recorded)
