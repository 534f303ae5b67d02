"""The model itself: what it sends where, what it takes for an answer, and what it never says."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from kit.wires.chat_streams import TOOLS, USAGE_CHUNK, chunk, piece, response, stream
from kit.wires.model_requests import a_request, pieces_of, reply_of
from wakeful import Agent, run, tool
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure, UnknownProvider
from wakeful.contracts.models import Reply, TextDelta
from wakeful.ports import Model
from wakeful.providers.endpoints import Endpoint, endpoint
from wakeful.providers.model_references import model_from_reference
from wakeful.providers.openai_chat import OpenAIChat

KEY = "sk-very-secret-0123456789"
HELLO = stream(chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk(finish="stop"), USAGE_CHUNK)
SAYS_HI = History([UserItem(parts=(Text("hi"),))])
EVENTS, JSON = {"content-type": "text/event-stream"}, {"content-type": "application/json"}


class Server:
    """Answers requests in this process, and keeps them."""

    def __init__(
        self, answer: bytes | Callable[[], AsyncIterator[bytes]], headers: dict[str, str], status: int = 200
    ) -> None:
        self.requests: list[httpx2.Request] = []
        self._answer = answer
        self._status = status
        self._headers = headers
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._handle))

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        content = self._answer if isinstance(self._answer, bytes) else self._answer()
        return httpx2.Response(self._status, headers=self._headers, content=content)

    def model(self, name: str = "model-1", **options: Any) -> OpenAIChat:
        given = {"base_url": "http://127.0.0.1:9/v1/", "api_key": KEY, "client": self.client, **options}
        return OpenAIChat(name, **given)

    @property
    def body(self) -> Any:
        return json.loads(self.requests[-1].content)


def asking(**fields: Any) -> Any:
    return a_request(**{"history": SAYS_HI, "stream": True, **fields})


async def test_a_stream_gives_glimpses_and_then_one_reply() -> None:
    server = Server(HELLO, {**EVENTS, "x-request-id": "req_1"})
    model: Model = server.model()
    *glimpses, reply = await pieces_of(model, asking(tools=TOOLS))
    assert glimpses == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(reply, Reply)
    assert (reply.item.text, reply.item.provider) == ("Hello", "openai-compatible@127.0.0.1:9")
    assert reply.usage is not None and reply.usage.total_tokens == 10
    assert reply.request_metadata["request_id"] == "req_1"
    (request,) = server.requests
    assert str(request.url) == "http://127.0.0.1:9/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-length"] == str(len(request.content))
    assert server.body["messages"] == [{"role": "user", "content": "hi"}]


async def test_not_streaming_gives_the_same_reply_and_no_glimpses() -> None:
    streamed = await reply_of(Server(HELLO, EVENTS).model(), asking())
    at_once = Server(response({"content": "Hello"}, usage=USAGE_CHUNK["usage"]), JSON)
    (reply,) = await pieces_of(at_once.model(), asking(stream=False))
    assert reply == streamed
    assert at_once.body["stream"] is False


async def test_a_server_that_answers_in_the_other_way_is_understood() -> None:
    (at_once,) = await pieces_of(Server(response({"content": "Hello"}), JSON).model(), asking(stream=True))
    (streamed,) = await pieces_of(Server(HELLO, EVENTS).model(), asking(stream=False))
    assert isinstance(at_once, Reply) and isinstance(streamed, Reply)
    assert at_once.item.text == streamed.item.text == "Hello"


async def test_the_stream_is_left_when_it_said_done() -> None:
    async def never_ending() -> AsyncIterator[bytes]:
        yield HELLO
        await asyncio.Event().wait()

    reply = await reply_of(Server(never_ending, EVENTS).model(), asking())
    assert reply.item.text == "Hello"


@pytest.mark.parametrize("cut", [0, 40, len(HELLO) // 2])
async def test_a_stream_that_ends_early_is_a_lost_attempt(cut: int) -> None:
    model = Server(HELLO[:cut], EVENTS).model()
    with pytest.raises(ModelFailure) as failed:
        await pieces_of(model, asking())
    assert failed.value.kind == "stream_interrupted"
    assert failed.value.diagnostics is not None
    assert failed.value.diagnostics.model_ref == "openai-compatible:model-1"


@pytest.mark.parametrize(
    "ending",
    [
        *(b"data: [DONE]", b"data: [DONE]\n", b"data:[DONE]\r\n", b"data: [DONE]\r"),
        *(b"event: message\ndata: [DONE]", b"id: 7\ndata: [DONE]\n", b": the end\ndata: [DONE]"),
    ],
)
async def test_a_stream_is_whole_without_the_blank_line_after_done(ending: bytes) -> None:
    without = HELLO[: HELLO.index(b"data: [DONE]")]
    assert (await reply_of(Server(without + ending, EVENTS).model(), asking())).item.text == "Hello"


async def test_no_other_event_is_whole_without_its_blank_line() -> None:
    cut = stream(chunk({"content": "Hel"}), done=False) + b"data: " + json.dumps(chunk(finish="stop")).encode()
    with pytest.raises(ModelFailure, match="without a finish reason"):
        await reply_of(Server(cut, EVENTS).model(quirks={"needs_done": False}), asking())


@pytest.mark.parametrize("cut", [HELLO.index(b"data: [DONE]"), HELLO.index(b"[DONE]"), HELLO.index(b"]\n\n")])
async def test_a_body_that_ends_as_announced_after_its_finish_reason_is_whole(cut: int) -> None:
    assert (await reply_of(Server(HELLO[:cut], EVENTS).model(), asking())).item.text == "Hello"


async def test_what_was_left_out_and_what_was_rewritten_is_in_the_metadata() -> None:
    odd = TOOLS[0].model_copy(update={"input_schema": {"type": "object", "properties": {"a": {"type": "array"}}}})
    model = Server(HELLO, EVENTS).model(profile={"sampling": ["top_p"]})
    reply = await reply_of(model, asking(tools=(odd,), settings={"temperature": 1, "top_p": 0.5}))
    assert reply.request_metadata["left_out"] == ["temperature"]
    assert reply.request_metadata["schema_changes"][0].startswith("client/look_up: ")


async def test_calls_come_back_under_their_own_names() -> None:
    data = stream(piece(0, "client__look_up", '{"word":"x"}', "call_a"), chunk(finish="tool_calls"))
    server = Server(data, EVENTS)
    reply = await reply_of(server.model(), asking(tools=TOOLS))
    assert [(call.name, call.arguments) for call in reply.item.calls] == [("client/look_up", {"word": "x"})]
    assert server.body["tools"][0]["function"]["name"] == "client__look_up"


async def test_the_key_is_in_its_header_and_nowhere_else() -> None:
    echo = stream({"error": {"message": f"bad key {KEY}", "type": "authentication_error"}})
    server = Server(echo, EVENTS)
    model = server.model()
    with pytest.raises(ModelFailure) as failed:
        await pieces_of(model, asking())
    shown = f"{failed.value} {failed.value.diagnostics!r} {model!r} {vars(model)!r}"
    assert KEY not in shown
    assert failed.value.kind == "auth_error"
    (request,) = server.requests
    assert KEY.encode() not in request.content and KEY not in str(request.url)


async def test_a_missing_key_names_its_variable_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    server = Server(HELLO, EVENTS)
    model = OpenAIChat("model-1", endpoint=endpoint("groq", settings={}), client=server.client)
    with pytest.raises(ModelFailure, match="GROQ_API_KEY") as failed:
        await pieces_of(model, asking())
    assert (failed.value.kind, server.requests) == ("auth_error", [])


async def test_a_refused_key_names_the_variable_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    server = Server(b'{"error": {"message": "Invalid API Key"}}', JSON, 401)
    model = OpenAIChat("model-1", endpoint=endpoint("groq", settings={}), client=server.client)
    with pytest.raises(ModelFailure, match="the key in GROQ_API_KEY") as failed:
        await pieces_of(model, asking())
    assert (failed.value.kind, failed.value.status) == ("auth_error", 401)


async def test_an_answer_other_than_success_is_a_failure_with_its_status() -> None:
    server = Server(b'{"error": {"message": "later"}}', {**JSON, "retry-after": "7"}, 429)
    with pytest.raises(ModelFailure) as failed:
        await pieces_of(server.model(), asking())
    assert (failed.value.kind, failed.value.status, failed.value.retry_after) == ("rate_limited", 429, 7.0)


async def test_a_turns_requests_share_one_encoder() -> None:
    server = Server(HELLO, EVENTS)
    model = server.model()
    history = History([UserItem(parts=(Text("hi"),))])
    for _ in range(2):
        reply = await reply_of(model, asking(history=history, tools=TOOLS, instructions="Be brief."))
        history.extend([reply.item, UserItem(parts=(Text("again"),))])
    first, second = (request.content for request in server.requests)
    shared = first[: first.index(b"]," + b'"stream"')]
    assert second.startswith(shared)


@pytest.mark.spec("LOOP-PROV-05")
async def test_two_requests_at_once_to_one_model_share_no_state() -> None:
    """Each stream stops in its middle until the other has come as far."""
    meeting = asyncio.Barrier(2)

    async def answer(request: httpx2.Request) -> httpx2.Response:
        word = json.loads(await request.aread())["messages"][0]["content"]

        async def pieces() -> AsyncIterator[bytes]:
            yield stream(chunk({"content": word}), piece(0, "add", '{"a":', f"id-{word}"), done=False)
            await meeting.wait()
            yield stream(piece(0, None, "1}"), chunk({"content": f" and {word}"}), chunk(finish="tool_calls"))

        return httpx2.Response(200, headers=EVENTS, content=pieces())

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    model = OpenAIChat("model-1", base_url="http://127.0.0.1:9/v1", client=client)
    asked = [asking(history=History([UserItem(parts=(Text(word),))]), tools=TOOLS) for word in ("one", "two")]
    replies = await asyncio.gather(*(reply_of(model, request) for request in asked))
    assert [reply.item.text for reply in replies] == ["one and one", "two and two"]
    assert [reply.item.calls[0].call_id for reply in replies] == ["id-one", "id-two"]


async def test_a_request_that_is_given_up_closes_its_stream() -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    class Stalled(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield stream(chunk({"content": "Hel"}), done=False)
            begun.set()
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            closed.set()

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=EVENTS, stream=Stalled())

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    model = OpenAIChat("model-1", base_url="http://127.0.0.1:9/v1", client=client)
    task = asyncio.create_task(pieces_of(model, asking()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()


async def test_an_agent_goes_from_call_to_answer(wakeful_store: str) -> None:
    """The pairing that the runtime makes, with an id that the server left out, is the pairing that is sent."""
    answers = [
        stream(piece(0, "add", '{"a": 1}'), piece(1, "add", '{"a": ', "y"), chunk(finish="tool_calls"), USAGE_CHUNK),
        stream(chunk({"content": "It is 2."}, "stop"), USAGE_CHUNK),
    ]
    bodies: list[Any] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(await request.aread()))
        return httpx2.Response(200, headers=EVENTS, content=answers[len(bodies) - 1])

    @tool(effect="pure")
    def add(a: int) -> int:
        """One more."""
        return a + 1

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    model = OpenAIChat("model-1", base_url="http://127.0.0.1:9/v1", client=client)
    agent = Agent("adder", model=model, tools=[add])
    result = await run(agent, "What is 1 + 1?", store=wakeful_store)
    assert result.output == "It is 2."
    _, assistant, first, second = bodies[1]["messages"]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert len(set(ids)) == 2 and all(ids)
    assert first["content"] == "2"
    assert json.loads(assistant["tool_calls"][1]["function"]["arguments"]) == {"malformed_arguments": '{"a": '}


# --- which endpoint, and how it speaks ---------------------------------------------------------------------------


def test_openais_reasoning_models_have_other_names_for_two_things(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    plain, reasoning = OpenAIChat("gpt-4o"), OpenAIChat("gpt-5.5")
    assert plain.ref == "openai:gpt-4o"
    assert (plain.dialect.system_role, plain.dialect.max_tokens_field) == ("system", "max_tokens")
    assert (reasoning.dialect.system_role, reasoning.dialect.max_tokens_field) == (
        "developer",
        "max_completion_tokens",
    )
    elsewhere = OpenAIChat("gpt-5.5", base_url="http://127.0.0.1:9/v1")
    assert elsewhere.dialect.system_role == "system"


def test_a_provider_by_name_keeps_its_name_and_habits_at_another_address() -> None:
    model = OpenAIChat("small", provider="mistral", base_url="http://127.0.0.1:9/v1", quirks={"needs_done": False})
    assert model.ref == "mistral:small"
    assert (model.dialect.call_ids, model.dialect.needs_done) == ("nine", False)
    assert "127.0.0.1:9" in repr(model)


def test_a_name_nobody_has_heard_of_needs_an_address() -> None:
    assert OpenAIChat("m", provider="acme", base_url="http://127.0.0.1:9/v1").ref == "acme:m"
    with pytest.raises(UnknownProvider, match="acme"):
        OpenAIChat("m", provider="acme")
    with pytest.raises(InvalidConfig, match="no quirk novel"):
        OpenAIChat("m", endpoint=Endpoint("acme", "openai_chat_completions", quirks={"novel": 1}))


def test_a_profile_is_given_whole_or_in_part() -> None:
    model = OpenAIChat("unheard-of", base_url="http://127.0.0.1:9/v1", profile={"images": True})
    assert model.profile.images and model.profile.tools
    assert OpenAIChat("m", base_url="http://127.0.0.1:9/v1", profile=model.profile).profile is model.profile


@pytest.mark.spec("HOL-PROV-05")
async def test_a_provider_id_of_ones_own_speaks_chat_completions_when_it_is_configured_to(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", KEY)
    seen: list[Any] = []

    def answer(request: Request) -> Response:
        seen.append((request.headers["authorization"], json.loads(request.get_data())))
        return Response(HELLO, content_type="text/event-stream")

    httpserver.expect_request("/api/chat/completions", method="POST").respond_with_handler(answer)
    settings = {
        "acme": {
            "transport": "openai_chat_completions",
            "base_url": httpserver.url_for("/api"),
            "key_env": "ACME_KEY",
        }
    }
    model = model_from_reference("acme:model-1", settings={"providers": settings})
    reply = await reply_of(model, asking(instructions="Be brief.", tools=TOOLS, settings={"max_tokens": 5}))
    assert (model.ref, reply.item.text, reply.item.provider) == ("acme:model-1", "Hello", "acme")
    ((authorization, body),) = seen
    assert authorization == f"Bearer {KEY}"
    assert (body["model"], body["max_tokens"], body["stream"]) == ("model-1", 5, True)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["tools"][0]["type"] == "function"
