"""What a step says, in each of its spellings."""

import pytest

from kit.wires.model_requests import a_request, pieces_of, reply_of
from wakeful.contracts.content import Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.models import ArgumentsDelta, ReasoningDelta, Reply, TextDelta, TokenUsage
from wakeful.providers.scripted import ScriptedModel


async def test_a_text_is_a_reply_that_ends_the_turn() -> None:
    reply = await reply_of(ScriptedModel(["hello"]), a_request())
    assert reply == Reply(item=AssistantItem(parts=(Text("hello"),), provider="scripted"), stop_reason="end")


async def test_calls_get_ids_from_their_place_in_the_turn() -> None:
    call = {"name": "look_up", "arguments": {"order": "A17"}}
    model = ScriptedModel([{"calls": [call, {**call, "id": "mine"}]}, {"calls": [call]}, "done"])
    first, second = await reply_of(model, a_request(0)), await reply_of(model, a_request(1))
    assert [made.call_id for made in first.item.calls] == ["call_1_1", "mine"]
    assert [made.call_id for made in second.item.calls] == ["call_2_1"]
    assert first.item.calls[0].arguments == {"order": "A17"}
    assert first.stop_reason == "tool_calls"


@pytest.mark.parametrize("written", ["{not json", "[1, 2]", "", '"text"'])
async def test_arguments_that_are_no_json_object_stay_as_they_were_written(written: str) -> None:
    model = ScriptedModel([{"calls": [{"name": "look_up", "arguments": written}]}, "done"])
    (call,) = (await reply_of(model, a_request())).item.calls
    assert (call.arguments, call.raw_arguments) == (None, written)


async def test_arguments_written_as_a_json_object_are_parsed() -> None:
    model = ScriptedModel([{"calls": [{"name": "look_up", "arguments": '{"order": "A17"}'}]}, "done"])
    (call,) = (await reply_of(model, a_request())).item.calls
    assert (call.arguments, call.raw_arguments) == ({"order": "A17"}, None)


async def test_parts_come_in_order_reasoning_text_parts_calls() -> None:
    picture = Image(data=b"png")
    step = {
        "calls": [{"name": "look_up"}],
        "parts": [picture, {"type": "thinking", "text": "deep", "opaque": {"signature": "s"}}],
        "text": "one moment",
        "reasoning": "let me see",
        "stop_reason": "pause",
        "metadata": {"request_id": "r1"},
    }
    reply = await reply_of(ScriptedModel([step, "done"]), a_request())
    assert reply.item.parts == (
        Thinking(text="let me see", provider="scripted"),
        Text("one moment"),
        picture,
        Thinking(text="deep", opaque={"signature": "s"}),
        CallPart(call_id="call_1_1", name="look_up", arguments={}),
    )
    assert (reply.stop_reason, reply.request_metadata) == ("pause", {"request_id": "r1"})


async def test_a_reply_or_an_assistant_item_can_be_given_as_it_is() -> None:
    item = AssistantItem(parts=(CallPart(call_id="c", name="look_up", arguments={}),), provider="elsewhere")
    whole = Reply(item=AssistantItem(parts=(Text("hi"),)), stop_reason="length")
    model = ScriptedModel([item, whole])
    assert await reply_of(model, a_request(0)) == Reply(item=item, stop_reason="tool_calls")
    assert await reply_of(model, a_request(1)) == whole


@pytest.mark.spec("HOL-TOK-09")
async def test_usage_is_absent_unless_the_script_reports_it() -> None:
    reported = {"text": "hi", "usage": {"input_tokens": 7, "output_tokens": 2}}
    model = ScriptedModel([reported, "bye"])
    assert (await reply_of(model, a_request(0))).usage == TokenUsage(input_tokens=7, output_tokens=2, total_tokens=9)
    assert (await reply_of(model, a_request(1))).usage is None


async def test_usage_auto_estimates_what_no_step_reports() -> None:
    model = ScriptedModel([{"text": "hi", "usage": {"input_tokens": 1}}, "abcdef"], usage="auto")
    assert (await reply_of(model, a_request(0))).usage == TokenUsage(input_tokens=1, total_tokens=1)
    estimated = (await reply_of(model, a_request(1, instructions="123456789"))).usage
    assert estimated == TokenUsage(input_tokens=3, output_tokens=2, total_tokens=5)


async def test_streaming_shows_glimpses_and_ends_in_the_same_reply() -> None:
    step = {"reasoning": "hm, so", "text": "one  two\nthree", "calls": [{"name": "add", "arguments": {"a": 1}}]}
    model = ScriptedModel([step, "done"])
    *glimpses, last = await pieces_of(model, a_request(stream=True))
    assert last == await reply_of(model, a_request(stream=False))
    assert glimpses == [
        ReasoningDelta(text="hm, "),
        ReasoningDelta(text="so"),
        TextDelta(text="one  "),
        TextDelta(text="two\n"),
        TextDelta(text="three"),
        ArgumentsDelta(call_id="call_1_1", name="add", text='{"a": 1}'),
    ]


async def test_nobody_watches_no_glimpse_is_made_and_the_reply_is_the_same() -> None:
    model = ScriptedModel(["one two"])
    *glimpses, last = await pieces_of(model, a_request(stream=True, watched=False))
    assert glimpses == []
    assert last == await reply_of(model, a_request(stream=True))


@pytest.mark.parametrize(
    ("chunks", "pieces"), [(3, ["abc", "def", "g"]), (1, ["abcdefg"]), (["ab", "cdefg"], ["ab", "cdefg"])]
)
async def test_chunks_say_how_the_text_is_split(chunks: object, pieces: list[str]) -> None:
    model = ScriptedModel([{"text": "abcdefg", "chunks": chunks}])
    *glimpses, last = await pieces_of(model, a_request(stream=True))
    assert [glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)] == pieces
    assert isinstance(last, Reply)
    assert last.item.text == "abcdefg"


async def test_the_pieces_alone_say_the_text() -> None:
    assert (await reply_of(ScriptedModel([{"chunks": ["ab", "c"]}]), a_request())).item.text == "abc"
