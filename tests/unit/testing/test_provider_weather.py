"""Every kind of weather at the provider server, as a plain HTTP client meets it, and as a run does."""

import asyncio
import json
import socket
from collections.abc import Iterator
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from wakeful import Agent, run
from wakeful.errors import InvalidConfig
from wakeful.providers.wire.failures import retry_after
from wakeful.testing import ProviderServer, Weather
from wakeful.testing.provider_server import WORDS

ANSWER = "All the words of an answer that has a good many of them."
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
}
LAST = {
    "openai_chat": b"[DONE]",
    "openai_responses": b"response.completed",
    "anthropic": b"message_stop",
    "gemini": b'"finishReason":"STOP"',
}
COUNTS = {
    "openai_chat": b'"usage":{',
    "openai_responses": b'"usage":{',
    "anthropic": b'"message_delta"',
    "gemini": b'"usageMetadata":{',
}
every_wire = pytest.mark.parametrize("wire", list(PATHS))


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer([ANSWER]) as running:
        yield running


def body(wire: str, *, streams: bool = True) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Go on."}]
    if wire == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": "Go on."}]}]}
    if wire == "anthropic":
        return {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": messages, "stream": streams}
    if wire == "openai_responses":
        return {"model": "gpt-5.5", "input": "Go on.", "stream": streams}
    more = {"stream_options": {"include_usage": True}} if streams else {}
    return {"model": "gpt-5.5", "messages": messages, "stream": streams, **more}


def ask(server: ProviderServer, wire: str = "openai_chat", **options: Any) -> httpx2.Response:
    streams = options.pop("streams", True)
    path = PATHS[wire] if streams else PATHS[wire].replace(":streamG", ":g").partition("?")[0]
    with httpx2.Client(timeout=240) as client:
        return client.post(f"{server.url}{path}", json=body(wire, streams=streams))


def received(server: ProviderServer, wire: str = "openai_chat") -> tuple[bytes, bool]:
    """The bytes of a stream, and whether HTTP's own end of them came."""
    got = b""
    with (
        httpx2.Client(timeout=240) as client,
        client.stream("POST", f"{server.url}{PATHS[wire]}", json=body(wire)) as it,
    ):
        try:
            for piece in it.iter_raw():
                got += piece
        except httpx2.RemoteProtocolError:
            return got, False
    return got, True


@every_wire
@pytest.mark.parametrize(
    ("word", "statuses"),
    [
        ("429", {429}),
        ("quota", {429, 400}),
        ("500", {500}),
        ("502", {502}),
        ("503", {503}),
        ("504", {504}),
        ("529", {529, 503}),
        ("401", {401, 400}),
        ("404", {404}),
        ("too_long", {400}),
    ],
)
def test_an_error_is_answered_once_in_the_vendors_status(
    server: ProviderServer, wire: str, word: str, statuses: set[int]
) -> None:
    server.weather.next(word)
    assert ask(server, wire).status_code in statuses
    assert ask(server, wire).status_code == 200
    assert [request.weather for request in server.requests] == [word, "ok"]
    assert server.requests[0].cost == 0 < server.requests[1].cost  # type: ignore[operator]


@every_wire
def test_a_provider_says_when_to_come_back(server: ProviderServer, wire: str) -> None:
    server.weather.next("429", "429 after=7", "429 date=100", "429 reset=30", "503 after=3")
    plain, seconds, date, reset, away = (ask(server, wire).headers for _ in range(5))
    assert retry_after(plain) is None
    assert (seconds["retry-after"], away["retry-after"]) == ("7", "3")
    assert parsedate_to_datetime(date["retry-after"]).timestamp() >= int(server.requests[2].at) + 100
    assert "retry-after" not in reset
    assert any("reset" in name for name in reset)


@every_wire
def test_a_cut_stream_has_no_end(server: ProviderServer, wire: str) -> None:
    server.weather.next("cut", "cut events=1", "cut bytes=10", "cut at=usage", "ok")
    half, first, ten, uncounted, all_of_it = (received(server, wire) for _ in range(5))
    assert [whole for _, whole in (half, first, ten, uncounted, all_of_it)] == [False] * 4 + [True]
    assert len(ten[0]) < len(first[0]) < len(half[0]) < len(uncounted[0]) < len(all_of_it[0])
    assert LAST[wire] not in uncounted[0] and LAST[wire] in all_of_it[0]
    assert COUNTS[wire] not in uncounted[0] and COUNTS[wire] in all_of_it[0]
    assert [request.delivered for request in server.requests] == [False] * 4 + [True]


@every_wire
def test_a_stream_can_stop_before_its_end_with_the_end_that_http_has(server: ProviderServer, wire: str) -> None:
    server.weather.next("cut at=usage end=clean")
    got, whole = received(server, wire)
    assert whole
    assert LAST[wire] not in got


@every_wire
def test_what_was_cut_is_billed_like_what_was_not(server: ProviderServer, wire: str) -> None:
    server.weather.next("cut events=1")
    received(server, wire)
    received(server, wire)
    cut, whole = (request.cost for request in server.requests)
    assert cut == whole != 0
    assert server.spent == cut + whole  # type: ignore[operator]


def test_an_answer_that_comes_at_once_is_cut_too(server: ProviderServer) -> None:
    server.weather.next("cut")
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(server, streams=False)


def test_nobody_listens_while_connections_are_refused_and_then_the_same_port_answers(server: ProviderServer) -> None:
    server.weather.outage(3600, "refused")
    while True:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", server.port)):
                break
    with pytest.raises(httpx2.ConnectError):
        ask(server)
    server.weather.clear()
    while True:
        try:
            assert ask(server).status_code == 200
            break
        except httpx2.TransportError:
            continue


def test_a_connection_that_stood_open_is_gone_when_connections_are_refused(server: ProviderServer) -> None:
    with httpx2.Client(timeout=240) as client:
        url = f"{server.url}{PATHS['openai_chat']}"
        assert client.post(url, json=body("openai_chat", streams=False)).status_code == 200
        server.weather.next("refused seconds=3600")
        with pytest.raises(httpx2.TransportError):
            client.post(url, json=body("openai_chat", streams=False))
        while True:
            with pytest.raises(httpx2.TransportError) as caught:
                client.post(url, json=body("openai_chat", streams=False))
            if isinstance(caught.value, httpx2.ConnectError):
                break


def test_a_reset_is_a_reset(server: ProviderServer) -> None:
    server.weather.next("reset")
    with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
        ask(server)
    assert server.requests[0].status is None
    assert server.spent == 0


def test_a_hang_gives_not_one_byte_and_one_in_the_middle_gives_half(server: ProviderServer) -> None:
    server.weather.next("hang seconds=0.05", "hang_inside seconds=0.05")
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(server)
    got, whole = received(server)
    assert got and not whole


def test_a_server_that_hangs_can_be_closed() -> None:
    with ProviderServer() as server, socket.create_connection(("127.0.0.1", server.port)) as waiting:
        server.weather.next("hang")
        said = json.dumps(body("openai_chat")).encode()
        waiting.sendall(b"POST %s HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % (PATHS["openai_chat"].encode(), len(said)))
        waiting.sendall(said)
        while not server.requests:
            pass


def test_bodies_that_are_none_come_with_200(server: ProviderServer) -> None:
    server.weather.next("half", "html", "empty")
    half, page, empty = (ask(server, streams=False) for _ in range(3))
    assert [each.status_code for each in (half, page, empty)] == [200, 200, 200]
    with pytest.raises(ValueError, match=r"."):
        half.json()
    assert page.headers["content-type"].startswith("text/html")
    assert empty.json()["choices"][0]["message"]["content"] == ""


@pytest.mark.parametrize(
    ("shape", "value"),
    [("float", 14.0), ("text", "14"), ("huge", 2**63), ("zero", 0), ("null", None)],
)
def test_counts_can_be_wrong_and_the_bill_is_right(server: ProviderServer, shape: str, value: object) -> None:
    server.weather.next(f"usage as={shape}", "usage as=missing")
    said = ask(server, streams=False).json()["usage"]["completion_tokens"]
    assert (said, type(said)) == (value, type(value))
    assert "usage" not in ask(server, streams=False).json()
    assert server.spent == 2 * server.requests[0].cost > 0  # type: ignore[operator]


def test_a_slow_answer_is_whole(server: ProviderServer) -> None:
    server.weather.next("drip seconds=0.001")
    got, whole = received(server)
    assert whole and LAST["openai_chat"] in got


def test_weather_comes_by_number_by_time_or_for_everything(server: ProviderServer) -> None:
    server.weather.schedule("429, ok, 4: 500, 0s-0s: 503")
    server.weather.always("529")
    assert [ask(server).status_code for _ in range(5)] == [429, 200, 529, 500, 529]
    server.weather.outage(3600)
    assert ask(server).status_code == 503
    server.weather.clear()
    server.weather.outage(3600, "401", after=3600)
    assert ask(server).status_code == 200


@pytest.mark.parametrize("wrong", ["coudy", "42", "429 afer=2", "429 after=soon", "cut end=dirty", "usage", "ok now"])
def test_weather_that_nobody_knows_is_an_error_where_it_is_written(wrong: str) -> None:
    weather = Weather()
    for announce in (weather.next, weather.always, weather.schedule, lambda word: weather.at(3, word)):
        with pytest.raises(InvalidConfig) as caught:
            announce(wrong)
        assert caught.value.hint


def test_every_kind_of_weather_is_named_in_the_guide_and_in_no_other_words(root: Any) -> None:
    page = (root / "docs/guides/testing.md").read_text()
    rows = {line.split("`")[1].split()[0] for line in page.splitlines() if line.startswith("| `")}
    assert set(WORDS) - {"ok"} <= rows


# --- a run in bad weather ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["openai:gpt-5.5", "anthropic:claude-haiku-4-5", "gemini:gemini-3.8-flash"])
@pytest.mark.parametrize("word", ["429 after=0.01", "503", "500", "529", "reset", "cut", "cut at=usage", "empty"])
async def test_a_run_comes_through_one_of_each(ref: str, word: str) -> None:
    async with ProviderServer([ANSWER]) as server:
        server.weather.next(word)
        result = await run(Agent("a", server.model(ref)), "Go on.")
        assert (result.output, len(server.requests)) == (ANSWER, 2)


async def test_lines_of_weather_in_a_prompt_strike_one_attempt_each() -> None:
    async with ProviderServer() as server:
        agent = Agent("a", server.model("openai:gpt-5.5"))
        for _ in range(2):  # another run is another conversation that begins the same way
            assert (await run(agent, "503\ncut\nanswer: Here I am.")).output == "Here I am."
        assert [request.weather for request in server.requests][:3] == ["503", "cut", "ok"]


async def test_many_ask_at_once() -> None:
    async with ProviderServer([ANSWER]) as server:
        agent = Agent("a", server.model("anthropic:claude-haiku-4-5"))
        results = await asyncio.gather(*(run(agent, f"Number {number}.") for number in range(40)))
        assert {result.output for result in results} == {ANSWER}
        assert sum(Decimal(str(result.cost_usd)) for result in results) == server.spent


async def test_a_run_comes_through_an_outage_of_three_seconds(tmp_path: Path) -> None:
    async with ProviderServer([ANSWER]) as server:
        server.weather.outage(3)
        result = await run(Agent("a", server.model("openai:gpt-5.5")), "Go on.", store=tmp_path / "runs.db")
        assert result.output == ANSWER
