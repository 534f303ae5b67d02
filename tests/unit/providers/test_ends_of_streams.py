"""Ends of chat answers as servers write them, over HTTP: what is proof of an end, what is none, and errors in words."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires import chat_streams
from kit.wires.provider_server import JSON, Answer, ProviderServer
from kit.wires.provider_server import serving as providing
from kit.wires.wire_formats import ALL, CHAT, WireFormat
from wakeful import Agent, Retry, RunResult, run, tool
from wakeful.contracts.events import ModelFailed, ToolResult

from .wire.servers import Conversation, serving

SAID, END = chat_streams.chunk({"content": "Yes."}), chat_streams.chunk(finish="stop")


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with providing() as it:
        yield it


async def asked(url: str, wire: WireFormat = CHAT, **more: Any) -> RunResult[Any]:
    return await run(Agent("s", wire.model(url), retry=Retry(patience=0), **more), "hi")


@asynccontextmanager
async def unframed(body: bytes) -> AsyncIterator[str]:
    """A server that says how long its body is by closing the connection: that may be its end, or may not."""

    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.say(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + body
        )
        conversation.writer.close()

    async with serving(talk) as it:
        yield it.url


@pytest.mark.parametrize(
    "body",
    [
        chat_streams.stream(SAID, END, done=False),  # Perplexity, GPUStack
        chat_streams.stream(SAID),  # Snowflake, Novita behind OpenRouter
        chat_streams.stream(SAID, END),
    ],
)
async def test_two_signs_of_an_end_are_proof_of_it(body: bytes, server: ProviderServer) -> None:
    server.answers = [Answer(body)]
    assert (await asked(server.url)).output == "Yes." and len(server.asked) == 1


async def test_a_body_that_just_ends_is_not_believed(server: ProviderServer) -> None:
    server.always = Answer(chat_streams.stream(SAID, done=False))
    result = await asked(server.url)
    assert (result.status, result.final_content) == ("failed", "")
    assert {event.failure_kind for event in of_kind(result, ModelFailed)} == {"stream_interrupted"}


@pytest.mark.parametrize("body", [chat_streams.stream(SAID, END, done=False), chat_streams.stream(SAID)])
async def test_a_connection_that_closes_is_no_sign(body: bytes) -> None:
    async with unframed(body) as url:
        assert (await asked(url)).status == "failed"


async def test_a_whole_object_without_a_finish_reason_is_whole(server: ProviderServer) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}]}
    server.answers = [Answer(json.dumps(body).encode(), headers=JSON)]
    result = await asked(server.url, settings={"stream": False})
    assert (result.output, result.finish_reason) == ("Yes.", None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'error: {"code":500,"message":"context shift is disabled","type":"server_error"}\n\n', "context shift is"),
        (b'error: {"error":{"message":"the worker died","type":"server_error"}}\n\n', "the worker died"),
        (b"error: no slot is free\n\n", "no slot is free"),
    ],
)
async def test_an_error_line_keeps_its_words(line: bytes, words: str, server: ProviderServer) -> None:
    server.always = Answer(chat_streams.stream(SAID, done=False) + line)
    result = await asked(server.url)
    assert result.status == "failed" and words in result.message


@pytest.mark.parametrize("broken", [b'{"choices": [{"ind', b"<html><body>Bad gateway</body></html>"])
@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_a_body_that_is_no_answer_is_asked_for_again(
    wire: WireFormat, broken: bytes, server: ProviderServer
) -> None:
    kind = {"content-type": "text/html"} if broken[:1] == b"<" else JSON
    server.answers = [Answer(broken, headers=kind), Answer(wire.body("Yes."), headers=JSON)]
    assert (await asked(server.url, wire, settings={"stream": False})).output == "Yes."


async def test_a_text_that_is_exactly_a_number_is_taken_for_one(server: ProviderServer) -> None:
    seen: list[Any] = []

    @tool(effect="pure")
    def calc(x: int, factor: float | None = None, exact: bool = False, name: str = "") -> str:
        seen.append((x, factor, exact, name))
        return "done"

    def call(**arguments: Any) -> Answer:
        piece = chat_streams.piece(0, "calc", json.dumps(arguments), "call_1")
        return Answer(chat_streams.stream(piece, chat_streams.chunk(finish="tool_calls")))

    good = call(x="5", factor="2.5", exact="true", name="7")
    server.answers = [good, call(x="5 apples"), call(x="05"), Answer(chat_streams.stream(SAID, END))]
    result = await asked(server.url, tools=[calc])
    assert (result.status, seen) == ("completed", [(5, 2.5, True, "7")])
    assert len(of_kind(result, ToolResult)) == 1
