"""The model behind the Responses API: one request, one answer, and a failure is a failure."""

import json
from typing import Any

import httpx2
import pytest
from pytest_httpserver import HTTPServer

from kit.wires.model_requests import a_request, pieces_of, reply_of
from kit.wires.responses_server import ResponsesServer, streamed
from kit.wires.responses_wire import REASONING, WEATHER, call, events_of, message, response, sse, words
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.models import ReasoningDelta, Reply, TextDelta
from wakeful.ports import Model
from wakeful.providers.endpoints import Endpoint
from wakeful.providers.openai_responses import OpenAIResponses
from wakeful.providers.wire.loop_client import close_shared_client

KEY = "sk-test-0123456789"
HELLO = response(REASONING, message(words("Hello!"), phase="final_answer"))
CODEX = Endpoint("openai-codex", "openai_responses", "http://127.0.0.1/codex", quirks={"codex": True})
ASKED = UserItem(parts=(Text("Hello?"),))


def model_at(server: ResponsesServer, **changed: Any) -> OpenAIResponses:
    fields: dict[str, Any] = {"base_url": "http://127.0.0.1/v1", "api_key": KEY, **changed}
    if "endpoint" in changed:
        del fields["base_url"]
    return OpenAIResponses("gpt-5.5", client=server.client, **fields)


async def failure_at(server: ResponsesServer, **changed: Any) -> ModelFailure:
    with pytest.raises(ModelFailure) as failed:
        await reply_of(model_at(server), a_request(history=History([ASKED]), **changed))
    return failed.value


def test_it_is_a_model() -> None:
    model: Model = OpenAIResponses("gpt-5.5", api_key=KEY)
    assert model.ref == "openai:gpt-5.5"
    assert repr(model) == "OpenAIResponses('openai:gpt-5.5' at api.openai.com)"


async def test_a_stream_gives_glimpses_and_then_its_reply() -> None:
    server = ResponsesServer(HELLO)
    request = a_request(instructions="Be brief.", history=History([ASKED]), stream=True)
    *glimpses, reply = await pieces_of(model_at(server), request)
    assert "".join(glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)) == "Hello!"
    assert isinstance(reply, Reply)
    assert (reply.item.text, reply.item.provider) == ("Hello!", "openai@127.0.0.1")
    assert reply.request_metadata["request_id"] == "req_1"
    (sent,) = server.requests
    assert (str(sent.url), sent.headers["authorization"]) == ("http://127.0.0.1/v1/responses", f"Bearer {KEY}")
    assert server.bodies[0]["instructions"] == "Be brief."


async def test_without_a_stream_the_facts_are_the_same() -> None:
    server = ResponsesServer(HELLO, HELLO)
    model, request = model_at(server), a_request(history=History([ASKED]))
    (whole,) = await pieces_of(model, request)
    request.stream = True
    assert await reply_of(model, request) == whole
    assert [body["stream"] for body in server.bodies] == [False, True]


async def test_what_came_decides_how_it_is_read() -> None:
    """Servers that ignore `stream` exist, in both directions."""
    server = ResponsesServer(httpx2.Response(200, json=HELLO), streamed(sse(events_of(HELLO))))
    model = model_at(server)
    assert (await reply_of(model, a_request(stream=True))).item.text == "Hello!"
    (reply,) = await pieces_of(model, a_request(stream=False))
    assert isinstance(reply, Reply)
    assert reply.item.text == "Hello!"


async def test_calls_come_back_under_their_own_names() -> None:
    server = ResponsesServer(response(call("call_1"), call("call_2")))
    reply = await reply_of(model_at(server), a_request(tools=(WEATHER,), stream=True))
    assert [made.name for made in reply.item.calls] == ["client/get_weather"] * 2


async def test_a_stream_without_its_end_is_a_lost_attempt() -> None:
    server = ResponsesServer(streamed(sse(events_of(HELLO)[:-1])))
    lost = await failure_at(server, stream=True)
    assert (lost.kind, lost.stage) == ("stream_interrupted", "body")


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {"code": "invalid_api_key", "message": f"Incorrect API key provided: {KEY}"}, "auth_error"),
        (429, {"code": "rate_limit_exceeded", "message": "slow"}, "rate_limited"),
        (400, {"code": "context_length_exceeded", "message": "long"}, "context_length_exceeded"),
        (500, {"message": "oops"}, "server_error"),
    ],
)
async def test_a_status_is_a_failure_of_its_kind_and_never_shows_the_key(status: int, error: Any, kind: str) -> None:
    server = ResponsesServer(httpx2.Response(status, json={"error": error}, headers={"retry-after": "3"}))
    lost = await failure_at(server)
    assert (lost.kind, lost.status, lost.retry_after) == (kind, status, 3.0)
    assert KEY not in f"{lost!r} {lost} {lost.diagnostics!r}"


async def test_an_error_in_the_stream_never_shows_the_key() -> None:
    error = {"type": "error", "code": "server_error", "message": f"the key {KEY} broke us"}
    lost = await failure_at(ResponsesServer(streamed(sse([error]))), stream=True)
    assert (lost.kind, KEY in lost.message) == ("server_error", False)
    assert lost.diagnostics is not None
    assert lost.diagnostics.model_ref == "openai:gpt-5.5"


async def test_a_server_that_wants_the_ids_of_its_items_gets_them() -> None:
    server = ResponsesServer(HELLO, HELLO)
    kept = Endpoint("mine", "openai_responses", "http://127.0.0.1/v1", quirks={"item_ids": True})
    model, request = model_at(server, endpoint=kept), a_request(history=History([ASKED]))
    request.history.extend([(await reply_of(model, request)).item, ASKED])
    await reply_of(model, request)
    assert server.inputs[1][1:3] == HELLO["output"]


async def test_what_was_left_out_and_rewritten_is_noted_in_the_reply() -> None:
    odd = WEATHER.model_copy(update={"input_schema": {**WEATHER.input_schema, "$schema": "https://json-schema.org"}})
    server = ResponsesServer(HELLO, HELLO)
    model = model_at(server)
    first = await reply_of(model, a_request(tools=(odd,), settings={"temperature": 0.1}))
    assert first.request_metadata["left_out"] == ["temperature"]
    assert any("$schema" in change for change in first.request_metadata["schema_changes"])
    later = await reply_of(model, a_request(answered=1, tools=(odd,), settings={"temperature": 0.1}))
    assert "schema_changes" not in later.request_metadata, "said once in a turn"


async def test_the_environments_key_does_not_go_to_an_address_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = ResponsesServer(HELLO)
    await reply_of(model_at(server, api_key=None), a_request())
    assert "authorization" not in server.requests[0].headers


async def test_a_missing_key_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = ResponsesServer()
    with pytest.raises(ModelFailure, match="OPENAI_API_KEY") as failed:
        await reply_of(OpenAIResponses("gpt-5.5", client=server.client), a_request())
    assert (failed.value.kind, server.bodies) == ("auth_error", [])


async def test_an_unknown_model_is_told_with_near_names() -> None:
    error = {"code": "model_not_found", "message": "The model 'gpt-5.55' does not exist"}
    server = ResponsesServer(httpx2.Response(404, json={"error": error}))
    model = OpenAIResponses("gpt-5.55", base_url="http://127.0.0.1/v1", client=server.client)
    with pytest.raises(ModelFailure, match=r"Did you mean gpt-5\.5"):
        await reply_of(model, a_request())


async def test_headers_of_ones_own_are_sent_and_never_shown() -> None:
    server = ResponsesServer(httpx2.Response(500, json={"error": {"message": "bad x-account acct-secret-1"}}))
    model = model_at(server, headers={"X-Account": "acct-secret-1"})
    with pytest.raises(ModelFailure) as failed:
        await reply_of(model, a_request())
    assert server.requests[0].headers["x-account"] == "acct-secret-1"
    assert "acct-secret-1" not in f"{failed.value} {failed.value.diagnostics!r} {model!r}"


def test_an_unknown_quirk_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="no quirk 'sings'"):
        OpenAIResponses("x", endpoint=Endpoint("mine", "openai_responses", "http://127.0.0.1", quirks={"sings": 1}))


async def test_a_reader_that_leaves_early_leaves_nothing_open() -> None:
    server = ResponsesServer(HELLO)
    pieces = model_at(server).respond(a_request(stream=True))
    assert isinstance(await anext(pieces), ReasoningDelta)
    await pieces.aclose()  # type: ignore[attr-defined]
    with pytest.raises(StopAsyncIteration):
        await anext(pieces)


@pytest.mark.spec("LOOP-PROV-05")
async def test_two_requests_at_once_share_nothing() -> None:
    other = response(message(words("Other.")))
    server = ResponsesServer(HELLO, other)
    model = model_at(server)
    first, second = model.respond(a_request(stream=True)), model.respond(a_request(stream=True))
    seen: list[list[Any]] = [[], []]
    for _ in range(20):
        for pieces, into in zip((first, second), seen, strict=True):
            into.extend([piece async for piece in _next(pieces)])
    assert [into[-1].item.text for into in seen] == ["Hello!", "Other."]


async def test_over_a_real_connection(httpserver: HTTPServer) -> None:
    content = sse(events_of(HELLO))
    httpserver.expect_request("/v1/responses", method="POST").respond_with_data(
        content, content_type="text/event-stream"
    )
    model = OpenAIResponses("gpt-5.5", base_url=httpserver.url_for("/v1"), api_key=KEY)
    reply = await reply_of(model, a_request(history=History([ASKED]), stream=True))
    assert reply.item.text == "Hello!"
    (received, _) = httpserver.log[0]
    assert json.loads(received.get_data())["input"][0]["content"][0]["text"] == "Hello?"
    await close_shared_client()


# --- openai-codex -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-PROV-04", "HOL-PROV-06")
async def test_codex_streams_whatever_is_asked_and_gives_the_reply_every_provider_gives() -> None:
    server = ResponsesServer({**HELLO, "output": HELLO["output"]}, HELLO, HELLO)
    codex = model_at(server, endpoint=CODEX)
    streaming = await pieces_of(codex, a_request(stream=True))
    silent = await pieces_of(codex, a_request(stream=False))
    assert [body["stream"] for body in server.bodies] == [True, True], "there is no other way"
    assert len(silent) == 1, "nobody watches, nothing is shown"
    usual = await reply_of(model_at(server), a_request(stream=False))
    (reply,) = silent
    assert isinstance(reply, Reply)
    assert isinstance(streaming[-1], Reply)
    assert streaming[-1].item == reply.item
    assert [part.type for part in reply.item.parts] == [part.type for part in usual.item.parts]
    assert (reply.item.text, reply.usage, reply.stop_reason) == (usual.item.text, usual.usage, usual.stop_reason)
    assert reply.request_metadata["left_out"] == ["stream=false"]


def test_codex_stores_nothing_that_could_be_continued() -> None:
    with pytest.raises(InvalidConfig, match="stores no answers"):
        OpenAIResponses("gpt-5.5-codex", endpoint=CODEX, continues=True)


@pytest.mark.spec("HOL-PROV-09")
async def test_codex_output_is_rebuilt_from_what_was_streamed() -> None:
    ended = {**HELLO, "output": []}
    server = ResponsesServer(streamed(sse(events_of(ended, streamed=HELLO["output"]))), HELLO)
    codex = model_at(server, endpoint=CODEX)
    rebuilt = await reply_of(codex, a_request(stream=True))
    assert rebuilt.item == (await reply_of(codex, a_request(stream=True))).item
    assert rebuilt.item.text == "Hello!"


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (response(status="failed", error={"code": "usage_limit_reached", "message": "later"}), "quota_exhausted"),
        (
            response(status="failed", error={"code": "context_length_exceeded", "message": "l"}),
            "context_length_exceeded",
        ),
    ],
)
@pytest.mark.spec("HOL-PROV-10")
async def test_codex_failures_are_what_they_say(ended: dict[str, Any], kind: str) -> None:
    with pytest.raises(ModelFailure) as failed:
        await reply_of(model_at(ResponsesServer(ended), endpoint=CODEX), a_request(stream=True))
    assert failed.value.kind == kind


async def _next(pieces: Any) -> Any:
    try:
        yield await anext(pieces)
    except StopAsyncIteration:
        return
