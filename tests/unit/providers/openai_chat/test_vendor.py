"""The vendor's SDK as an oracle: its types accept what we encode, and its parser and ours hear the same."""

import json
from typing import Any

import openai
import pytest
from pydantic import ValidationError

from kit.wires.chat_streams import PEER, TOOLS, USAGE, chunk, piece, read, response, stream
from kit.wires.chat_vendor import heard, vendor_accepts, vendor_heard, vendor_heard_at_once
from kit.wires.model_requests import a_request
from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.providers.openai_chat.decode import decode_response
from wakeful.providers.openai_chat.dialect import OPENAI, Dialect
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames

CONVERSATION = (
    UserItem(
        parts=(
            Text("See:"),
            Image(data=b"\x89PNG"),
            File(name="a.pdf", data=b"%PDF", media_type="application/pdf"),
            File(name="a.wav", data=b"RIFF", media_type="audio/wav"),
        )
    ),
    AssistantItem(
        parts=(
            Text("One moment."),
            CallPart(call_id="x", name="client/look_up", arguments={"word": "é"}),
            CallPart(call_id="y", name="add", raw_arguments='{"a": '),
        ),
        provider="openai",
    ),
    ToolItem(call_id="x", name="client/look_up", parts=(Text("found"), Image(data=b"\x89PNG"))),
    ToolItem(call_id="y", name="add", parts=(Text("not JSON"),), is_error=True),
    AssistantItem(parts=(CallPart(call_id="z", name="add", arguments={}),), provider="other"),
    ToolItem(call_id="z", name="add", parts=(Text("0"),)),
    UserItem(parts=(Text("a"), Text("b"))),
)
ANSWER = {"title": "Answer", "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def body_of(dialect: Dialect = OPENAI, **fields: Any) -> dict[str, Any]:
    request = a_request(history=History(CONVERSATION), tools=TOOLS, instructions="Be brief.", **fields)
    encoder = ChatEncoder("gpt-4o", profile_of("gpt-4o", {"audio": True}), WireNames(TOOLS), dialect=dialect)
    body: dict[str, Any] = json.loads(b"".join(encoder.body(request)))
    return body


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"tool_choice": "required"},
        {"tool_choice": "none", "stream": True},
        {"tool_choice": ("client/look_up",), "settings": {"parallel_tool_calls": False}},
        {
            "settings": {
                "temperature": 0.2,
                "top_p": 1,
                "stop": ["."],
                "max_tokens": 9,
                "openai": {"reasoning_effort": "low"},
            }
        },
        {"output_schema": ANSWER, "stream": True},
        {"dialect": Dialect(system_role="developer", max_tokens_field="max_completion_tokens")},
        {"dialect": Dialect(call_ids="nine", content_parts=False, response_format="none"), "output_schema": ANSWER},
    ],
    ids=str,
)
def test_the_vendors_types_accept_everything_we_send(fields: dict[str, Any]) -> None:
    vendor_accepts(body_of(**fields))


@pytest.mark.parametrize(
    "broken",
    [
        {"tools": [{"type": "function", "function": {"description": "no name"}}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "no object"}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "x", "type": "function"}]}]},
    ],
)
def test_the_check_looks_into_lazy_lists(broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        vendor_accepts({**body_of(), **broken})


def test_the_check_sees_a_field_the_vendor_does_not_know() -> None:
    with pytest.raises(AssertionError, match="drop"):
        vendor_accepts({**body_of(), "made_up": 1})


STREAMS = {
    "text": [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hé"}), chunk({"content": "!"}, "stop")],
    "interleaved calls": [
        chunk({"role": "assistant", "content": None}),
        piece(0, "look_up", "", "call_a"),
        piece(1, "add", "", "call_b"),
        piece(1, None, '{"a"'),
        piece(0, None, '{"word": '),
        piece(1, None, ": 2}"),
        piece(0, None, '"東京"}'),
        chunk(finish="tool_calls"),
    ],
    "text and a call": [chunk({"content": "Wait."}), piece(0, "add", "{}", "call_a"), chunk(finish="stop")],
    "cut by length": [chunk({"content": "So far"}), chunk(finish="length")],
    "unknown fields": [chunk({"content": "x", "mood": "good"}, "stop", news=[1])],
}
LAST = {
    **chunk(),
    "choices": [],
    "usage": {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("counted", [True, False])
def test_both_hear_the_same_in_a_stream(name: str, counted: bool) -> None:
    data = stream(*STREAMS[name], *([LAST] if counted else []))
    assert heard(read(data, tools=())[1]) == vendor_heard(data)


def test_both_hear_the_same_in_an_answer_that_came_at_once() -> None:
    calls = [
        {"id": "call_a", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "x"}'}},
        {"id": "call_b", "type": "function", "function": {"name": "add", "arguments": "{}"}},
    ]
    body = response({"content": "Wait.", "tool_calls": calls}, "tool_calls", usage=LAST["usage"])
    assert heard(decode_response(body, WireNames(), PEER)) == vendor_heard_at_once(body)


def test_where_the_vendors_client_takes_half_an_answer_for_a_whole_one_ours_does_not() -> None:
    cut = stream(chunk({"content": "The balance is 1"}), chunk({"content": "00"}), done=False)
    with pytest.raises(AssertionError, match="None"):  # it ends quietly, with no reason to have ended
        assert vendor_heard(cut).finish_reason == "stop"
    assert vendor_heard(cut).text == "The balance is 100"
    with pytest.raises(ModelFailure):
        read(cut)


def test_both_raise_for_an_error_in_a_stream() -> None:
    data = stream(chunk({"content": "so"}), {"error": {"message": "it broke", "type": "server_error"}})
    with pytest.raises(openai.APIError, match="it broke"):
        vendor_heard(data)
    with pytest.raises(ModelFailure, match="it broke"):
        read(data)
