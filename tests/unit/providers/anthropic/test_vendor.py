"""The vendor's own SDK as a judge: its types take what we send, and its parser reads what we read."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from kit.wires.anthropic_samples import NO_NAMES, WEATHER, block, call_block, decoded, ended, sse, started, text_block
from kit.wires.anthropic_vendor import FIELDS, accepted, facts_of, our_facts, sdk_message
from kit.wires.model_requests import a_request
from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.providers.anthropic.decode import decode_response
from wakeful.providers.anthropic.encode import AnthropicEncoder
from wakeful.providers.profiles import profile_of


def everything() -> History:
    hidden = {"type": "redacted_thinking", "data": "ZW5j"}
    return History(
        [
            UserItem(
                parts=(
                    Text("See"),
                    Image(data=b"PNG"),
                    Image(url="https://example.com/x.png"),
                    File(name="a.pdf", data=b"%PDF", media_type="application/pdf"),
                    File(name="n.txt", data=b"words", media_type="text/plain"),
                    File(name="b.pdf", url="https://example.com/b.pdf", media_type="application/pdf"),
                )
            ),
            AssistantItem(
                provider="anthropic",
                parts=(
                    Thinking(text="hm", provider="anthropic", opaque={"signature": "c2ln"}),
                    Thinking(provider="anthropic", opaque=hidden),
                    Text("I will look."),
                    CallPart(
                        call_id="a", name=WEATHER.name, arguments={"city": "x"}, opaque={"caller": {"type": "direct"}}
                    ),
                    CallPart(call_id="b", name=WEATHER.name, raw_arguments='{"ci'),
                ),
            ),
            ToolItem(call_id="a", name=WEATHER.name, parts=(Text("Here:"), Image(data=b"PNG"))),
            ToolItem(call_id="b", name=WEATHER.name, parts=(Text("not JSON"),), is_error=True),
            UserItem(parts=(Text("And?"),)),
        ]
    )


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
@pytest.mark.parametrize("parallel", [True, False])
def test_the_sdk_s_types_take_our_requests(stream: bool, choice: Any, parallel: bool) -> None:
    encoder = AnthropicEncoder("claude-opus-4-7", profile_of("claude-opus-4-7"), (WEATHER,))
    request = a_request(
        history=everything(),
        instructions="Be brief.",
        tool_choice=choice,
        stream=stream,
        output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        settings={
            "max_tokens": 100,
            "stop": ["END"],
            "thinking": "low",
            "parallel_tool_calls": parallel,
        },
    )
    body = json.loads(b"".join(encoder.body(request)))
    accepted(body)
    # Their types let unknown fields pass, so the names are compared by themselves.
    assert body.keys() <= FIELDS


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body["messages"][0]["content"][1]["source"].pop("data"),
        lambda body: body["messages"][1]["content"][0].pop("signature"),
        lambda body: body["messages"][2]["content"][0].pop("tool_use_id"),
        lambda body: body["tools"][0].pop("input_schema"),
        lambda body: body.pop("max_tokens"),
        lambda body: body["system"][0].update(cache_control={"type": "for ever"}),
    ],
)
def test_the_judge_sees_what_is_wrong(spoil: Any) -> None:
    """Inversion: the same request with one thing spoiled is refused, deep inside lazy lists too."""
    encoder = AnthropicEncoder("claude-opus-4-7", profile_of("claude-opus-4-7"), (WEATHER,))
    body = json.loads(b"".join(encoder.body(a_request(history=everything(), instructions="x", stream=True))))
    spoil(body)
    with pytest.raises(ValidationError):
        accepted(body)


THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "First "},
    {"type": "thinking_delta", "thinking": "this."},
    {"type": "signature_delta", "signature": "c2ln"},
)
SEARCH = block(
    0,
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"query":'},
    {"type": "input_json_delta", "partial_json": '"x"}'},
)
STREAMS = {
    "text": [started(), {"type": "ping"}, *text_block(0, "Hel", "lo, ", "wörld ☀"), *ended()],
    "calls": [
        started(),
        *text_block(0, "Looking."),
        *call_block(1, "toolu_1", "get", "", '{"city": ', '"Paris", "n": 1.5, "deep": {"a": [null, true]}}'),
        *call_block(2, "toolu_2", "get"),
        *ended("tool_use"),
    ],
    "thinking": [
        started(),
        *THOUGHT,
        *block(1, {"type": "redacted_thinking", "data": "ZW5j"}),
        *text_block(2, "ok"),
        *ended(),
    ],
    "paused": [started(), *SEARCH, *ended("pause_turn")],
    "usage": [
        started(),
        *text_block(0, "x"),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {
                "output_tokens": 50,
                "input_tokens": 11,
                "cache_read_input_tokens": 6,
                "output_tokens_details": {"thinking_tokens": 20},
            },
        },
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_sdk_reads_in_a_stream_what_we_read(name: str) -> None:
    stream = sse(STREAMS[name])
    theirs = sdk_message(stream)
    assert facts_of(theirs) == our_facts(decoded(stream)[1])


@pytest.mark.parametrize("name", STREAMS)
def test_a_message_the_sdk_put_together_is_the_same_reply_without_streaming(name: str) -> None:
    stream = sse(STREAMS[name])
    whole = json.dumps(sdk_message(stream).to_dict()).encode()
    streamed, at_once = decoded(stream)[1], decode_response(whole, NO_NAMES)
    assert (at_once.item, at_once.stop_reason, at_once.usage) == (streamed.item, streamed.stop_reason, streamed.usage)
