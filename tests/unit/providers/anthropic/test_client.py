"""The Messages endpoint as a Model: what goes over the wire, and what becomes of what comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.anthropic_samples import WEATHER, block, call_block, ended, sse, started, text_block
from kit.wires.model_requests import a_request, pieces_of, reply_of
from wakeful import Agent, run, tool
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import ModelCompleted
from wakeful.contracts.models import Reply, TextDelta
from wakeful.providers.anthropic import AnthropicMessages
from wakeful.providers.endpoints import BUILT_IN, Endpoint
from wakeful.store.memory import MemoryStore

KEY = "sk-ant-test-0123456789abcdef"
HELLO = [started(), *text_block(0, "Hel", "lo"), *ended()]


class Server:
    """Answers in order, and remembers what it was asked."""

    def __init__(self, *answers: bytes | httpx2.Response) -> None:
        self._answers = list(answers)
        self.asked: list[httpx2.Request] = []
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, httpx2.Response):
            return answer
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream", "request-id": "req_1"}, content=answer
        )

    def body(self, number: int = 0) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.asked[number].content)
        return body

    def model(self, name: str = "claude-haiku-4-5", **options: Any) -> AnthropicMessages:
        return AnthropicMessages(name, **{"api_key": KEY, "client": self.client, **options})


def hi(**changed: Any) -> Any:
    return a_request(history=History([UserItem(parts=(Text("Hi"),))]), **changed)


async def test_a_stream_is_glimpses_and_then_the_reply() -> None:
    server = Server(sse(HELLO))
    *glimpses, reply = await pieces_of(server.model(), hi(stream=True))
    assert glimpses == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(reply, Reply)
    assert (reply.item.text, reply.request_metadata["request_id"]) == ("Hello", "req_1")
    request = server.asked[0]
    assert (request.method, str(request.url)) == ("POST", "https://api.anthropic.com/v1/messages")
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in request.headers
    assert server.body()["stream"] is True


@pytest.mark.spec("HOL-PROV-03")
async def test_without_streaming_it_is_the_same_reply() -> None:
    message = {**started()["message"], "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn"}
    message["usage"] = {**message["usage"], "output_tokens": 7}
    at_once = httpx2.Response(200, headers={"request-id": "req_1"}, json=message)
    server = Server(sse(HELLO), at_once)
    streamed = await reply_of(server.model(), hi(stream=True))
    assert await reply_of(server.model(), hi(stream=False)) == streamed
    assert str(server.asked[1].url) == "https://api.anthropic.com/v1/messages"
    assert server.body(1)["stream"] is False


@pytest.mark.parametrize("stream", [True, False])
async def test_a_server_that_does_the_other_thing_is_understood(stream: bool) -> None:
    message = {**started()["message"], "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn"}
    server = Server(httpx2.Response(200, json=message) if stream else sse(HELLO))
    *_, reply = await pieces_of(server.model(), hi(stream=stream))
    assert isinstance(reply, Reply) and reply.item.text == "Hello"


async def test_a_page_instead_of_an_answer_is_a_lost_attempt() -> None:
    server = Server(httpx2.Response(200, html="<html>Log in to this network</html>"))
    with pytest.raises(ModelFailure) as raised:
        await pieces_of(server.model(), hi(stream=True))
    assert raised.value.kind == "invalid_response"


async def test_the_newer_version_takes_a_bearer_token_and_no_sampling() -> None:
    server = Server(sse(HELLO))
    model = server.model(api_version="2026-10-21")
    reply = await reply_of(
        model, hi(stream=True, settings={"temperature": 0.5, "top_p": 0.9, "anthropic": {"top_k": 3}})
    )
    request = server.asked[0]
    assert (request.headers["authorization"], request.headers["anthropic-version"]) == (f"Bearer {KEY}", "2026-10-21")
    assert "x-api-key" not in request.headers
    assert not {"temperature", "top_p", "top_k"} & server.body().keys()
    assert reply.request_metadata["left_out"] == ["temperature", "top_p", "anthropic.top_k"]


async def test_the_older_version_takes_sampling_and_reports_nothing() -> None:
    server = Server(sse(HELLO))
    reply = await reply_of(server.model(), hi(stream=True, settings={"temperature": 0.5}))
    assert server.body()["temperature"] == 0.5
    assert "left_out" not in reply.request_metadata


async def test_a_compatible_server_may_want_the_key_as_it_was_with_a_newer_version() -> None:
    server = Server(sse(HELLO))
    model = server.model(api_version="2026-10-21", auth="x-api-key", base_url="http://127.0.0.1:9/v1")
    await reply_of(model, hi(stream=True))
    assert server.asked[0].headers["x-api-key"] == KEY
    assert str(server.asked[0].url) == "http://127.0.0.1:9/v1/messages"


async def test_a_key_from_the_environment_goes_to_its_own_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server = Server(sse(HELLO), sse(HELLO))
    await reply_of(server.model(api_key=None), hi(stream=True))
    assert server.asked[0].headers["x-api-key"] == KEY
    await reply_of(server.model(api_key=None, base_url="http://127.0.0.1:9"), hi(stream=True))
    assert KEY not in str(server.asked[1].headers.raw)


async def test_a_missing_key_is_an_attempt_that_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    server = Server(sse(HELLO))
    with pytest.raises(ModelFailure, match="ANTHROPIC_API_KEY") as raised:
        await pieces_of(server.model(api_key=None), hi(stream=True))
    assert (raised.value.kind, server.asked) == ("auth_error", [])


def test_a_key_is_in_no_representation() -> None:
    assert KEY not in repr(Server().model())


async def test_a_configured_provider_gives_its_name_and_its_headers() -> None:
    server = Server(sse(HELLO))
    mine = Endpoint(
        "mine", "anthropic_messages", "http://127.0.0.1:9", auth="none", headers={"anthropic-beta": "new-thing"}
    )
    model = server.model(api_key=None, endpoint=mine)
    reply = await reply_of(model, hi(stream=True))
    assert (model.ref, reply.item.provider) == ("mine:claude-haiku-4-5", "mine")
    assert server.asked[0].headers["anthropic-beta"] == "new-thing"
    assert BUILT_IN["anthropic"].headers == {}


@pytest.mark.parametrize("length", range(len(HELLO)))
async def test_a_stream_that_ends_early_is_a_lost_attempt(length: int) -> None:
    server = Server(sse(HELLO[:length]))
    with pytest.raises(ModelFailure) as raised:
        await pieces_of(server.model(), hi(stream=True))
    assert raised.value.kind == "stream_interrupted"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, "invalid_request_error", "contract_error"),
        (401, "authentication_error", "auth_error"),
        (429, "rate_limit_error", "rate_limited"),
        (500, "api_error", "server_error"),
        (529, "overloaded_error", "overloaded"),
    ],
)
async def test_a_refused_request_is_the_failure_it_says(status: int, error: str, kind: str) -> None:
    said = json.dumps({"type": "error", "error": {"type": error, "message": f"no, {KEY}"}}).encode()
    server = Server(httpx2.Response(status, headers={"retry-after": "3"}, content=said))
    with pytest.raises(ModelFailure) as raised:
        await pieces_of(server.model(), hi(stream=True))
    assert (raised.value.kind, raised.value.status, raised.value.retry_after) == (kind, status, 3.0)
    assert KEY not in f"{raised.value.message}{raised.value.diagnostics}"


async def test_an_error_inside_a_stream_never_repeats_the_key() -> None:
    broken = {"type": "error", "error": {"type": "overloaded_error", "message": f"{KEY} is busy"}}
    server = Server(sse([started(), *text_block(0, "half"), broken]))
    with pytest.raises(ModelFailure) as raised:
        await pieces_of(server.model(), hi(stream=True))
    assert raised.value.kind == "overloaded"
    assert KEY not in str(raised.value)


async def test_an_answer_that_fits_the_sent_schema_comes_back_as_the_asked_one() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}, "required": ["n"]}
    server = Server(sse([started(), *text_block(0, '{"n": 1, "note": null}'), *ended()]))
    reply = await reply_of(server.model(), hi(stream=True, output_schema=schema))
    assert server.body()["output_config"]["format"]["schema"]["required"] == ["n", "note"]
    assert json.loads(reply.item.text) == {"n": 1}


# --- through the engine -----------------------------------------------------------------------------------------------


@tool(name="get_weather", effect="pure")
async def get_weather(city: str) -> str:
    """Get current weather for a city."""
    return f"{city}: sunny"


async def test_parallel_calls_are_answered_in_one_message() -> None:
    calls = [
        started(),
        *call_block(0, "toolu_1", "get_weather", '{"city": "Paris"}'),
        *call_block(1, "toolu_2", "get_weather", '{"city": "Rome"}'),
        *ended("tool_use"),
    ]
    server = Server(sse(calls), sse(HELLO))
    result = await run(Agent("weather", model=server.model(), tools=[get_weather]), "Weather?", store=MemoryStore())
    assert (result.status, result.output) == ("completed", "Hello")
    answers = server.body(1)["messages"][2]
    assert [block["tool_use_id"] for block in answers["content"]] == ["toolu_1", "toolu_2"]
    assert answers["role"] == "user"
    assert [event.token_usage.input_tokens for event in of_kind(result, ModelCompleted)] == [18, 18]


async def test_a_paused_turn_goes_on_with_the_reply_as_it_was() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    server = Server(sse([started(), *block(0, search), *ended("pause_turn")]), sse(HELLO))
    result = await run(Agent("searcher", model=server.model()), "Search!", store=MemoryStore())
    assert (result.status, result.output, len(server.asked)) == ("completed", "Hello", 2)
    assert [event.stop_reason for event in of_kind(result, ModelCompleted)] == ["pause", "end"]
    assert server.body(1)["messages"][1:] == [{"role": "assistant", "content": [search]}]


async def test_only_a_pause_goes_on() -> None:
    """Inversion: the same reply with another reason is the end of the turn, and nothing more is asked."""
    server = Server(sse([started(), *text_block(0, "That is all"), *ended("end_turn")]))
    result = await run(Agent("talker", model=server.model()), "Talk!", store=MemoryStore())
    assert (result.output, len(server.asked)) == ("That is all", 1)


async def test_a_lost_stream_is_asked_again_and_nothing_of_it_is_believed() -> None:
    server = Server(sse(HELLO[:3]), sse([started(), *text_block(0, "Whole"), *ended()]))
    result = await run(Agent("talker", model=server.model()), "Talk!", store=MemoryStore())
    assert (result.output, len(server.asked)) == ("Whole", 2)
    assert server.asked[0].content == server.asked[1].content


@pytest.mark.spec("LOOP-PROV-05")
async def test_streams_at_the_same_time_do_not_mix() -> None:
    """Every answer comes in pieces, and all of them take turns: no piece ends up in another's reply."""

    class Slowly(httpx2.AsyncByteStream):
        def __init__(self, whole: bytes) -> None:
            self._whole = whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for start in range(0, len(self._whole), 40):
                await asyncio.sleep(0)
                yield self._whole[start : start + 40]

    async def answer(request: httpx2.Request) -> httpx2.Response:
        words = json.loads(await request.aread())["messages"][0]["content"][0]["text"]
        stream = sse([started(), *text_block(0, *(f"{words} " * 5).split(" ")[:5]), *ended()])
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Slowly(stream))

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    model = AnthropicMessages("claude-haiku-4-5", api_key=KEY, client=client)

    async def ask(number: int) -> str:
        history = History([UserItem(parts=(Text(f"<{number}>"),))])
        return (await reply_of(model, a_request(history=history, stream=True))).item.text

    assert await asyncio.gather(*map(ask, range(20))) == [f"<{number}>" * 5 for number in range(20)]


def test_tools_of_one_turn_share_an_encoder() -> None:
    model = Server().model()
    tools = (WEATHER,)
    first = model._encoder(a_request(tools=tools))
    assert first is model._encoder(a_request(tools=tools)) is model._encoder(a_request(tools=(WEATHER,)))
    assert model._encoder(a_request()) is not first
    assert model._encoder(a_request(tools=tools, accepted_gap=frozenset({"vision"}))) is not first
