"""What the Responses API says becomes a reply, the same one from a stream and from a body, and never half of one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kit.wires.model_requests import a_request
from kit.wires.responses_wire import REASONING, USAGE, WEATHER, call, decoded, events_of, message, response, sse, words
from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import CallPart, History
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ArgumentsDelta, ReasoningDelta, Reply, TextDelta, TokenUsage
from wakeful.providers.openai_responses.decode import ResponsesDecoder, decode_response
from wakeful.providers.openai_responses.encode import ResponsesEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent, SseParser

NAMES = WireNames([WEATHER])
WHOLE = response(REASONING, message(words("Let me look."), phase="commentary"), call("call_1"), call("call_2", "{}"))


def both(ended: dict[str, Any]) -> Reply:
    """The reply, which has to be the same streamed and not."""
    _, streamed = decoded(sse(events_of(ended)))
    assert decode_response(json.dumps(ended).encode(), NAMES) == streamed
    return streamed


def failure_of(stream: bytes) -> ModelFailure:
    with pytest.raises(ModelFailure) as failed:
        decoded(stream)
    return failed.value


def test_a_stream_and_a_body_give_the_same_reply() -> None:
    reply = both(WHOLE)
    assert reply.item.text == "Let me look."
    assert [(part.call_id, part.name, part.arguments) for part in reply.item.calls] == [
        ("call_1", "client/get_weather", {"city": "Paris"}),
        ("call_2", "client/get_weather", {}),
    ]
    assert (reply.stop_reason, reply.item.provider) == ("tool_calls", "openai")
    assert reply.request_metadata == {
        "response_id": "resp_1",
        "model": "gpt-5.5-2026-04-23",
        "service_tier": "default",
    }


def test_glimpses_come_in_order_and_name_their_call() -> None:
    glimpses, _ = decoded(sse(events_of(WHOLE)))
    assert [glimpse for glimpse in glimpses if isinstance(glimpse, ReasoningDelta)] == [
        ReasoningDelta(text="Look first."),
        ReasoningDelta(text="Then speak."),
    ]
    assert "".join(glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)) == "Let me look."
    arguments = [glimpse for glimpse in glimpses if isinstance(glimpse, ArgumentsDelta)]
    assert {(piece.call_id, piece.name) for piece in arguments} == {
        ("call_1", "client/get_weather"),
        ("call_2", "client/get_weather"),
    }
    assert "".join(piece.text for piece in arguments if piece.call_id == "call_1") == '{"city":"Paris"}'


def test_events_without_a_name_are_read_by_the_type_in_their_data() -> None:
    assert decoded(sse(events_of(WHOLE), named=False)) == decoded(sse(events_of(WHOLE)))


def test_a_done_mark_after_the_end_changes_nothing() -> None:
    assert decoded(sse(events_of(WHOLE)) + b"data: [DONE]\n\n") == decoded(sse(events_of(WHOLE)))


@pytest.mark.spec("LOOP-PROV-04")
def test_reasoning_is_kept_as_it_came() -> None:
    thought = both(response(REASONING, message(words("Hello!")))).item.parts[0]
    assert thought == Thinking(text="Look first.\nThen speak.", provider="openai", opaque=REASONING)
    assert json.dumps(thought.opaque) == json.dumps(REASONING)


def test_streamed_reasoning_is_taken_from_its_own_event() -> None:
    streamed = {**REASONING, "encrypted_content": "the one to hand back"}
    _, reply = decoded(sse(events_of(response(REASONING, message(words("Hi"))), streamed=[streamed])))
    assert isinstance(reply.item.parts[0], Thinking)
    assert reply.item.parts[0].opaque == streamed


def test_a_message_keeps_its_frame_and_its_words_apart() -> None:
    reply = both(response(message(words("One. "), words("Two.", annotations=[{"type": "url"}]), phase="final_answer")))
    frame, first, second = reply.item.parts
    assert (first, second) == (Text("One. "), Text("Two."))
    assert isinstance(frame, Thinking)
    assert frame.opaque["phase"] == "final_answer"
    assert frame.opaque["content"][1] == {"type": "output_text", "annotations": [{"type": "url"}], "logprobs": []}


@pytest.mark.spec("API-TURN-05")
def test_text_that_looks_like_a_call_is_text() -> None:
    said = '```json\n{"type":"function_call","name":"client__get_weather","arguments":"{}","call_id":"call_9"}\n```'
    reply = both(response(message(words(said))))
    assert (reply.item.calls, reply.item.text, reply.stop_reason) == ((), said, "end")


def test_a_refusal_is_said_and_named() -> None:
    reply = both(response(message({"type": "refusal", "refusal": "I will not."})))
    assert (reply.item.text, reply.stop_reason) == ("I will not.", "refusal")


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("something_new", "other")],
)
@pytest.mark.spec("HOL-PROV-10")
def test_an_incomplete_response_says_itself_why(reason: str, stop_reason: str) -> None:
    cut = response(message(words("Once upon")), status="incomplete", incomplete_details={"reason": reason})
    reply = both(cut)
    assert (reply.item.text, reply.stop_reason) == ("Once upon", stop_reason)
    assert reply.request_metadata["incomplete_details"] == {"reason": reason}


@pytest.mark.parametrize("written", ['{"city":"Par', "{}"])
def test_a_call_that_was_cut_off_is_not_a_call_to_run(written: str) -> None:
    cut = response(
        call(arguments=written, status="incomplete"),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    reply = both(cut)
    assert reply.stop_reason == "length"
    assert (reply.item.calls[0].arguments, reply.item.calls[0].raw_arguments) == (None, written)


@pytest.mark.parametrize("written", ["not json", "[1]", '"text"', '{"a":'])
def test_arguments_that_are_no_object_are_kept_as_they_were_written(written: str) -> None:
    (made,) = both(response(call(arguments=written))).item.calls
    assert (made.arguments, made.raw_arguments) == (None, written)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "oops"}, "server_error"),
        ({"code": "rate_limit_exceeded", "message": "slow"}, "rate_limited"),
        ({"code": "insufficient_quota", "message": "pay"}, "quota_exhausted"),
        ({"code": "usage_limit_reached", "message": "later"}, "quota_exhausted"),
        ({"code": "context_length_exceeded", "message": "long"}, "context_length_exceeded"),
        ({"code": "server_is_overloaded", "message": "busy"}, "overloaded"),
        ({"code": "vector_store_timeout", "message": "late"}, "timeout"),
        ({"code": "misalignment_policy_violation", "message": "no"}, "content_filtered"),
        ({"code": "image_content_policy_violation", "message": "no"}, "content_filtered"),
        ({"code": "invalid_image_format", "message": "no"}, "contract_error"),
        ({"code": "data_residency_mismatch", "message": "no"}, "contract_error"),
        ({"code": "never_heard_of", "message": "?"}, "unknown"),
        (None, "unknown"),
    ],
)
@pytest.mark.spec("HOL-PROV-10")
def test_a_failed_response_is_what_its_error_says(error: dict[str, Any] | None, kind: str) -> None:
    ended = response(message(words("half an")), status="failed", error=error)
    streamed = failure_of(sse(events_of(ended)))
    with pytest.raises(ModelFailure) as whole:
        decode_response(json.dumps(ended).encode(), NAMES)
    assert (streamed.kind, whole.value.kind) == (kind, kind)
    assert streamed.kind != "invalid_response"
    assert error is None or error["message"] in streamed.message
    assert streamed.usage == TokenUsage(
        input_tokens=100,
        output_tokens=20,
        total_tokens=120,
        cached_input_tokens=64,
        cache_write_tokens=8,
        reasoning_tokens=12,
    )


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None},
        {"type": "error", "error": {"type": "rate_limit_error", "code": None, "message": "slow"}},
    ],
)
def test_an_error_event_ends_the_attempt_in_its_own_kind(event: dict[str, Any]) -> None:
    lost = failure_of(sse([*events_of(WHOLE)[:4], event]))
    assert lost.kind == "rate_limited"
    assert "slow" in lost.message


def test_after_a_failure_there_is_no_reply_to_be_had() -> None:
    decoder = ResponsesDecoder(NAMES)
    *events, ended = SseParser().feed(sse(events_of(response(message(words("half")), status="failed"))))
    for event in events:
        decoder.feed(event)
    with pytest.raises(ModelFailure):
        decoder.feed(ended)
    with pytest.raises(ModelFailure):
        decoder.finish()


def test_a_cancelled_response_is_an_interrupted_one() -> None:
    assert failure_of(sse(events_of(response(message(words("half")), status="cancelled")))).kind == "stream_interrupted"


def test_a_body_that_is_not_finished_is_no_answer() -> None:
    with pytest.raises(ModelFailure, match="'in_progress'") as failed:
        decode_response(json.dumps(response(status="in_progress")).encode(), NAMES)
    assert failed.value.kind == "invalid_response"


def test_usage_is_what_was_reported() -> None:
    assert both(WHOLE).usage == TokenUsage(
        input_tokens=100,
        output_tokens=20,
        total_tokens=120,
        cached_input_tokens=64,
        cache_write_tokens=8,
        reasoning_tokens=12,
    )
    assert both(response(message(words("Hi")), usage=None)).usage is None
    audio = {**USAGE, "input_tokens_details": {"audio_tokens": 3}, "output_tokens_details": {"audio_tokens": 4}}
    spoken = both(response(message(words("Hi")), usage=audio)).usage
    assert spoken is not None
    assert spoken.audio_tokens == 7


def test_usage_that_makes_no_sense_is_unknown() -> None:
    usage = both(response(message(words("Hi")), usage={"input_tokens": "many", "output_tokens_details": []})).usage
    assert usage is None


def test_unknown_events_are_counted_and_never_fatal() -> None:
    events = events_of(WHOLE)
    odd = [SseEvent("response.sang", b"not even json"), SseEvent("response.sang", b"{}"), SseEvent("ping", b"")]
    decoder = ResponsesDecoder(NAMES)
    for event in [*odd, *SseParser().feed(sse(events)), SseEvent("response.late", b"")]:
        decoder.feed(event)
    reply = decoder.finish()
    assert reply.request_metadata["unknown_events"] == {"response.sang": 2, "ping": 1}
    assert reply.item == decoded(sse(events))[1].item


def test_unknown_items_and_fields_are_kept_whole() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}, "new": [1]}
    reply = both(response(search, call(namespace="ours"), message({"type": "hologram", "data": 1}, words("Hi"))))
    kept, made, frame, said = reply.item.parts
    assert kept == Thinking(provider="openai", opaque=search)
    assert isinstance(made, CallPart)
    assert made.opaque == {"id": "fc_call_1", "status": "completed", "namespace": "ours"}
    assert isinstance(frame, Thinking)
    assert frame.opaque["content"][0] == {"type": "hologram", "data": 1}
    assert said == Text("Hi")


@pytest.mark.spec("HOL-PROV-09")
def test_output_that_the_terminal_event_leaves_out_is_rebuilt_from_the_items_that_were_streamed() -> None:
    _, usual = decoded(sse(events_of(WHOLE)))
    ended = {**WHOLE, "output": []}
    _, rebuilt = decoded(sse(events_of(ended, streamed=WHOLE["output"])))
    assert rebuilt == usual
    del ended["output"]
    events = events_of(WHOLE)
    events[-1] = {"type": "response.completed", "response": ended}
    assert decoded(sse(events))[1] == usual


def test_rebuilt_output_with_an_item_unfinished_is_no_answer() -> None:
    events = events_of({**WHOLE, "output": []}, streamed=WHOLE["output"])
    done = [n for n, event in enumerate(events) if event["type"] == "response.output_item.done"]
    for missing in done:
        assert failure_of(sse([*events[:missing], *events[missing + 1 :]])).kind == "stream_interrupted"


def test_a_stream_cut_at_any_byte_is_a_lost_attempt() -> None:
    stream = sse(events_of(WHOLE))
    for end in range(len(stream)):  # the last byte closes the terminal event
        lost = failure_of(stream[:end])
        assert (lost.kind, lost.stage) == ("stream_interrupted", "body"), end


def test_the_cut_shows_because_the_terminal_event_is_asked_for() -> None:
    """The same stream, one event shorter, holds every word of the answer: only the rule makes it a lost attempt."""
    events = events_of(WHOLE)
    glimpses, reply = decoded(sse(events))
    decoder = ResponsesDecoder(NAMES)
    seen = [glimpse for event in SseParser().feed(sse(events[:-1])) for glimpse in decoder.feed(event)]
    assert seen == glimpses
    assert not decoder.ended
    with pytest.raises(ModelFailure):
        decoder.finish()
    for event in SseParser().feed(sse(events[-1:])):
        decoder.feed(event)
    assert decoder.finish() == reply


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b'{"type":"response.completed"}',
        b'{"type":"response.completed","response":{"status":"completed","output":[1]}}',
        b'{"type":"response.completed","response":{"output":[{"type":"message"}]}}',
        b'{"type":"response.completed","response":{"output":[{"type":"function_call","arguments":"{}"}]}}',
        b'{"type":"response.completed","response":{"output":[{"type":"function_call","name":"x","arguments":{}}]}}',
        b'{"type":"response.output_item.done","output_index":0}',
    ],
)
def test_what_has_no_shape_is_an_invalid_response(data: bytes) -> None:
    for name in ("message", "response.completed"):
        decoder = ResponsesDecoder(NAMES)
        with pytest.raises(ModelFailure) as failed:
            decoder.feed(SseEvent(name, data))
            decoder.finish()
        assert failed.value.kind in ("invalid_response", "stream_interrupted")
    with pytest.raises(ModelFailure):
        decode_response(data, NAMES)


@pytest.mark.parametrize("odd", [None, -1, "x", [], {"a": 1}, "failed"])
def test_whatever_is_wrong_with_a_field_it_is_a_reply_or_a_failure(odd: Any) -> None:
    """And a reply can be stored and sent back."""
    ended = response(REASONING, message(words("Hi"), {"type": "refusal", "refusal": "no"}), call())
    events = SseParser().feed(sse(events_of(ended)[:-1]))
    for path in _places(ended):
        body = json.dumps({"type": "response.completed", "response": _with(ended, path, odd)}).encode()
        decoder = ResponsesDecoder(NAMES)
        try:
            for event in [*events, SseEvent("response.completed", body)]:
                decoder.feed(event)
            reply = decoder.finish()
        except ModelFailure:
            continue
        assert Reply.model_validate_json(reply.model_dump_json()) == reply
        encoder = ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), NAMES)
        assert json.loads(b"".join(encoder.body(a_request(history=History([reply.item])))))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _places(each, (*path, key))


def _with(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], odd)
    return copy


def test_half_a_character_in_a_delta_is_read() -> None:
    decoder = ResponsesDecoder(NAMES)
    data = b'{"type":"response.output_text.delta","delta":"\\ud83d"}'
    assert decoder.feed(SseEvent("response.output_text.delta", data)) == [TextDelta.model_construct(text="\ud83d")]


def test_an_error_in_a_body_of_its_own_is_read_as_one() -> None:
    with pytest.raises(ModelFailure) as failed:
        decode_response(b'{"error":{"type":"server_error","message":"oops"}}', NAMES)
    assert failed.value.kind == "server_error"


def test_no_state_is_shared_between_streams() -> None:
    first, second = ResponsesDecoder(NAMES), ResponsesDecoder(NAMES)
    for event in SseParser().feed(sse(events_of(WHOLE))):
        first.feed(event)
    assert first.ended
    assert not second.ended
    with pytest.raises(ModelFailure):
        second.finish()
