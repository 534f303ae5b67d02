"""What an answer means: text, reasoning, refusals, ends, usage, errors, and what nobody has heard of."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.wires.chat_streams import (
    PEER,
    TOOLS,
    USAGE,
    USAGE_CHUNK,
    chunk,
    events_of,
    piece,
    read,
    reply_to,
    response,
    stream,
)
from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ReasoningDelta, TextDelta, TokenUsage
from wakeful.providers.openai_chat.decode import ChatDecoder, decode_response
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent, SseParser

NAMES = WireNames(TOOLS)


def test_text_comes_in_glimpses_and_whole_in_the_reply() -> None:
    data = stream(
        chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"}, "stop")
    )
    glimpses, reply = read(data)
    assert glimpses == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert reply.item.parts == (Text("Hello"),)
    assert (reply.item.provider, reply.stop_reason, reply.usage) == ("acme", "end", None)
    assert reply.request_metadata == {"id": "chatcmpl-1", "model": "model-1", "created": 1, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("given_reason", "meant"),
    [("stop", "end"), ("length", "length"), ("content_filter", "content_filter"), ("eos", "end"), ("novel", "other")],
)
def test_the_end_is_named_in_our_words_and_kept_in_theirs(given_reason: str, meant: str) -> None:
    reply = reply_to(chunk({"content": "so far"}), chunk(finish=given_reason))
    assert (reply.stop_reason, reply.request_metadata["finish_reason"]) == (meant, given_reason)
    assert reply.item.text == "so far"


def test_said_twice_the_reason_that_says_more_counts() -> None:
    assert reply_to(chunk({"content": "a"}, "length"), chunk(finish="stop")).stop_reason == "length"
    assert reply_to(chunk({"content": "a"}, "stop"), chunk(finish="length")).stop_reason == "length"
    assert reply_to(chunk({"content": "a"}, ""), chunk(finish="stop")).stop_reason == "end"


def test_a_filter_that_kept_everything_back_leaves_an_empty_reply_that_says_so() -> None:
    reply = reply_to(chunk({"content": ""}), chunk(finish="content_filter"), USAGE_CHUNK)
    assert (reply.item.parts, reply.stop_reason) == ((), "content_filter")
    assert reply.usage == TokenUsage(input_tokens=7, output_tokens=3, total_tokens=10)


def test_a_refusal_is_text_and_a_reason() -> None:
    chunks = chunk({"content": None, "refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop")
    glimpses, reply = read(stream(*chunks))
    assert (reply.item.text, reply.stop_reason) == ("I cannot.", "refusal")
    assert glimpses == [TextDelta(text="I can"), TextDelta(text="not.")]


# --- whole or nothing ----------------------------------------------------------------------------------------

WHOLE = stream(
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "I look it up: 東京 🗼"}),
    piece(0, "client__look_up", "", "call_a"),
    piece(0, None, '{"word": "tower"}'),
    piece(1, "add", '{"a": 1}', "call_b"),
    chunk(finish="tool_calls"),
    USAGE_CHUNK,
)


def test_a_stream_cut_at_any_byte_is_a_lost_attempt() -> None:
    assert len(read(WHOLE)[1].item.calls) == 2
    for cut in range(len(WHOLE)):
        with pytest.raises(ModelFailure) as failed:
            read(WHOLE[:cut])
        assert (failed.value.kind, failed.value.stage, failed.value.retryable) == ("stream_interrupted", "body", None)


def test_without_its_check_a_stream_cut_after_the_finish_reason_would_pass() -> None:
    cut = WHOLE[: WHOLE.index(b"data: [DONE]")]
    assert len(read(cut, needs_done=False)[1].item.calls) == 2


def test_a_server_that_never_says_done_has_to_be_declared_and_still_needs_a_finish_reason() -> None:
    ended, cut = stream(chunk({"content": "x"}, "stop"), done=False), stream(chunk({"content": "x"}), done=False)
    with pytest.raises(ModelFailure, match="needs_done"):
        read(ended)
    assert read(ended, needs_done=False)[1].item.text == "x"
    with pytest.raises(ModelFailure, match="without a finish reason"):
        read(cut, needs_done=False)


def test_done_without_a_finish_reason_is_no_end() -> None:
    with pytest.raises(ModelFailure) as failed:
        reply_to(chunk({"content": "half an ans"}))
    assert failed.value.kind == "stream_interrupted"


def test_two_signs_of_an_end_are_enough_and_one_is_not() -> None:
    said, end = chunk({"content": "x"}), chunk(finish="stop")
    streams = [
        (1, stream(said, end, done=False)),
        (1, stream(said)),
        (2, stream(said, end)),
        (0, stream(said, done=False)),
    ]
    for signs, body in streams:
        for body_ended in (True, False):
            decoder = ChatDecoder(NAMES, PEER)
            for event in SseParser().feed(body):
                decoder.feed(event)
            if signs + body_ended >= 2:
                assert decoder.finish(body_ended=body_ended).item.text == "x"
            else:
                with pytest.raises(ModelFailure):
                    decoder.finish(body_ended=body_ended)


def test_what_follows_done_is_not_read() -> None:
    data = stream(chunk({"content": "x"}, "stop")) + stream(chunk({"content": "y"})) + b"data: nonsense\n\n"
    assert read(data)[1].item.text == "x"


def test_calls_that_were_announced_and_did_not_come_are_a_lost_attempt() -> None:
    with pytest.raises(ModelFailure, match="no call came") as failed:
        reply_to(chunk({"content": "Let me look."}), chunk(finish="tool_calls"))
    assert (failed.value.kind, failed.value.retryable) == ("invalid_response", None)


# --- errors where an answer was expected ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "The server had an error", "type": "server_error", "code": None}, "server_error"),
        ({"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}, "rate_limited"),
        ({"message": "Provider returned error", "code": 502}, "server_error"),
        ({"message": "busy", "code": "429"}, "rate_limited"),
        ({"message": "too long", "code": "context_length_exceeded"}, "context_length_exceeded"),
        ({"message": "no money", "type": "insufficient_quota"}, "quota_exhausted"),
        ({"message": "out of memory"}, "server_error"),
        ("worker died", "server_error"),
    ],
)
def test_an_error_in_a_stream_is_a_failure_of_the_kind_it_says(error: Any, kind: str) -> None:
    for before in ([], [chunk({"content": "so"})], [chunk({"content": "all of it"}, "stop")]):
        with pytest.raises(ModelFailure) as failed:
            reply_to(*before, {"error": error})
        assert failed.value.kind == kind
        said = error if isinstance(error, str) else error["message"]
        assert said in failed.value.message
    with pytest.raises(ModelFailure) as failed:
        decode_response(json.dumps({"error": error}).encode(), NAMES, PEER)
    assert failed.value.kind == kind


def test_an_error_event_and_an_error_in_a_choice_count_as_well() -> None:
    with pytest.raises(ModelFailure, match="gone"):
        read([SseEvent("error", b'{"message": "gone"}')])
    broken = chunk({"content": ""}, "error")
    broken["choices"][0]["error"] = {"code": 503, "message": "upstream is down"}
    with pytest.raises(ModelFailure, match="upstream is down") as failed:
        reply_to(chunk({"content": "so"}), broken)
    assert (failed.value.kind, failed.value.status) == ("server_error", 503)
    with pytest.raises(ModelFailure):
        reply_to(chunk({"content": "so"}, "error"))


@pytest.mark.parametrize("data", [b"<html>", b'{"choices": [', b"[1]", b"null", b'"text"', b"\xff\xfe{}"])
def test_what_is_no_json_object_is_an_invalid_response(data: bytes) -> None:
    with pytest.raises(ModelFailure) as failed:
        read([SseEvent("message", data)])
    assert (failed.value.kind, failed.value.stage) == ("invalid_response", "decode")
    with pytest.raises(ModelFailure) as failed:
        decode_response(data, NAMES, PEER)
    assert failed.value.kind == "invalid_response"


@pytest.mark.parametrize(
    "wrong",
    [
        {"choices": "none"},
        {"choices": ["x"]},
        {"choices": [{"delta": "text"}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": {"tool_calls": "x"}}]},
        {"choices": [{"delta": {"tool_calls": ["x"]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": "x"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {"name": "a", "arguments": 7}}]}}]},
        {"choices": [{"delta": {"function_call": "x"}}]},
        {"choices": [{"delta": {}, "finish_reason": 7}]},
    ],
)
def test_a_known_field_with_something_else_in_it_is_an_invalid_response(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelFailure) as failed:
        reply_to(wrong)
    assert failed.value.kind == "invalid_response"


FIELDS = [
    *("choices", "delta", "message", "content", "tool_calls", "function", "index", "id", "name", "arguments", "usage"),
    *("finish_reason", "error", "reasoning", "reasoning_details", "type", "text", "refusal", "new"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=4), st.booleans())
def test_whatever_comes_is_a_reply_or_a_model_failure(values: list[Any], at_once: bool) -> None:
    wrapped = [
        {"choices": [{"delta": value, "message": value}]} if isinstance(value, dict) else value for value in values
    ]
    for chunks in (values, wrapped):
        try:
            if at_once:
                decode_response(json.dumps(chunks[0] if chunks else None).encode(), NAMES, PEER)
            else:
                read(
                    [*(SseEvent("message", json.dumps(one).encode()) for one in chunks), SseEvent("message", b"[DONE]")]
                )
        except ModelFailure:
            pass


# --- usage ---------------------------------------------------------------------------------------------------


def test_usage_is_counted_with_cached_reasoning_and_audio_tokens() -> None:
    usage = {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 1, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 1, "accepted_prediction_tokens": 0},
    }
    expected = TokenUsage(
        input_tokens=7,
        output_tokens=3,
        total_tokens=10,
        cached_input_tokens=4,
        cache_write_tokens=2,
        reasoning_tokens=2,
        audio_tokens=2,
    )
    assert reply_to(chunk({"content": "x"}, "stop"), {"choices": [], "usage": usage}).usage == expected
    assert decode_response(response({"content": "x"}, usage=usage), NAMES, PEER).usage == expected


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [], "usage": USAGE},
        {"choices": [], "usage": None, "x_groq": {"id": "req_1", "usage": USAGE}},
        {"choices": [{"index": 0, "delta": {}, "usage": USAGE}]},
        {"choices": [], "usage": {**USAGE, "total_tokens": None, "prompt_tokens_details": None}},
    ],
)
def test_usage_is_found_where_servers_put_it(last: dict[str, Any]) -> None:
    usage = reply_to(chunk({"content": "x"}, "stop"), last).usage
    assert usage == TokenUsage(input_tokens=7, output_tokens=3, total_tokens=10)


def test_of_usage_that_is_reported_again_and_again_the_last_counts() -> None:
    early = chunk({"content": "x"}, usage={"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8})
    usage = reply_to(early, chunk(finish="stop", usage=USAGE)).usage
    assert usage is not None and usage.output_tokens == 3


@pytest.mark.parametrize("bad", [{"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"prompt_tokens": True}, {}])
def test_nonsense_for_usage_is_unknown_and_not_nothing(bad: dict[str, Any]) -> None:
    assert (
        reply_to(chunk({"content": "x"}, "stop"), {"choices": [], "usage": {**USAGE, **bad} if bad else bad}).usage
        is None
    )


def test_a_deepseek_cache_hit_is_a_cached_token() -> None:
    usage = reply_to(chunk({"content": "x"}, "stop", usage={**USAGE, "prompt_cache_hit_tokens": 5})).usage
    assert usage is not None and usage.cached_input_tokens == 5


# --- reasoning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_is_kept_as_thinking_with_the_name_of_its_field(field: str) -> None:
    chunks = chunk({field: "Let me "}), chunk({field: "see."}), chunk({"content": "42"}), chunk(finish="stop")
    glimpses, reply = read(stream(*chunks))
    assert glimpses == [ReasoningDelta(text="Let me "), ReasoningDelta(text="see."), TextDelta(text="42")]
    thinking = Thinking(text="Let me see.", provider="acme", opaque={"openai_chat": {"said_in": [field]}})
    assert reply.item.parts == (thinking, Text("42"))
    assert decode_response(response({field: "Let me see.", "content": "42"}), NAMES, PEER).item == reply.item


def test_reasoning_that_is_said_in_two_fields_is_shown_once_and_kept_in_both() -> None:
    both = chunk({"reasoning": "Hm.", "reasoning_content": "Hm.", "content": "ok"}, "stop")
    glimpses, reply = read(stream(both))
    assert [glimpse for glimpse in glimpses if isinstance(glimpse, ReasoningDelta)] == [ReasoningDelta(text="Hm.")]
    thinking = reply.item.parts[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.text, thinking.opaque["openai_chat"]["said_in"]) == ("Hm.", ["reasoning_content", "reasoning"])


def test_details_of_reasoning_are_put_together_as_they_were() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, **fields}

    encrypted = {"type": "reasoning.encrypted", "data": "AbC=", "index": 1}
    reply = reply_to(
        chunk({"reasoning": "Let ", "reasoning_details": [detail(text="Let ")]}),
        chunk({"reasoning": "us.", "reasoning_details": [detail(text="us.")]}),
        chunk({"reasoning_details": [detail(signature="sig", text=None)]}),
        chunk({"reasoning_details": [encrypted]}),
        chunk({"content": "ok"}, "stop"),
    )
    thinking = reply.item.parts[0]
    assert isinstance(thinking, Thinking)
    kept = thinking.opaque["openai_chat"]["fields"]["reasoning_details"]
    assert kept == [detail(text="Let us.", signature="sig"), encrypted]


def test_details_alone_are_reasoning_too() -> None:
    details = [{"type": "reasoning.summary", "summary": "In short."}]
    reply = reply_to(chunk({"reasoning_details": details, "content": "ok"}, "stop"))
    assert isinstance(reply.item.parts[0], Thinking) and reply.item.parts[0].text == "In short."


def test_content_in_parts_is_text_reasoning_and_whatever_else_is_kept() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Yes"},
        {"type": "reference", "reference_ids": [1]},
        ".",
    ]
    glimpses, reply = read(stream(chunk({"content": content}, "stop")))
    assert reply.item.text == "Yes."
    kept, thinking = reply.item.parts[:2]
    assert isinstance(kept, Thinking) and isinstance(thinking, Thinking)
    assert (thinking.text, kept.opaque["openai_chat"]["fields"]["content"]) == ("Hm.", [content[2]])
    assert glimpses == [ReasoningDelta(text="Hm."), TextDelta(text="Yes"), TextDelta(text=".")]


# --- what nobody has heard of --------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-PROV-04")
def test_unknown_fields_are_kept_and_never_fatal() -> None:
    first = chunk(
        {"content": "x", "annotations": [{"url": "a"}], "mood": "good", "audio": None}, new_thing={"deep": [1]}
    )
    second = chunk({"annotations": [{"url": "b"}]}, "stop", new_thing=None)
    second["choices"][0]["safety"] = "low"
    reply = reply_to(first, second, {"ping": 1})
    thinking = reply.item.parts[0]
    assert isinstance(thinking, Thinking)
    fields = {"annotations": [{"url": "a"}, {"url": "b"}], "mood": "good"}
    assert thinking == Thinking(text="", provider="acme", opaque={"openai_chat": {"fields": fields}})
    assert reply.request_metadata["other"] == {"new_thing": {"deep": [1]}, "choice.safety": "low", "ping": 1}


def test_a_large_unknown_field_is_named_and_not_kept() -> None:
    reply = reply_to(chunk({"content": "x"}, "stop", token_ids=list(range(5000))))
    assert reply.request_metadata["other"]["token_ids"].endswith("bytes, not kept")


def test_empty_choices_other_choices_comments_and_empty_data_are_passed_over() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "not mine"}, "finish_reason": "stop"}]}
    data = b": ping\n\ndata:\n\n" + stream({"choices": []}, {"choices": None}, other, chunk({"content": "x"}, "stop"))
    assert read(data)[1].item.text == "x"


def test_a_first_chunk_that_names_nothing_does_not_hide_the_names_that_follow() -> None:
    before = {"id": "", "model": "", "created": 0, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    reply = reply_to(before, chunk({"content": "x"}, "stop"))
    assert (reply.request_metadata["id"], reply.request_metadata["model"]) == ("chatcmpl-1", "model-1")
    assert reply.request_metadata["other"] == {"prompt_filter_results": [{"prompt_index": 0}]}


def test_half_a_character_anywhere_can_be_written() -> None:
    half = b"\\ud83d"
    call = b'{"index": 0, "id": "%s", "function": {"name": "%s", "arguments": "%s"}, "new": ["%s"]}' % ((half,) * 4)
    one = b'data: {"id": "%s", "%s": {"%s": 1}, "choices": [{"delta": {"mood": "%s", "tool_calls": [%s]}}]}\n\n'
    reply = read(one % (half, half, half, half, call) + stream(chunk(finish="stop")))[1]
    assert "\ufffd" in reply.model_dump_json()
    assert reply.item.calls[0].name == "\ufffd"


def test_a_character_cut_in_two_is_whole_in_the_reply() -> None:
    one = b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'
    halves = one % b"\\ud83d" + one % b"\\ude00"
    glimpses, reply = read(halves + stream(chunk(finish="stop")))
    assert reply.item.text == "\N{GRINNING FACE}"
    assert [glimpse.text for glimpse in glimpses] == ["?", "?"]
    assert read(halves[: len(halves) // 2] + stream(chunk(finish="stop")))[1].item.text == "\ufffd"


# --- the same at once ----------------------------------------------------------------------------------------


def test_an_answer_that_came_at_once_is_the_same_reply() -> None:
    message = {
        "content": "I look it up: 東京 🗼",
        "refusal": None,
        "annotations": [],
        "tool_calls": [
            {
                "id": "call_a",
                "type": "function",
                "function": {"name": "client__look_up", "arguments": '{"word": "tower"}'},
            },
            {"id": "call_b", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
        ],
    }
    assert decode_response(response(message, "tool_calls", usage=USAGE), NAMES, PEER) == read(WHOLE)[1]


def test_an_answer_that_came_at_once_is_whole_without_a_finish_reason_where_it_says_something() -> None:
    assert decode_response(response({"content": "x"}, None), NAMES, PEER).item.text == "x"
    with pytest.raises(ModelFailure, match="may not be whole"):
        decode_response(response({"content": ""}, None), NAMES, PEER)


# --- an empty finish reason ----------------------------------------------------------------------------------

BLANK = [chunk({"content": "Yes"}, ""), chunk({"content": "."}, "")]
CALLED = {"content": None, "tool_calls": [{"id": "c", "function": {"name": "add", "arguments": '{"a": 1}'}}]}


def test_an_empty_finish_reason_ends_an_answer_that_is_whole() -> None:
    streamed, whole = reply_to(*BLANK), decode_response(response({"content": "Yes."}, ""), NAMES, PEER)
    assert (streamed.item.text, streamed.stop_reason) == (whole.item.text, whole.stop_reason) == ("Yes.", "end")
    assert decode_response(response(CALLED, ""), NAMES, PEER).stop_reason == "tool_calls"
    assert reply_to(chunk({"content": "Yes"}, ""), chunk({}, "length")).stop_reason == "length"


@pytest.mark.parametrize(
    "cut", [stream(*BLANK, done=False), stream(chunk({"content": "Yes"})), stream(chunk({"role": "assistant"}, ""))]
)
def test_an_empty_finish_reason_does_not_make_a_stream_whole(cut: bytes) -> None:
    """Without `[DONE]`, without any finish reason at all, or with nothing said."""
    for needs_done in (True, False):
        with pytest.raises(ModelFailure, match="without a finish reason"):
            read(cut, needs_done=needs_done)
    with pytest.raises(ModelFailure, match="may not be whole"):
        decode_response(response({"content": ""}, ""), NAMES, PEER)


# --- calls that are none -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "empty",
    [
        {"function_call": {"name": "", "arguments": ""}},
        {"function_call": {"name": None, "arguments": None}},
        {"function_call": {"arguments": "{}"}},
        {"tool_calls": [{"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {}}]},
    ],
)
def test_a_frame_with_no_call_in_it_is_no_call(empty: dict[str, Any]) -> None:
    streamed = reply_to(chunk({"content": "Yes."}), chunk(empty), chunk(finish="stop"))
    whole = decode_response(response({"content": "Yes.", **empty}), NAMES, PEER)
    assert streamed.item == whole.item
    assert (whole.item.parts, whole.stop_reason) == ((Text("Yes."),), "end")


def test_a_legacy_call_whose_name_comes_later_is_one() -> None:
    pieces = [{"name": ""}, {"name": "add"}, {"arguments": '{"a"'}, {"arguments": ": 1}"}]
    (call,) = reply_to(*(chunk({"function_call": each}) for each in pieces), chunk(finish="function_call")).item.calls
    assert (call.name, call.arguments) == ("add", {"a": 1})


def test_an_answer_without_choices_is_invalid() -> None:
    with pytest.raises(ModelFailure, match="no choices"):
        decode_response(b'{"object": "chat.completion", "choices": []}', NAMES, PEER)


def test_a_message_in_a_stream_is_read_where_nothing_came_before_it() -> None:
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "all"}, "finish_reason": "stop"}]}
    assert reply_to(whole).item.text == "all"
    assert reply_to(chunk({"content": "al"}), chunk({"content": "l"}), whole).item.text == "all"


def test_two_streams_at_once_share_nothing() -> None:
    one, two = ChatDecoder(NAMES, PEER), ChatDecoder(NAMES, PEER)
    first = events_of(stream(chunk({"content": "one"}), piece(0, "add", '{"a": 1}', "x"), chunk(finish="stop")))
    second = events_of(stream(chunk({"content": "two"}), piece(0, "add", '{"a": 2}', "x"), chunk(finish="stop")))
    for left, right in zip(first, second, strict=True):
        one.feed(left)
        two.feed(right)
    left_reply, right_reply = one.finish(), two.finish()
    assert (left_reply.item.text, left_reply.item.calls[0].arguments) == ("one", {"a": 1})
    assert (right_reply.item.text, right_reply.item.calls[0].arguments) == ("two", {"a": 2})
