"""Tool calls in pieces, from servers that number, name and repeat them in their own ways."""

import pytest

from kit.wires.chat_streams import PEER, TOOLS, chunk, piece, read, reply_to, response, stream
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.models import ArgumentsDelta
from wakeful.providers.openai_chat.decode import decode_response
from wakeful.providers.wire.names import WireNames

END = chunk(finish="tool_calls")
NAMES = WireNames(TOOLS)


def test_parallel_calls_are_put_together_by_index_however_they_are_interleaved() -> None:
    glimpses, reply = read(
        stream(
            piece(1, "add", "", "call_b"),
            piece(0, "client__look_up", "", "call_a"),
            piece(1, None, '{"a"'),
            piece(0, None, '{"wo'),
            piece(0, None, 'rd": "x"}'),
            piece(1, None, ": 2}"),
            END,
        )
    )
    assert reply.item.calls == (
        CallPart(call_id="call_a", name="client/look_up", arguments={"word": "x"}),
        CallPart(call_id="call_b", name="add", arguments={"a": 2}),
    )
    assert reply.stop_reason == "tool_calls"
    first = ArgumentsDelta(call_id="call_b", name="add", text='{"a"')
    assert glimpses[0] == first
    assert (
        "".join(g.text for g in glimpses if isinstance(g, ArgumentsDelta) and g.call_id == "call_a") == '{"word": "x"}'
    )


def test_two_pieces_of_two_calls_may_come_in_one_chunk() -> None:
    both = [
        {"index": 0, "id": "a", "function": {"name": "add", "arguments": "{}"}},
        {"index": 1, "id": "b", "function": {"name": "add", "arguments": '{"a":1}'}},
    ]
    assert [call.arguments for call in reply_to(chunk({"tool_calls": both}), END).item.calls] == [{}, {"a": 1}]


@pytest.mark.parametrize(
    "raw",
    ['{"word": "x', "[1]", '"text"', "7", "{word: x}", '{"a": NaN}', '{"a": 1} {"b": 2}', "null", '{"a": "\\ud83d"}'],
)
def test_arguments_that_are_no_json_object_are_kept_as_they_were_written(raw: str) -> None:
    (call,) = reply_to(piece(0, "add", raw, "call_a"), END).item.calls
    assert (call.arguments, call.raw_arguments) == (None, raw)


@pytest.mark.parametrize("raw", ["", " ", "{}"])
def test_no_arguments_are_an_empty_object(raw: str) -> None:
    (call,) = reply_to(piece(0, "add", raw, "call_a"), END).item.calls
    assert (call.arguments, call.raw_arguments) == ({}, None)


def test_arguments_cut_by_the_length_limit_are_malformed_and_the_reason_says_why() -> None:
    reply = reply_to(piece(0, "add", '{"a": 1', "call_a"), chunk(finish="length"))
    assert (reply.item.calls[0].arguments, reply.stop_reason) == (None, "length")


def test_arguments_that_come_as_an_object_are_taken_as_they_are() -> None:
    call = {"id": "a", "function": {"name": "add", "arguments": {"a": 1}}}
    assert reply_to(chunk({"tool_calls": [call]}), END).item.calls[0].arguments == {"a": 1}


def test_ids_that_are_missing_or_double_are_left_for_the_runtime_to_mend() -> None:
    calls = reply_to(piece(0, "add", "{}"), piece(1, "add", "{}", "x"), piece(2, "add", "{}", "x"), END).item.calls
    assert [call.call_id for call in calls] == ["", "x", "x"]


def test_a_server_that_gives_every_call_the_index_zero_is_understood_by_its_ids() -> None:
    calls = reply_to(piece(0, "add", '{"a":1}', "x"), piece(0, "add", '{"a":2}', "y"), END).item.calls
    assert [(call.call_id, call.arguments) for call in calls] == [("x", {"a": 1}), ("y", {"a": 2})]


def test_pieces_behind_a_repeated_index_belong_to_the_newest_call_or_to_the_one_they_name() -> None:
    calls = reply_to(
        piece(0, "add", "", "x"),
        piece(0, None, '{"a":'),
        piece(0, "add", "", "y"),
        piece(0, None, '{"a":'),
        piece(0, None, "2}", "y"),
        piece(0, None, "1}", "x"),
        END,
    ).item.calls
    assert [(call.call_id, call.arguments) for call in calls] == [("x", {"a": 1}), ("y", {"a": 2})]


def test_a_server_that_gives_no_index_is_understood_by_its_ids() -> None:
    calls = reply_to(
        piece(None, "add", '{"a":', "x"), piece(None, None, "1}"), piece(None, "add", '{"a":2}', "y"), END
    ).item.calls
    assert [(call.call_id, call.arguments) for call in calls] == [("x", {"a": 1}), ("y", {"a": 2})]


def test_an_id_or_a_name_that_is_repeated_belongs_to_the_same_call() -> None:
    same = reply_to(piece(0, "add", '{"a"', "x"), piece(0, "add", ":1}", "x"), END).item.calls
    assert [(call.name, call.arguments) for call in same] == [("add", {"a": 1})]
    other_ids = reply_to(piece(0, "add", '{"a"', "x"), piece(0, None, ":1}", "made-up-again"), END).item.calls
    assert [(call.call_id, call.arguments) for call in other_ids] == [("x", {"a": 1})]


def test_a_name_in_pieces_is_put_together() -> None:
    calls = reply_to(piece(0, "client__", "", "x"), piece(0, "look_up", "{}"), END).item.calls
    assert [call.name for call in calls] == ["client/look_up"]


def test_a_name_nobody_declared_comes_back_as_it_is() -> None:
    assert reply_to(piece(0, "made_up", "{}", "x"), END).item.calls[0].name == "made_up"


def test_calls_with_the_reason_stop_are_calls() -> None:
    reply = reply_to(piece(0, "add", "{}", "x"), chunk(finish="stop"))
    assert (reply.stop_reason, reply.request_metadata["finish_reason"]) == ("tool_calls", "stop")


def test_the_legacy_function_call_is_a_call() -> None:
    chunks = (
        chunk({"function_call": {"name": "add", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
    )
    reply = reply_to(*chunks, chunk(finish="function_call"))
    assert reply.item.calls == (CallPart(call_id="", name="add", arguments={"a": 1}),)
    assert reply.stop_reason == "tool_calls"
    at_once = response({"content": None, "function_call": {"name": "add", "arguments": '{"a":1}'}}, "function_call")
    assert decode_response(at_once, NAMES, PEER).item == reply.item


def test_a_call_of_a_free_text_tool_is_a_call_without_an_argument_object() -> None:
    call = {"index": 0, "id": "x", "type": "custom", "custom": {"name": "add", "input": "one and two"}}
    (part,) = reply_to(chunk({"tool_calls": [call]}), END).item.calls
    assert (part.name, part.arguments, part.raw_arguments) == ("add", None, "one and two")


@pytest.mark.spec("LOOP-PROV-04")
def test_unknown_fields_of_a_call_are_kept_with_it() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    call = {
        "index": 0,
        "id": "x",
        "function": {"name": "add", "arguments": "{}", "mark": 1},
        "extra_content": signature,
    }
    (part,) = reply_to(chunk({"tool_calls": [call]}), END).item.calls
    assert part.opaque == {"openai_chat": {"call": {"extra_content": signature}, "function": {"mark": 1}}}


@pytest.mark.spec("API-TURN-05")
@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>',
        '```json\n{"tool_calls": [{"id": "x", "function": {"name": "add", "arguments": "{}"}}]}\n```',
        '{"name": "add", "parameters": {"a": 1}}',
        "> add(a=1)",
    ],
)
def test_text_is_never_read_as_a_call(text: str) -> None:
    reply = reply_to(chunk({"content": text[:9]}), chunk({"content": text[9:]}), chunk(finish="stop"))
    assert (reply.item.calls, reply.item.text, reply.stop_reason) == ((), text, "end")
    assert decode_response(response({"content": text}), NAMES, PEER).item.calls == ()
