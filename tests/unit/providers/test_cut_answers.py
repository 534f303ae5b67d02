"""Answers that are cut off, filtered or refused, on every wire, streamed or not: told, kept, and no completion."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires import anthropic_samples, chat_streams, gemini_samples, responses_wire
from kit.wires.provider_server import JSON, Answer, ProviderServer, serving
from kit.wires.wire_formats import ALL, CHAT, GEMINI, MESSAGES, RESPONSES, WireFormat
from wakeful import Agent, NotCompleted, RunResult, run, tool
from wakeful.contracts.events import ModelFailed, SubagentFailed, ToolFailed, WarningIssued

HALF = "The answer is"
WORDS = {
    "cut_off": {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens", "gemini": "MAX_TOKENS"},
    "filtered": {"chat": "content_filter", "responses": "content_filter", "gemini": "SAFETY"},
    "refused": {"chat": "refusal", "messages": "refusal"},
}
CASES = [(wire, cause) for cause, words in WORDS.items() for wire in ALL if wire.name in words]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as it:
        yield it


def body_of(wire: WireFormat, text: str, word: str) -> Answer:
    body = json.loads(wire.body(text))
    if wire is CHAT:
        body["choices"][0]["finish_reason"] = word
    elif wire is RESPONSES:
        body.update(status="incomplete", incomplete_details={"reason": word})
    elif wire is MESSAGES:
        body["stop_reason"] = word
    else:
        body["candidates"][0]["finishReason"] = word
    return Answer(json.dumps(body).encode(), headers=JSON)


def stream_of(wire: WireFormat, text: str, word: str) -> Answer:
    if wire is CHAT:
        chunks = chat_streams.chunk({"content": text}), chat_streams.chunk(finish=word), chat_streams.USAGE_CHUNK
        return Answer(chat_streams.stream(*chunks))
    if wire is RESPONSES:
        said = responses_wire.message(responses_wire.words(text))
        ended = responses_wire.response(said, status="incomplete", incomplete_details={"reason": word})
        return Answer(responses_wire.sse(responses_wire.events_of(ended)))
    if wire is MESSAGES:
        said_events = anthropic_samples.text_block(0, text)
        events = [anthropic_samples.started(), *said_events, *anthropic_samples.ended(word)]
        return Answer(anthropic_samples.sse(events))
    return Answer(gemini_samples.sse([gemini_samples.answer({"text": text}, finish=word)]))


async def asked(wire: WireFormat, server: ProviderServer, **more: Any) -> RunResult[Any]:
    settings = {"max_tokens": 50, **more.pop("settings", {})}
    return await run(Agent("s", wire.model(server.url), settings=settings, **more), "hi")


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(("wire", "cause"), CASES, ids=lambda each: str(each))
async def test_an_answer_that_is_not_whole_is_told(
    wire: WireFormat, cause: str, streams: bool, server: ProviderServer
) -> None:
    word = WORDS[cause][wire.name]
    server.answers = [(stream_of if streams else body_of)(wire, HALF, word)]
    result = await asked(wire, server, settings={"stream": streams})
    assert (result.status, result.stop_reason, result.finish_reason) == ("incomplete", cause, word)
    assert result.final_content == HALF and result.is_cut
    with pytest.raises(NotCompleted) as raised:
        _ = result.output
    told = str(raised.value)
    assert HALF in told and word in told
    assert "max_tokens (it is 50)" in told or cause != "cut_off"
    assert RunResult.from_dict(result.to_dict()).finish_reason == word


@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_a_whole_answer_has_the_vendors_word_too(wire: WireFormat, server: ProviderServer) -> None:
    server.answers = [Answer(wire.body("Yes."), headers=JSON)]
    result = await asked(wire, server, settings={"stream": False})
    word = {"chat": "stop", "responses": "completed", "messages": "end_turn", "gemini": "STOP"}[wire.name]
    assert (result.status, result.finish_reason, result.output, result.warnings) == ("completed", word, "Yes.", ())


@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_a_limit_with_nothing_said_fails_at_once_and_names_it(wire: WireFormat, server: ProviderServer) -> None:
    server.always = body_of(wire, "", WORDS["cut_off"][wire.name])
    result = await asked(wire, server, settings={"stream": False})
    assert (result.status, len(server.asked)) == ("failed", 1)
    assert "said nothing" in result.message and "max_tokens (it is 50)" in result.message


async def test_thoughts_alone_are_nothing_said(server: ProviderServer) -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": "Hm, let me see."}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "length"}]}
    server.always = Answer(json.dumps(body).encode(), headers=JSON)
    result = await asked(CHAT, server, settings={"stream": False})
    assert (result.status, len(server.asked)) == ("failed", 1) and "its thoughts count too" in result.message


@pytest.mark.parametrize(("wire", "cause"), [case for case in CASES if case[1] != "cut_off"], ids=str)
async def test_a_filter_that_leaves_nothing_is_asked_once_more(
    wire: WireFormat, cause: str, server: ProviderServer
) -> None:
    server.always = body_of(wire, "", WORDS[cause][wire.name])
    result = await asked(wire, server, settings={"stream": False})
    assert (result.status, len(server.asked)) == ("failed", 2)
    assert {event.failure_kind for event in of_kind(result, ModelFailed)} == {"content_filtered"}


async def test_an_end_that_nobody_knows_counts_as_whole_and_is_warned_of(server: ProviderServer) -> None:
    server.answers = [body_of(CHAT, "Yes.", "tired")]
    result = await asked(CHAT, server, settings={"stream": False})
    assert (result.status, result.output, result.finish_reason) == ("completed", "Yes.", "tired")
    (warning,) = of_kind(result, WarningIssued)
    assert warning.code == "unknown_finish_reason" and "'tired'" in warning.message


async def test_an_answer_that_its_server_gave_up_is_asked_for_again(server: ProviderServer) -> None:
    server.answers = [body_of(CHAT, HALF, "insufficient_system_resource"), Answer(CHAT.body("Yes."), headers=JSON)]
    assert (await asked(CHAT, server, settings={"stream": False})).output == "Yes."


# --- calls ------------------------------------------------------------------------------------------------------------


def cut_call(wire: WireFormat, written: str) -> Answer:
    if wire is CHAT:
        call = chat_streams.piece(0, "wipe", written, "call_1")
        return Answer(chat_streams.stream(call, chat_streams.chunk(finish="length"), chat_streams.USAGE_CHUNK))
    if wire is RESPONSES:
        call_item = {**responses_wire.call("call_1", written, name="wipe"), "status": "incomplete"}
        ended = responses_wire.response(
            call_item, status="incomplete", incomplete_details={"reason": "max_output_tokens"}
        )
        return Answer(json.dumps(ended).encode(), headers=JSON)
    if wire is MESSAGES:
        block = anthropic_samples.call_block(0, "toolu_1", "wipe", written)
        return Answer(
            anthropic_samples.sse([anthropic_samples.started(), *block, *anthropic_samples.ended("max_tokens")])
        )
    call = {"functionCall": {"name": "wipe", "willContinue": True}}
    return Answer(
        gemini_samples.sse([gemini_samples.answer(call, finish=None), gemini_samples.answer(finish="MAX_TOKENS")])
    )


@pytest.mark.parametrize("written", ['{"path": "/ho', ""])
@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_a_call_that_was_cut_off_is_never_run(wire: WireFormat, written: str, server: ProviderServer) -> None:
    wiped: list[str] = []

    @tool(effect="irreversible")
    def wipe(path: str = "/") -> str:
        wiped.append(path)
        return "wiped"

    server.answers = [cut_call(wire, written), Answer(wire.body("Nothing to do."), headers=JSON)]
    result = await asked(wire, server, tools=[wipe])
    assert (result.status, wiped, len(server.asked)) == ("completed", [], 2)
    (failed,) = of_kind(result, ToolFailed)
    assert "cut off" in failed.message


# --- answers of a type ------------------------------------------------------------------------------------------------


async def test_a_typed_answer_that_is_cut_off_is_asked_for_again_with_more_room(server: ProviderServer) -> None:
    server.answers = [body_of(CHAT, "[1, 2", "length"), Answer(CHAT.body("[1, 2, 3]"), headers=JSON)]
    result = await asked(CHAT, server, output_type=list[int], settings={"stream": False})
    assert result.output == [1, 2, 3]
    assert [each.body["max_tokens"] for each in server.asked] == [50, 200]


async def test_it_is_asked_for_once_and_no_more(server: ProviderServer) -> None:
    server.always = body_of(CHAT, "12", "length")
    result = await asked(CHAT, server, output_type=int, settings={"stream": False})
    assert (result.status, result.stop_reason, result.final_content) == ("incomplete", "cut_off", "12")
    assert len(server.asked) == 2


async def test_where_there_is_no_more_room_it_is_not_asked_for_again(server: ProviderServer) -> None:
    server.always = body_of(CHAT, "[1, 2", "length")
    model = CHAT.model(server.url, profile={"max_output": 50})
    result = await run(Agent("s", model, output_type=list[int], settings={"stream": False}), "hi")
    assert (result.status, result.stop_reason, len(server.asked)) == ("incomplete", "cut_off", 1)


# --- children ---------------------------------------------------------------------------------------------------------


async def test_a_subtask_that_is_cut_off_tells_its_parent(server: ProviderServer) -> None:
    arguments = json.dumps({"title": "Look", "instructions": "Look it up."})
    call = chat_streams.piece(0, "run_subtask", arguments, "call_1")
    server.answers = [
        Answer(chat_streams.stream(call, chat_streams.chunk(finish="tool_calls"), chat_streams.USAGE_CHUNK)),
        stream_of(CHAT, HALF, "length"),
        stream_of(CHAT, "It was cut off.", "stop"),
    ]
    result = await asked(CHAT, server, subtasks=True)
    assert result.output == "It was cut off."
    (ended,) = of_kind(result, SubagentFailed)
    assert (ended.error, ended.details["output"]) == ("cut_off", HALF)
    assert "max_tokens" in server.asked[2].body["messages"][-1]["content"]


async def test_gemini_has_a_filter_of_its_own_name(server: ProviderServer) -> None:
    server.answers = [body_of(GEMINI, HALF, "MODEL_ARMOR")]
    result = await asked(GEMINI, server, settings={"stream": False})
    assert (result.status, result.stop_reason) == ("incomplete", "filtered")
