"""Sending only what is new: when it is certain, and otherwise the whole request; and never a trace of it elsewhere."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from kit.wires.model_requests import a_request, reply_of
from kit.wires.responses_server import ResponsesServer
from kit.wires.responses_wire import REASONING, WEATHER, call, message, response, words
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.frames import ProviderPromptCache, ProviderPromptFrame
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import Reply
from wakeful.ports import ModelRequest
from wakeful.providers.openai_responses import OpenAIResponses

ASKED = UserItem(parts=(Text("Weather in Paris?"),))
CALLS = response(REASONING, call("call_1"))
DONE = response(message(words("Sunny.")), id="resp_2")
NOT_FOUND = httpx2.Response(404, json={"error": {"code": "previous_response_not_found", "message": "gone"}})


def model_at(server: ResponsesServer, **changed: Any) -> OpenAIResponses:
    fields: dict[str, Any] = {"continues": True, **changed}
    return OpenAIResponses("gpt-5.5", base_url="http://127.0.0.1/v1", api_key="k", client=server.client, **fields)


def frame_of(agent_id: str) -> ProviderPromptFrame:
    cache = ProviderPromptCache(agent_id=agent_id, prompt_cache_key="wk-7", context_fingerprint="sha256:0")
    return ProviderPromptFrame(system_prompt="Be brief.", cache=cache)


def first_request() -> ModelRequest:
    return a_request(
        instructions="Be brief.",
        history=History([ASKED]),
        tools=(WEATHER,),
        frame=frame_of("agent-7"),
    )


def extend(request: ModelRequest, reply: Reply) -> None:
    results = [ToolItem(call_id=made.call_id, name=made.name, parts=(Text("22"),)) for made in reply.item.calls]
    request.history.extend([reply.item, *results])


async def two_rounds(
    change: Callable[[ModelRequest], None] = lambda request: None, first: dict[str, Any] = CALLS, **changed: Any
) -> ResponsesServer:
    """A request, its answer, and the next request, which `change` has made different."""
    server = ResponsesServer(first, DONE)
    model, request = model_at(server, **changed), first_request()
    extend(request, await reply_of(model, request))
    change(request)
    await reply_of(model, request)
    return server


@pytest.mark.spec("HOL-FRAME-11")
async def test_a_request_that_only_adds_sends_what_it_adds() -> None:
    for change in (_other_agent, _other_cache_key):
        elsewhere = await two_rounds(change)
        assert "previous_response_id" not in elsewhere.bodies[1], "a snapshot is of one agent and one key"
    server = await two_rounds()
    first, second = server.bodies
    assert "previous_response_id" not in first
    assert second["previous_response_id"] == "resp_1"
    assert second["input"] == [{"type": "function_call_output", "call_id": "call_1", "output": "22"}]
    assert second["instructions"] == "Be brief."
    assert second["tools"] == first["tools"]
    assert (first["store"], second["store"]) == (True, True)


async def test_the_next_turn_of_the_same_conversation_goes_on_too() -> None:
    server = ResponsesServer(DONE, CALLS)
    model, request = model_at(server), first_request()
    reply = await reply_of(model, request)
    later = first_request()
    later.turn_id = "turn_2"
    later.history.extend([reply.item, ASKED])
    await reply_of(model, later)
    assert server.bodies[1]["previous_response_id"] == "resp_2"
    assert len(server.inputs[1]) == 1


async def test_it_goes_on_from_the_newest_answer() -> None:
    server = ResponsesServer(CALLS, DONE, DONE)
    model, request = model_at(server), first_request()
    extend(request, await reply_of(model, request))
    extend(request, await reply_of(model, request))
    request.history.extend([UserItem(parts=(Text("And now?"),))])
    await reply_of(model, request)
    assert server.bodies[2]["previous_response_id"] == "resp_2"
    assert len(server.inputs[2]) == 1


async def test_it_is_off_unless_it_is_wanted() -> None:
    server = await two_rounds(continues=None)
    assert "previous_response_id" not in server.bodies[1]
    assert [entry["type"] for entry in server.inputs[1]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert server.bodies[1]["store"] is False


def _no_cache_key(request: ModelRequest) -> None:
    request.settings = ModelSettings(cache=False)


def _other_cache_key(request: ModelRequest) -> None:
    request.settings = ModelSettings(openai={"prompt_cache_key": "wk-8"})


def _no_frame(request: ModelRequest) -> None:
    request.frame = None


def _other_agent(request: ModelRequest) -> None:
    request.frame = frame_of("agent-8")


def _other_instructions(request: ModelRequest) -> None:
    request.instructions = "Be long."


def _other_tools(request: ModelRequest) -> None:
    schema = {"type": "object", "properties": {"town": {"type": "string"}}}
    request.tools = (WEATHER.model_copy(update={"input_schema": schema}),)


def _other_settings(request: ModelRequest) -> None:
    request.settings = ModelSettings(thinking="high")


def _compacted(request: ModelRequest) -> None:
    request.history = History([UserItem(parts=(Text("Earlier: weather was asked for."),)), *request.history[1:]])


def _shorter(request: ModelRequest) -> None:
    request.history = History(request.history[:1])


def _other_answer(request: ModelRequest) -> None:
    request.history = History([request.history[0], ASKED, *request.history[2:]])


def _nothing_new(request: ModelRequest) -> None:
    request.history = History(request.history[:2])


@pytest.mark.parametrize(
    "change",
    [
        _no_cache_key,
        _other_cache_key,
        _no_frame,
        _other_agent,
        _other_instructions,
        _other_tools,
        _other_settings,
        _compacted,
        _shorter,
        _other_answer,
        _nothing_new,
    ],
)
@pytest.mark.spec("HOL-FRAME-12")
async def test_anything_but_a_strict_extension_is_sent_whole(change: Callable[[ModelRequest], None]) -> None:
    server = await two_rounds(change)
    assert "previous_response_id" not in server.bodies[1]
    assert server.inputs[1][0]["type"] == "message"
    unchanged = await two_rounds()
    assert "previous_response_id" in unchanged.bodies[1], "without the change it would have been continued"


@pytest.mark.spec("HOL-FRAME-12")
async def test_an_answer_without_an_id_is_continued_by_nothing() -> None:
    server = await two_rounds(first={**CALLS, "id": None})
    assert "previous_response_id" not in server.bodies[1]
    assert len(server.inputs[1]) == 4


@pytest.mark.spec("HOL-FRAME-12")
async def test_after_a_providers_error_the_whole_request_is_sent() -> None:
    server = ResponsesServer(CALLS, httpx2.Response(500, json={"error": {"message": "oops"}}), DONE)
    model, request = model_at(server), first_request()
    extend(request, await reply_of(model, request))
    with pytest.raises(ModelFailure):
        await reply_of(model, request)
    assert (await reply_of(model, request)).item.text == "Sunny."
    assert ["previous_response_id" in body for body in server.bodies] == [False, True, False]
    assert len(server.inputs[2]) == 4


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.spec("HOL-FRAME-15")
async def test_what_the_provider_no_longer_has_is_sent_whole_within_the_attempt(status: int) -> None:
    gone = httpx2.Response(status, json={"error": {"code": "previous_response_not_found", "message": "gone"}})
    server = ResponsesServer(CALLS, gone, DONE)
    model, request = model_at(server), first_request()
    extend(request, await reply_of(model, request))
    assert (await reply_of(model, request)).item.text == "Sunny."
    assert ["previous_response_id" in body for body in server.bodies] == [False, True, False]
    assert [entry["type"] for entry in server.inputs[2]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]


async def test_a_whole_request_that_is_refused_is_not_sent_again() -> None:
    server = ResponsesServer(NOT_FOUND)
    with pytest.raises(ModelFailure) as failed:
        await reply_of(model_at(server), first_request())
    assert (failed.value.status, len(server.bodies)) == (404, 1)


@pytest.mark.spec("HOL-FRAME-15")
async def test_a_model_that_knows_nothing_of_earlier_requests_sends_the_same_conversation() -> None:
    """The state is the client's own: lost with it, and in no history."""
    server = ResponsesServer(CALLS, DONE, DONE)
    model, request = model_at(server), first_request()
    reply = await reply_of(model, request)
    extend(request, reply)
    await reply_of(model, request)
    fresh = first_request()
    extend(fresh, reply)
    assert list(fresh.history) == list(request.history)
    await reply_of(model_at(server), fresh)
    assert "previous_response_id" not in server.bodies[2]
    assert [*server.inputs[0], *server.inputs[2][1:3], *server.inputs[1]] == server.inputs[2]
    assert [entry["type"] for entry in server.inputs[2][1:3]] == ["reasoning", "function_call"]
    assert "id" not in server.inputs[2][1], "the whole request rests on nothing that is kept elsewhere"
