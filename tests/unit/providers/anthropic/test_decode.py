"""Answers of a Messages endpoint become replies, or lost attempts; there is nothing in between."""

import json
from typing import Any

import pytest

from kit.wires.anthropic_samples import (
    NO_NAMES,
    WEATHER,
    block,
    call_block,
    decoded,
    ended,
    reply_to,
    sse,
    started,
    text_block,
)
from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ArgumentsDelta, ReasoningDelta, TextDelta, TokenUsage
from wakeful.providers.anthropic.decode import AnthropicDecoder, decode_response
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent, SseParser


def failure_of(*events: dict[str, Any] | list[dict[str, Any]]) -> ModelFailure:
    with pytest.raises(ModelFailure) as raised:
        reply_to(*events)
    return raised.value


def test_text_and_parallel_calls_come_in_order_with_names_mapped_back() -> None:
    names = WireNames([WEATHER])
    events = [
        started(),
        *text_block(0, "I will ", "look."),
        *call_block(1, "toolu_1", "client__get_weather", "", '{"city"', ': "Paris"}'),
        *call_block(2, "toolu_2", "client__get_weather", '{"city": "Rome"}'),
        *ended("tool_use"),
    ]
    glimpses, reply = decoded(events, names)
    assert reply.item == AssistantItem(
        provider="anthropic",
        parts=(
            Text("I will look."),
            CallPart(call_id="toolu_1", name="client/get_weather", arguments={"city": "Paris"}),
            CallPart(call_id="toolu_2", name="client/get_weather", arguments={"city": "Rome"}),
        ),
    )
    assert reply.stop_reason == "tool_calls"
    assert glimpses == [
        TextDelta(text="I will "),
        TextDelta(text="look."),
        ArgumentsDelta(call_id="toolu_1", name="client/get_weather", text=""),
        ArgumentsDelta(call_id="toolu_1", name="client/get_weather", text='{"city"'),
        ArgumentsDelta(call_id="toolu_1", name="client/get_weather", text=': "Paris"}'),
        ArgumentsDelta(call_id="toolu_2", name="client/get_weather", text=""),
        ArgumentsDelta(call_id="toolu_2", name="client/get_weather", text='{"city": "Rome"}'),
    ]


@pytest.mark.spec("API-TURN-05")
def test_a_call_written_in_the_text_stays_text() -> None:
    fenced = '```json\n{"type":"tool_use","id":"toolu_9","name":"get_weather","input":{"city":"Paris"}}\n```'
    reply = reply_to(started(), text_block(0, fenced), ended())
    assert reply.item.calls == ()
    assert reply.item.text == fenced


def test_usage_is_all_input_with_its_cached_parts_and_later_counts_replace_earlier_ones() -> None:
    delta = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 40, "input_tokens": None, "output_tokens_details": {"thinking_tokens": 30}},
    }
    reply = reply_to(started(), text_block(0, "hi"), delta, {"type": "message_stop"})
    assert reply.usage == TokenUsage(
        input_tokens=18,
        output_tokens=40,
        total_tokens=58,
        cached_input_tokens=5,
        cache_write_tokens=3,
        reasoning_tokens=30,
    )


def test_a_provider_that_counts_nothing_reports_nothing() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    assert reply_to(started(usage=None), text_block(0, "hi"), events).usage is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("something_new", "other"),
    ],
)
def test_every_stop_reason_has_a_meaning_and_keeps_its_own_word(said: str, meant: str) -> None:
    reply = reply_to(started(), text_block(0, "so far"), ended(said))
    assert (reply.stop_reason, reply.request_metadata["provider_stop_reason"]) == (meant, said)


def test_a_paused_reply_goes_on_without_a_word() -> None:
    server_call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    search = block(0, server_call, {"type": "input_json_delta", "partial_json": '{"query":"x"}'})
    reply = reply_to(started(), search, ended("pause_turn"))
    assert reply.continuation == (UserItem(parts=(), origin="runtime"),)
    assert reply.item.parts == (Thinking(provider="anthropic", opaque={**server_call, "input": {"query": "x"}}),)
    assert reply_to(started(), text_block(0, "done"), ended()).continuation == ()


def test_a_refusal_with_nothing_to_read_is_a_filtered_attempt_that_says_why() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "not this"}
    failure = failure_of(started(), ended("refusal", stop_details=details))
    assert (failure.kind, failure.stage) == ("content_filtered", "decode")
    assert "bio: not this" in failure.message
    assert failure.usage is not None and failure.usage.output_tokens == 7
    call = call_block(1, "toolu_1", "f", "{}")
    assert failure_of(started(), text_block(0, "well"), call, ended("refusal")).kind == "content_filtered"


def test_a_refusal_in_words_is_a_reply() -> None:
    reply = reply_to(started(), text_block(0, "I can't help with that."), ended("refusal", stop_details={"type": "x"}))
    assert (reply.item.text, reply.stop_reason) == ("I can't help with that.", "refusal")
    assert reply.request_metadata["stop_details"] == {"type": "x"}


def test_thinking_keeps_its_signature_and_redacted_thinking_its_data() -> None:
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "First "},
        {"type": "thinking_delta", "thinking": "this."},
        {"type": "signature_delta", "signature": "c2ln+/="},
    )
    hidden = {"type": "redacted_thinking", "data": "ZW5j"}
    glimpses, reply = decoded([started(), *thought, *block(1, hidden), *text_block(2, "hi"), *ended()])
    assert reply.item.parts == (
        Thinking(text="First this.", provider="anthropic", opaque={"signature": "c2ln+/="}),
        Thinking(provider="anthropic", opaque=hidden),
        Text("hi"),
    )
    assert glimpses[:2] == [ReasoningDelta(text="First "), ReasoningDelta(text="this.")]


def test_citations_stay_with_their_text() -> None:
    cited = {"type": "char_location", "cited_text": "x", "document_index": 0}
    start = {"type": "text", "text": "", "citations": []}
    told = block(0, start, {"type": "text_delta", "text": "said"}, {"type": "citations_delta", "citation": cited})
    reply = reply_to(started(), told, ended())
    assert reply.item.parts == (
        Text("said"),
        Thinking(provider="anthropic", opaque={"text_fields": {"citations": [cited]}}),
    )


def test_what_nobody_knows_is_kept_and_never_fatal() -> None:
    new_block = block(1, {"type": "hologram", "shape": "cu"}, {"type": "shape_delta", "shape": "be", "side": 3})
    odd_delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "calm"}}
    start, piece, stop = text_block(0, "hi")
    weather = {"type": "weather_report", "sun": True}
    reply = reply_to(
        started(new_field={"a": 1}), {"type": "ping"}, weather, start, piece, odd_delta, stop, new_block, ended()
    )
    assert reply.item.parts == (
        Text("hi"),
        Thinking(provider="anthropic", opaque={"type": "hologram", "shape": "cube", "side": 3}),
    )
    assert reply.request_metadata["unknown_events"] == [weather, odd_delta]
    assert reply.request_metadata["new_field"] == {"a": 1}


def test_unknown_events_without_end_do_not_fill_the_log() -> None:
    flood = [{"type": "weather_report", "n": n} for n in range(1000)]
    reply = reply_to(started(), text_block(0, "hi"), flood, ended())
    assert len(reply.request_metadata["unknown_events"]) == 16
    assert reply.request_metadata["unknown_event_count"] == 1000


@pytest.mark.parametrize("value", ["x" * 5000, "half a pair \ud83d"])
def test_what_the_log_cannot_hold_is_named_and_not_kept(value: str) -> None:
    reply = reply_to(started(new_field=value), {"type": "odd", "v": value}, text_block(0, "hi"), ended())
    assert reply.request_metadata["not_kept"] == ["new_field"]
    assert (reply.request_metadata["unknown_events"], reply.request_metadata["unknown_event_count"]) == ([], 1)


def test_unknown_fields_of_a_call_go_with_the_call() -> None:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}}
    reply = reply_to(started(), block(0, start), ended("tool_use"))
    assert reply.item.calls == (
        CallPart(call_id="t", name="f", arguments={"a": 1}, opaque={"caller": {"type": "direct"}}),
    )


@pytest.mark.parametrize("written", ['{"city": "Par', "[1]", "{'city': 'Paris'}", '{"a": NaN}', "null"])
def test_arguments_that_are_no_json_object_are_kept_as_written(written: str) -> None:
    call = reply_to(started(), call_block(0, "t", "f", *written), ended("max_tokens")).item.calls[0]
    assert (call.arguments, call.raw_arguments) == (None, written)


@pytest.mark.parametrize("pieces", [(), ("",), (" ",)])
def test_a_call_without_arguments_has_none(pieces: tuple[str, ...]) -> None:
    call = reply_to(started(), call_block(0, "t", "f", *pieces), ended("tool_use")).item.calls[0]
    assert (call.arguments, call.raw_arguments) == ({}, None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "api_error", "message": "Internal server error"}, "server_error"),
        ({"type": "rate_limit_error", "message": "slower"}, "rate_limited"),
        ({"type": "timeout_error", "message": "took too long"}, "timeout"),
        ({"type": "billing_error", "message": "pay"}, "quota_exhausted"),
        ({"type": "invalid_request_error", "message": "no"}, "contract_error"),
        ({"type": "invalid_request_error", "message": "prompt is too long: 300000"}, "context_length_exceeded"),
        ({"type": "brand_new_error", "message": "?"}, "server_error"),
        ("just words", "server_error"),
    ],
)
def test_an_error_event_inside_an_answer_is_the_failure_it_names(error: object, kind: str) -> None:
    failure = failure_of(started(), text_block(0, "half an ans"), {"type": "error", "error": error}, ended())
    assert (failure.kind, failure.stage) == (kind, "body")
    assert failure.usage is None, "what it had counted was what it had said by then"


WHOLE = [started(), *text_block(0, "Hello"), *call_block(1, "toolu_1", "f", '{"a": ', "1}"), *ended("tool_use")]


def test_a_stream_cut_after_any_event_is_a_lost_attempt() -> None:
    assert reply_to(WHOLE).item.calls
    for length in range(len(WHOLE)):
        failure = failure_of(WHOLE[:length])
        assert (failure.kind, failure.stage) == ("stream_interrupted", "body"), length


def test_a_stream_cut_after_any_byte_is_a_lost_attempt() -> None:
    stream = sse(WHOLE)
    for length in range(len(stream)):
        with pytest.raises(ModelFailure) as raised:
            decoded(stream[:length])
        assert raised.value.kind == "stream_interrupted", length


def test_no_single_sign_of_the_end_is_enough() -> None:
    """Inversion: each of the three signs is taken away by itself, and each time the attempt is lost."""
    delta, stop = ended()
    first, piece, last = text_block(0, "Hello")
    assert failure_of(started(), first, piece, last, stop).kind == "stream_interrupted"
    assert failure_of(started(), first, piece, last, ended(None)).kind == "stream_interrupted"
    assert failure_of(started(), first, piece, last, delta).kind == "stream_interrupted"
    assert failure_of(started(), first, piece, delta, stop).kind == "stream_interrupted"
    assert reply_to(started(), first, piece, last, delta, stop).item.text == "Hello"


@pytest.mark.parametrize("lost", range(len(WHOLE)))
def test_an_event_lost_from_the_middle_never_changes_what_was_said_unless_it_is_a_piece(lost: int) -> None:
    """Deltas carry no numbers, so a missing one cannot be seen; every other event is missed."""
    events = [event for position, event in enumerate(WHOLE) if position != lost]
    if WHOLE[lost]["type"] == "content_block_delta":
        reply_to(events)
    else:
        assert failure_of(events).kind in ("stream_interrupted", "invalid_response")


@pytest.mark.parametrize(
    "data",
    [b"{nonsense", b'"text"', b'{"type":"content_block_delta","index":0}', b'{"type":"content_block_start","index":0}'],
)
def test_what_is_no_event_is_an_invalid_answer(data: bytes) -> None:
    decoder = AnthropicDecoder(NO_NAMES)
    decoder.feed(SseEvent("message_start", json.dumps(started()).encode()))
    with pytest.raises(ModelFailure) as raised:
        decoder.feed(SseEvent("content_block_delta", data))
    assert (raised.value.kind, raised.value.stage) == ("invalid_response", "decode")


def test_an_event_without_meaning_has_to_be_one_all_the_same() -> None:
    """What breaks a ping on its way may have broken its neighbours, too."""
    decoder = AnthropicDecoder(NO_NAMES)
    assert decoder.feed(SseEvent("ping", b'{"type": "ping"}')) == []
    with pytest.raises(ModelFailure) as raised:
        decoder.feed(SseEvent("ping", b"{nonsense"))
    assert (raised.value.kind, raised.value.stage) == ("invalid_response", "decode")


def test_two_answers_in_one_stream_are_no_answer() -> None:
    assert failure_of(started(), started(), text_block(0, "a"), ended()).kind == "invalid_response"
    assert failure_of(started(), text_block(0, "a"), text_block(0, "b"), ended()).kind == "invalid_response"


def test_what_follows_the_end_is_not_part_of_the_reply() -> None:
    late = {"type": "error", "error": {"type": "api_error", "message": "too late"}}
    assert reply_to(started(), text_block(0, "a"), ended(), text_block(1, "b"), late).item.text == "a"


def test_event_names_are_not_needed_and_neither_is_openai_s_last_word() -> None:
    events = [started(), *text_block(0, "a"), *ended()]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    assert decoded(stream)[1].item.text == "a"


def test_half_a_surrogate_pair_does_not_lose_the_reply() -> None:
    stream = sse([started(), *text_block(0, "x"), *ended()]).replace(b'"text": "x"', b'"text": "\\ud83d"')
    assert decoded(stream)[1].item.text == "\ud83d"


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 7, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5},
}


def test_streamed_or_not_it_is_the_same_reply() -> None:
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    call = call_block(2, "toolu_1", "f", '{"a": 1}')
    streamed = reply_to(started(), thought, text_block(1, "Hello"), call, ended("tool_use"))
    assert decode_response(json.dumps(MESSAGE).encode(), NO_NAMES) == streamed


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>", "invalid_response"),
        (b"[]", "invalid_response"),
        (b"{}", "invalid_response"),
        (json.dumps({**MESSAGE, "stop_reason": None}).encode(), "invalid_response"),
        (json.dumps({**MESSAGE, "content": ["words"]}).encode(), "invalid_response"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"later"}}', "overloaded"),
    ],
)
def test_a_body_that_is_no_whole_message_is_a_lost_attempt(body: bytes, kind: str) -> None:
    with pytest.raises(ModelFailure) as raised:
        decode_response(body, NO_NAMES)
    assert (raised.value.kind, raised.value.stage) == (kind, "decode")


def test_chunks_may_end_anywhere() -> None:
    stream = sse(WHOLE)
    whole = decoded(stream)[1]
    for size in (1, 2, 3, 7, 50):
        parser, decoder = SseParser(), AnthropicDecoder(NO_NAMES)
        for start in range(0, len(stream), size):
            for event in parser.feed(stream[start : start + size]):
                decoder.feed(event)
        assert decoder.finish() == whole
