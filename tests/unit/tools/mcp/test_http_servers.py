"""Servers at a URL that misbehave, and where requests to them must not go."""

import gzip
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from kit.mcp_peers.asking import QUICK, ctx, named, names
from kit.wires.loopback import nobody_listens
from wakeful.contracts.errors import OutcomeUnknown, ToolReported
from wakeful.tools.mcp.servers import ServerLimits
from wakeful.tools.mcp.source import McpSource, from_mcp

Call = Callable[[Request, dict[str, Any]], Response]
SCHEMA = {"type": "object"}
TOOLS = [
    {"name": "reads", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
    {"name": "pays", "inputSchema": SCHEMA},
]


class Peer:
    """A server by hand: `call` answers tools/call; `seen` is what came."""

    def __init__(self, server: HTTPServer, call: Call) -> None:
        self.call = call
        self.seen: list[Request] = []
        self.bodies: list[dict[str, Any]] = []
        self.sessions: set[str] = set()
        self.lock = threading.Lock()
        server.expect_request("/mcp").respond_with_handler(self.answer)
        self.url = server.url_for("/mcp").replace("localhost", "127.0.0.1")

    def methods(self) -> list[str]:
        return [body.get("method", "") for body in self.bodies]

    def answer(self, request: Request) -> Response:
        with self.lock:
            self.seen.append(request)
            if request.method != "POST":
                return Response(status=405)
            body = json.loads(request.data)
            self.bodies.append(body)
            session = request.headers.get("mcp-session-id")
            if session is not None and session not in self.sessions:
                return Response(status=404)
            match body["method"]:
                case "initialize":
                    session = f"s{len(self.bodies)}"
                    self.sessions.add(session)
                    result = {
                        "protocolVersion": "2025-11-25",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "p", "version": "1"},
                    }
                    return answered(body, result, {"mcp-session-id": session})
                case "notifications/initialized" | "notifications/cancelled":
                    return Response(status=202)
                case "tools/list":
                    return answered(body, {"tools": TOOLS})
                case "tools/call":
                    return self.call(request, body)
            return Response(status=400)


def answered(body: dict[str, Any], result: Any, headers: dict[str, str] | None = None) -> Response:
    data = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result})
    return Response(data, content_type="application/json", headers=headers)


def fine(request: Request, body: dict[str, Any]) -> Response:
    return answered(body, {"content": [{"type": "text", "text": "fine"}]})


@pytest.fixture
async def source_at(tmp_path: Path) -> AsyncIterator[Callable[..., McpSource]]:
    made: list[McpSource] = []

    def make(url: str, **options: Any) -> McpSource:
        given = {"classes": {"*": "external_write"}, "pins": tmp_path / "pins.json", "limits": QUICK, **options}
        made.append(from_mcp("peer", url=url, **given))
        return made[-1]

    yield make
    for each in made:
        await each.close()


MakeSource = Callable[..., McpSource]


async def test_headers_go_to_the_server_and_nowhere_else(
    httpserver: HTTPServer, source_at: MakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    peer = Peer(httpserver, fine)
    source = source_at(peer.url + "?key=q-secret", headers={"Authorization": "Bearer h-secret"})
    assert await named(await source.offer(), "mcp.peer/reads").invoke(ctx(), {}) == "fine"
    assert {request.headers["authorization"] for request in peer.seen} == {"Bearer h-secret"}
    assert {request.headers["accept-encoding"] for request in peer.seen} == {"identity"}
    ours = " ".join(record.getMessage() for record in caplog.records if record.name != "werkzeug")
    assert "h-secret" not in ours
    assert "q-secret" not in ours


async def test_an_error_on_the_way_is_that_calls_own(httpserver: HTTPServer, source_at: MakeSource) -> None:
    answers = iter([Response(status=503), fine])

    def call(request: Request, body: dict[str, Any]) -> Response:
        answer = next(answers)
        return answer if isinstance(answer, Response) else answer(request, body)

    peer = Peer(httpserver, call)
    offer = await source_at(peer.url).offer()
    with pytest.raises(OutcomeUnknown, match="HTTP 503"):
        await named(offer, "mcp.peer/pays").invoke(ctx(), {})
    assert await named(offer, "mcp.peer/pays").invoke(ctx(), {}) == "fine"
    assert peer.methods().count("initialize") == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "HTTP 401: it requires a login or a key"), (403, "HTTP 403"), (429, "HTTP 429: its rate limit was reached")],
)
async def test_a_refusal_before_the_call_is_no_unknown_outcome(
    httpserver: HTTPServer, source_at: MakeSource, status: int, words: str
) -> None:
    peer = Peer(httpserver, lambda request, body: Response(status=status))
    offer = await source_at(peer.url).offer()
    with pytest.raises(ToolReported) as failed:
        await named(offer, "mcp.peer/pays").invoke(ctx(), {})
    assert failed.value.error.kind == "server_unavailable"
    assert words in failed.value.error.message


async def test_a_session_that_the_server_forgot_is_made_anew_and_the_call_is_made_once(
    httpserver: HTTPServer, source_at: MakeSource
) -> None:
    ran: list[str] = []

    def call(request: Request, body: dict[str, Any]) -> Response:
        ran.append(request.headers["mcp-session-id"])
        return fine(request, body)

    peer = Peer(httpserver, call)
    offer = await source_at(peer.url).offer()
    peer.sessions.clear()
    assert await named(offer, "mcp.peer/pays").invoke(ctx(), {}) == "fine"
    assert len(ran) == 1
    assert peer.methods().count("initialize") == 2


async def test_a_server_that_is_not_there_is_unavailable(source_at: MakeSource, unused_port: int) -> None:
    offer = await source_at(f"http://127.0.0.1:{unused_port}/mcp").offer()
    assert names(offer) == []
    assert "cannot be reached" in offer.withheld[0].reason


async def test_a_server_that_goes_away_leaves_the_call_unmade(httpserver: HTTPServer, source_at: MakeSource) -> None:
    peer = Peer(httpserver, fine)
    offer = await source_at(peer.url).offer()
    httpserver.clear()
    httpserver.stop()  # type: ignore[no-untyped-call]
    try:
        with pytest.raises(ToolReported) as failed:
            await named(offer, "mcp.peer/pays").invoke(ctx(), {})
        assert failed.value.error.kind == "server_unavailable"
    finally:
        httpserver.start()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "answer",
    [
        Response("x" * 3_000_000, content_type="application/json"),
        Response(
            gzip.compress(b"x" * 100_000_000), content_type="application/json", headers={"content-encoding": "gzip"}
        ),
        Response("data: " + "x" * 3_000_000 + "\n\n", content_type="text/event-stream"),
    ],
    ids=["long", "bomb", "long event"],
)
async def test_an_answer_that_is_too_large_is_not_read(
    httpserver: HTTPServer, source_at: MakeSource, answer: Response
) -> None:
    peer = Peer(httpserver, lambda request, body: answer)
    offer = await source_at(peer.url, limits=ServerLimits(message_bytes=1_000_000)).offer()
    with pytest.raises((ToolReported, OutcomeUnknown)):
        await named(offer, "mcp.peer/reads").invoke(ctx(), {})
    assert names(await source_at(peer.url, limits=ServerLimits(message_bytes=1_000_000)).offer())


async def test_a_redirect_elsewhere_is_not_followed(httpserver: HTTPServer, source_at: MakeSource) -> None:
    reached: list[str] = []
    httpserver.expect_request("/inside").respond_with_handler(lambda request: reached.append("x") or Response("x"))
    inside = httpserver.url_for("/inside")
    elsewhere = {"location": inside.replace("127.0.0.1", "localhost")}
    peer = Peer(httpserver, lambda request, body: Response(status=307, headers=elsewhere))
    offer = await source_at(peer.url).offer()
    with pytest.raises(ToolReported):
        await named(offer, "mcp.peer/pays").invoke(ctx(), {})
    assert reached == []


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]"])
async def test_a_server_at_a_private_address_is_not_connected_to(source_at: MakeSource, host: str) -> None:
    offer = await source_at(f"http://{host}/mcp").offer()
    assert offer.tools == ()
    assert "no request goes there" in offer.withheld[0].reason


async def test_a_proxy_in_the_environment_comes_in_between_nowhere(
    httpserver: HTTPServer, source_at: MakeSource, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port}")
    offer = await source_at(Peer(httpserver, fine).url).offer()
    assert names(offer) == ["mcp.peer/reads", "mcp.peer/pays"]


@pytest.fixture
def unused_port() -> Iterator[int]:
    with nobody_listens() as port:
        yield port
