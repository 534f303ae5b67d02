"""The vendor's own client as an oracle: it reads our streams as we do, and would send our requests as they are."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kit.wires.model_requests import a_request
from kit.wires.responses_vendor import our_usage, vendor_accepts, vendor_calls, vendor_reading, vendor_usage
from kit.wires.responses_wire import REASONING, WEATHER, call, decoded, events_of, message, response, sse, words
from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import TextDelta
from wakeful.providers.openai_responses.encode import CODEX_RULES, OPENAI_RULES, ResponsesEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames

BARE = WireNames()
REPLY = response(REASONING, message(words("I look. "), words("Wait."), phase="commentary"), call("a"), call("b", "{}"))


@pytest.mark.parametrize(
    "ended",
    [
        REPLY,
        response(message(words("Grüße, 世界 🌍"))),
        response(message({"type": "refusal", "refusal": "No."})),
        response(message(words("cut")), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        response(call(arguments='{"city": "\\u00c9vry", "n": [1, 2.5, null]}')),
    ],
    ids=["everything", "unicode", "refusal", "incomplete", "arguments"],
)
def test_both_read_the_same_text_calls_and_usage(ended: dict[str, Any]) -> None:
    stream = sse(events_of(ended))
    glimpses, reply = decoded(stream, BARE)
    said, theirs = vendor_reading(stream)
    assert said == [glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)][: len(said)]
    assert theirs is not None
    assert theirs.output_text == reply.item.text or reply.stop_reason == "refusal"
    assert vendor_calls(theirs) == [(made.call_id, made.name, made.arguments) for made in reply.item.calls]
    assert vendor_usage(theirs) == our_usage(reply)


def test_the_vendors_client_takes_a_cut_stream_for_an_end_and_ours_does_not() -> None:
    """The reason for a decoder of our own: without its terminal event the stream simply stops, and nobody is told."""
    cut = sse(events_of(REPLY)[:-1])
    said, ended = vendor_reading(cut)
    assert ("".join(said), ended) == ("I look. Wait.", None)
    with pytest.raises(ModelFailure, match="without its terminal event"):
        decoded(cut)


@pytest.mark.parametrize("rules", [OPENAI_RULES, CODEX_RULES], ids=["openai", "codex"])
@pytest.mark.parametrize("stream", [True, False])
def test_the_vendors_types_take_our_requests_and_its_client_sends_them_unchanged(rules: Any, stream: bool) -> None:
    reply = decoded(sse(events_of(REPLY)))[1].item
    foreign = AssistantItem(
        provider="anthropic", parts=(Text("Hm."), CallPart(call_id="toolu_1", name="look", arguments={"a": 1}))
    )
    history = History(
        [
            UserItem(
                parts=(
                    Text("See:"),
                    Image(data=b"\x89PNG"),
                    Image(url="https://example.com/a.png"),
                    File(name="a.pdf", data=b"%PDF", media_type="application/pdf"),
                )
            ),
            reply,
            *(ToolItem(call_id=made.call_id, name=made.name, parts=(Text("ok"),)) for made in reply.calls),
            foreign,
            ToolItem(call_id="toolu_1", name="look", parts=(Text("a picture"), Image(data=b"\x89PNG"))),
        ]
    )
    shape = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    request = a_request(
        instructions="Be brief.",
        history=history,
        tools=(WEATHER,),
        tool_choice="required",
        settings={"max_tokens": 9, "thinking": "low", "openai": {"verbosity": "low", "prompt_cache_key": "k"}},
        output_schema=shape,
        stream=stream,
    )
    encoder = ResponsesEncoder(
        "gpt-5.5", profile_of("gpt-5.5"), WireNames([WEATHER]), rules=replace(rules, item_ids=True)
    )
    body = json.loads(b"".join(encoder.body(request)))
    assert [entry["type"] for entry in body["input"]].count("reasoning") == 1
    assert vendor_accepts(body) == body


def test_the_oracle_refuses_what_is_wrong() -> None:
    for wrong in (
        {"type": "function_call_output", "call_id": "a", "output": 3},
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": 3, "detail": "auto"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text"}], "id": "rs_1"},
    ):
        with pytest.raises(ValueError, match="validation error"):
            vendor_accepts({"model": "gpt-5.5", "input": [wrong], "stream": True})
    with pytest.raises(ValueError, match="validation error"):
        vendor_accepts({"model": "gpt-5.5", "input": [], "tools": [{"type": "function"}], "stream": True})
