"""One connection: requests in pieces, requests that come together, heads without an end, headers after a body."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wakeful.surfaces.http.body_routes import JsonAnswer
from wakeful.surfaces.http.connections import FEWEST, NetworkConnections
from wakeful.surfaces.http.guard import AT_ONCE, BODY, MarkedSend
from wakeful.surfaces.http.peer_protocol import HELD_BYTES, PeerProtocol

FIRST = b"POST /a HTTP/1.1\r\nhost: x\r\n"
HEAD = FIRST + b"connection: close\r\n"
NAMES = b"host,connection,content-length"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"


class Echo:
    """An application that answers with the body and the names of the headers, and knows what it was handed whole."""

    def __init__(self) -> None:
        self.whole: list[bytes | None] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0)  # whatever has arrived is parsed
        self.whole.append(scope["state"].get(BODY))
        body, more = scope["state"].get(BODY, b""), BODY not in scope["state"]
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        names = b",".join(name for name, _ in scope["headers"])
        said = body + b" " + names
        headers = [(b"content-length", str(len(said)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": said})


class Answering:
    """An application that answers as routes with a body do, and knows which answers were written at once."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.at_once, self.written = at_once, list[bool]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0)
        if not self.at_once:
            scope["state"].pop(AT_ONCE, None)
        marked = MarkedSend(send)
        await JsonAnswer(b'{"said":"%s"}' % scope["state"].get(BODY, b"?"))(scope, receive, marked)
        self.written.append(not marked.has_begun)


@asynccontextmanager
async def serving(app: Any, protocol: type[asyncio.Protocol] = PeerProtocol, keep_alive: int = 5) -> AsyncIterator[int]:
    """The port of a server that speaks the protocol."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # whoever comes before it serves is kept
        config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None, access_log=False)
        config.timeout_keep_alive = keep_alive
        server = uvicorn.Server(config)
        running = asyncio.create_task(server._serve([listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await running


async def answer_to(port: int, *pieces: bytes) -> bytes:
    """Everything that comes back to bytes that are sent piece by piece, until the server is done with them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for place, piece in enumerate(pieces):
            writer.write(piece)
            await writer.drain()
            if place < len(pieces) - 1:
                await asyncio.sleep(0.05)  # it goes on its way before the next one is written
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def test_a_request_that_comes_whole_is_handed_over_whole_and_one_in_pieces_is_read() -> None:
    app = Echo()
    async with serving(app) as port:
        request = HEAD + b"content-length: 4\r\n\r\n"
        assert (await answer_to(port, request + b"abcd")).endswith(b"\r\n\r\nabcd " + NAMES)
        assert (await answer_to(port, request[:20], request[20:] + b"ab", b"cd")).endswith(b"abcd " + NAMES)
    assert app.whole[0] == b"abcd"
    assert app.whole[1] in (None, b"abcd"), "pieces may have met on their way"


async def test_requests_that_come_in_one_piece_are_answered_in_their_order() -> None:
    async with serving(Echo()) as port:
        first = b"".join(FIRST + b"content-length: 1\r\n\r\n%d" % each for each in range(4))
        found = await answer_to(port, first + HEAD + b"content-length: 1\r\n\r\n4")
    bodies = [part.partition(b"\r\n\r\n")[2][:1] for part in found.split(b"HTTP/1.1 200 OK")[1:]]
    assert bodies == [b"0", b"1", b"2", b"3", b"4"]


async def test_an_answer_that_is_written_at_once_is_byte_for_byte_the_one_of_the_usual_way() -> None:
    found = []
    for app in (Answering(), Answering(at_once=False)):
        async with serving(app) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            said = b""
            for place in range(3):
                writer.write(FIRST + b"content-length: 1\r\n\r\n%d" % place)
                said += await reader.readuntil(b'"}')
            writer.write(HEAD + b"content-length: 1\r\n\r\n3")
            found.append(re.sub(rb"date: [^\r]*", b"date", said + await reader.read()))
            writer.close()
        assert app.written == [app.at_once] * 3 + [False], "a connection that ends takes the usual way"
    assert found[0] == found[1]
    assert re.findall(rb'"said":"(.)"', found[0]) == [b"0", b"1", b"2", b"3"]
    assert found[0].count(b"cache-control: no-store") == found[0].count(b"nosniff") == 4


async def test_requests_that_come_in_one_piece_are_answered_in_their_order_whichever_way_each_takes() -> None:
    async with serving(Answering()) as port:
        asked = b"".join(FIRST + b"content-length: 1\r\n\r\n%d" % each for each in range(4))
        found = await answer_to(port, asked + HEAD + b"content-length: 1\r\n\r\n4")
    assert re.findall(rb'"said":"(.)"', found) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_connection_on_which_nothing_is_asked_any_more_is_closed() -> None:
    async with serving(Answering(), keep_alive=1) as port:
        asked = FIRST + b"content-length: 1\r\n\r\n0"
        found = await answer_to(port, asked, asked)
    assert found.count(b'"said":"0"') == 2
    assert b"connection: close" not in found


@pytest.mark.parametrize("beginning", [HEAD + b"a: ", CHUNKED + b"a: "], ids=["head", "after the body"])
async def test_headers_without_an_end_are_refused(beginning: bytes) -> None:
    async with serving(Echo()) as port:
        found = await answer_to(port, beginning, *[b"a" * HELD_BYTES] * 3)
    assert b" 200 " not in found, "refused, or cut off where more was sent than is read"


async def test_headers_after_a_body_are_none_of_the_request() -> None:
    async with serving(Echo()) as port:
        found = await answer_to(port, CHUNKED + b"authorization: Bearer x\r\n\r\n")
    assert found.endswith(b"ab host,connection,transfer-encoding")


async def test_inversion_without_the_count_a_head_is_held_whatever_its_size() -> None:
    async with serving(Echo(), HttpToolsProtocol) as port:
        found = await answer_to(port, HEAD + b"a: ", *[b"a" * HELD_BYTES] * 3, b"\r\ncontent-length: 0\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 200")


async def test_inversion_the_parser_takes_headers_after_a_body_for_headers_of_the_request() -> None:
    async with serving(Echo(), HttpToolsProtocol) as port:
        found = await answer_to(port, CHUNKED + b"authorization: Bearer x\r\n\r\n")
    assert found.endswith(b"host,connection,transfer-encoding,authorization")


class BoundedPeer(PeerProtocol):
    """On a server whose process may have few files."""

    network = NetworkConnections(files=0)


class UnboundedPeer(PeerProtocol):
    """Without the bound."""

    network = NetworkConnections(files=1_000_000)


async def oldest_of(protocol: type[PeerProtocol]) -> bytes | None:
    """What the oldest of many connections hears that say nothing: its end, or None while it is held."""
    async with serving(Echo(), protocol) as port:
        wires = [await asyncio.open_connection("127.0.0.1", port) for _ in range(FEWEST + 1)]
        try:
            assert (await answer_to(port, HEAD + b"content-length: 0\r\n\r\n")).startswith(b"HTTP/1.1 200")
            return await wires[0][0].read(1) if protocol.network.dropped else None
        finally:
            for _, writer in wires:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()


async def test_the_oldest_that_asks_for_nothing_makes_room() -> None:
    assert await oldest_of(BoundedPeer) == b""


async def test_inversion_without_the_bound_all_of_them_are_held() -> None:
    assert await oldest_of(UnboundedPeer) is None
