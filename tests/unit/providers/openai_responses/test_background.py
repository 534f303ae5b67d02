"""Background responses: created once, followed to their end, found again by id, and cancelled."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kit.wires.background_server import ANSWER, BackgroundServer, background_server
from kit.wires.loopback import nobody_listens
from kit.wires.model_requests import a_request
from kit.wires.responses_wire import WEATHER
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import History, UserItem
from wakeful.contracts.errors import ModelFailure, ResponseGone
from wakeful.contracts.models import ModelGlimpse, Reply, TextDelta
from wakeful.ports import Reattachable
from wakeful.providers.openai_responses import OpenAIResponses
from wakeful.providers.openai_responses.encode import CODEX_RULES, ResponsesEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.http import Timeouts
from wakeful.providers.wire.names import WireNames

ASKED = UserItem(parts=(Text("Hello?"),))


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    with background_server() as running:
        yield running


KEY = "sk-test-0123456789"


def model_of(server: BackgroundServer, name: str, **options: Any) -> OpenAIResponses:
    return OpenAIResponses(name, base_url=f"{server.url}/v1", api_key=KEY, **options)


def request_of(ids: list[str] | None = None, *, stream: bool = True, **settings: Any) -> Any:
    async def accepted(response_id: str) -> None:
        if ids is not None:
            ids.append(response_id)

    history = History([ASKED])
    return a_request(
        history=history, stream=stream, settings={"openai": {"background": True, **settings}}, accepted=accepted
    )


async def everything(pieces: Any) -> tuple[str, Reply]:
    """The words that were glimpsed, and the reply, which comes last and once."""
    *glimpses, reply = [piece async for piece in pieces]
    assert isinstance(reply, Reply)
    seen: list[ModelGlimpse] = glimpses
    return "".join(piece.text for piece in seen if isinstance(piece, TextDelta)), reply


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["steady", "cut", "polled"])
async def test_it_is_created_once_and_followed_to_its_end(server: BackgroundServer, name: str, stream: bool) -> None:
    ids: list[str] = []
    seen, reply = await everything(model_of(server, name).respond(request_of(ids, stream=stream)))
    assert (reply.item.text, reply.stop_reason) == (ANSWER, "end")
    assert reply.request_metadata["response_id"] == "resp_1"
    assert ids == ["resp_1"], "its id was told, once"
    assert len(server.world.created) == 1
    assert seen == (ANSWER if stream and name != "polled" else "")


async def test_a_broken_stream_goes_on_where_it_broke_and_shows_nothing_twice(server: BackgroundServer) -> None:
    seen, _ = await everything(model_of(server, "cut").respond(request_of()))
    continued = [asked for asked in server.world.asked if asked.startswith("GET")]
    assert seen == ANSWER
    assert continued[0] == "GET /v1/responses/resp_1?stream=true&starting_after=5"
    assert len(continued) > 1


async def test_a_stream_without_numbers_is_read_from_its_beginning(server: BackgroundServer) -> None:
    seen, reply = await everything(model_of(server, "unnumbered").respond(request_of()))
    assert ANSWER.startswith(seen) and 0 < len(seen) < len(ANSWER), "and what was shown is not shown again"
    assert reply.item.text == ANSWER
    assert "GET /v1/responses/resp_1?stream=true" in server.world.asked
    assert len(server.world.created) == 1


async def test_the_id_is_told_before_anything_else_is_waited_for(server: BackgroundServer) -> None:
    told, go_on = asyncio.Event(), asyncio.Event()

    async def accepted(response_id: str) -> None:
        told.set()
        await go_on.wait()

    request = request_of()
    request.accepted = accepted
    answer = asyncio.create_task(everything(model_of(server, "cut").respond(request)))
    await told.wait()
    assert server.world.asked == ["POST /v1/responses"]
    assert not answer.done()
    go_on.set()
    assert (await answer)[1].item.text == ANSWER


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_is_found_again_by_its_id_and_nothing_is_created(
    server: BackgroundServer, stream: bool
) -> None:
    first, second = model_of(server, "cut"), model_of(server, "cut")
    assert isinstance(second, Reattachable)
    await everything(first.respond(request_of()))
    seen, reply = await everything(second.reattach(request_of(stream=stream), "resp_1"))
    assert reply.item.text == ANSWER
    assert seen == (ANSWER if stream else "")
    assert len(server.world.created) == 1


async def test_reasoning_that_has_to_go_back_is_asked_for_again(server: BackgroundServer) -> None:
    model = model_of(server, "steady", profile={"reasoning": True})
    await everything(model.respond(request_of(stream=False)))
    assert server.world.bodies[0]["include"] == ["reasoning.encrypted_content"]
    assert server.world.asked[1] == "GET /v1/responses/resp_1?include%5B%5D=reasoning.encrypted_content"


async def test_an_id_that_the_provider_does_not_know_is_told_as_that(server: BackgroundServer) -> None:
    with pytest.raises(ResponseGone, match="does not have the response resp_77") as gone:
        await everything(model_of(server, "steady").reattach(request_of(), "resp_77"))
    assert (gone.value.status, gone.value.retryable) == (404, True)


async def test_a_response_that_is_lost_there_is_a_lost_attempt_and_not_sent_again(server: BackgroundServer) -> None:
    model = model_of(server, "forgets", continues=True)
    with pytest.raises(ResponseGone):
        await everything(model.respond(request_of()))
    assert len(server.world.created) == 1


async def test_a_response_that_failed_is_a_failure_at_once(server: BackgroundServer) -> None:
    with pytest.raises(ModelFailure, match="it broke") as failed:
        await everything(model_of(server, "fails").respond(request_of(stream=False)))
    assert failed.value.kind == "server_error"
    assert len(server.world.asked) == 2, "one to create it, one to ask for it"


async def test_nobody_waits_for_ever(server: BackgroundServer) -> None:
    patience = Timeouts(background=0.3, between_chunks=5)
    with pytest.raises(ModelFailure, match=r"resp_1 was not finished after 0\.3 s") as late:
        await everything(model_of(server, "endless", timeouts=patience).respond(request_of(stream=False)))
    assert (late.value.kind, late.value.retryable) == ("timeout", False)


async def test_a_provider_that_is_not_heard_of_any_more_is_a_lost_attempt() -> None:
    patience = Timeouts(between_chunks=0.4, connect=20)
    with nobody_listens() as port, pytest.raises(ModelFailure, match="nothing listens there") as lost:
        model = OpenAIResponses("steady", base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, timeouts=patience)
        await everything(model.reattach(request_of(), "resp_1"))
    assert (lost.value.kind, lost.value.stage) == ("connection", "connect")


async def test_cancelling_is_told_to_the_provider_and_one_that_is_over_is_no_failure(server: BackgroundServer) -> None:
    model = model_of(server, "endless")
    pieces = model.respond(request_of())
    assert isinstance(await anext(pieces), TextDelta)
    await model.abandon("resp_1")
    assert server.world.responses["resp_1"].cancelled
    await model.abandon("resp_99")
    await pieces.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("asked", "sent"), [(True, True), (False, None), (None, None)])
def test_the_request_says_so_and_lets_the_provider_keep_its_answer(asked: Any, sent: Any) -> None:
    encoder = ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames([WEATHER]))
    body = json.loads(
        b"".join(encoder.body(a_request(history=History([ASKED]), settings={"openai": {"background": asked}})))
    )
    assert (body.get("background"), body["store"]) == (sent, asked is True)


async def test_a_setting_that_is_neither_yes_nor_no_is_refused(server: BackgroundServer) -> None:
    with pytest.raises(ModelFailure, match=r"settings\.openai\.background is 'maybe'") as refused:
        await everything(model_of(server, "steady").respond(request_of(background="maybe")))
    assert refused.value.kind == "contract_error"
    assert server.world.asked == []


def test_a_backend_that_keeps_nothing_is_asked_without_and_that_is_reported() -> None:
    encoder = ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames([WEATHER]), rules=CODEX_RULES)
    request = a_request(history=History([ASKED]), stream=True, settings={"openai": {"background": True}})
    body = json.loads(b"".join(encoder.body(request)))
    assert ("background" in body, body["store"]) == (False, False)
    assert encoder.left_out(request) == ["openai.background"]
