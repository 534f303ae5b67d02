"""Where an exchange was lost: every exception of the HTTP library, provoked on a real server, at its own stage."""

import asyncio
import gzip
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from kit.wires.loopback import nobody_listens
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import FailureKind, Stage
from wakeful.providers.wire.failures import from_exception
from wakeful.providers.wire.http import HttpTransport, Timeouts

from .servers import Conversation, once_it_comes_that_far, serving

LONG = b"x" * 16_000_000
"""More than the buffers between two programs hold."""


class Silent(httpx2.AsyncBaseTransport):
    """A transport that does not tell how far it is: whatever it is told to call is not called."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions = {name: value for name, value in request.extensions.items() if name != "trace"}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def lost(
    url: str, *, body: bytes = b"{}", silent: bool = False, timeouts: Timeouts | None = None
) -> tuple[FailureKind, Stage, str]:
    """The kind, the stage and the library's own name of how a request ends."""
    inner: httpx2.AsyncBaseTransport = httpx2.AsyncHTTPTransport()
    async with httpx2.AsyncClient(transport=Silent(inner) if silent else inner) as client:
        sender = HttpTransport("acme", timeouts=timeouts or Timeouts(connect=20, between_chunks=20), client=client)
        with pytest.raises(ModelFailure) as caught:
            async with sender.send(url, {}, [body]) as answer:
                await answer.read()
    diagnostics = caught.value.diagnostics
    assert diagnostics is not None and diagnostics.source_chain is not None
    assert diagnostics.stage == caught.value.stage
    return caught.value.kind, caught.value.stage, diagnostics.source_chain[0].partition(":")[0]


async def no_reader(peer: Conversation) -> None:
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(60)


def hang_up(peer: Conversation) -> None:
    """A reset on the wire: nothing is sent any more, not even an end."""
    held = peer.writer.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.reset()


async def reset_after_the_request(peer: Conversation) -> None:
    await peer.request()
    hang_up(peer)


async def close_after_the_request(peer: Conversation) -> None:
    await peer.request()
    peer.writer.close()


async def garbage(peer: Conversation) -> None:
    await peer.request()
    await peer.say(b"\x00\x01 this is no answer\r\n\r\n")
    peer.writer.close()


async def reset_in_the_body(peer: Conversation) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    hang_up(peer)


async def short_body(peer: Conversation) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    peer.writer.close()


async def broken_encoding(peer: Conversation) -> None:
    await peer.request()
    body = b"\x00" + gzip.compress(b"{}")
    await peer.answer("200 OK", body, "Content-Encoding: gzip")


async def never(peer: Conversation) -> None:
    await peer.request()


async def never_the_body(peer: Conversation) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")


Talk = Callable[[Conversation], Awaitable[None]]


async def in_brief(url: str, stage: Stage, *, silent: bool = False) -> tuple[FailureKind, Stage, str]:
    """How a request ends that does not get its answer in time, if it got as far as this."""

    def ask(seconds: float) -> Awaitable[tuple[FailureKind, Stage, str]]:
        brief = Timeouts(connect=20, first_byte=seconds, between_chunks=seconds, whole=60)
        return lost(url, silent=silent, timeouts=brief)

    return await once_it_comes_that_far(ask, lambda told: told[1] == stage)


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
@pytest.mark.parametrize(
    ("talk", "options", "kind", "stage", "name"),
    [
        (
            no_reader,
            {"body": LONG, "timeouts": Timeouts(connect=20, between_chunks=0.5)},
            "timeout",
            "send",
            "WriteTimeout",
        ),
        (reset_after_the_request, {}, "connection", "headers", "ReadError"),
        (close_after_the_request, {}, "connection", "headers", "RemoteProtocolError"),
        (garbage, {}, "invalid_response", "headers", "RemoteProtocolError"),
        (reset_in_the_body, {}, "stream_interrupted", "body", "ReadError"),
        (short_body, {}, "stream_interrupted", "body", "RemoteProtocolError"),
        (broken_encoding, {}, "invalid_response", "body", "DecodingError"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_every_exception_is_told_at_the_stage_it_belongs_to(
    talk: Talk, options: dict[str, Any], kind: str, stage: str, name: str, silent: bool
) -> None:
    async with serving(talk) as server:
        assert await lost(server.url, silent=silent, **options) == (kind, stage, name)


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
async def test_an_answer_that_does_not_go_on_is_told_at_the_body(silent: bool) -> None:
    async with serving(never_the_body) as server:
        assert await in_brief(server.url, "body", silent=silent) == ("timeout", "body", "TimeoutError")


async def test_an_answer_that_does_not_begin_is_told_at_the_headers() -> None:
    async with serving(never) as server:
        assert await in_brief(server.url, "headers") == ("timeout", "headers", "TimeoutError")


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
async def test_nobody_there_is_told_while_connecting(silent: bool) -> None:
    with nobody_listens() as port:
        assert await lost(f"http://127.0.0.1:{port}", silent=silent) == ("connection", "connect", "ConnectError")


@pytest.mark.parametrize("silent", [False, True], ids=["told", "silent"])
async def test_a_handshake_that_does_not_end_is_told_while_connecting(silent: bool) -> None:
    async def mute(peer: Conversation) -> None:
        await peer.until_left()

    async with serving(mute) as server:
        url = server.url.replace("http:", "https:")
        brief = Timeouts(connect=0.5, first_byte=20, between_chunks=20)
        assert await lost(url, silent=silent, timeouts=brief) == ("timeout", "connect", "ConnectTimeout")


async def test_a_full_pool_is_told_while_connecting() -> None:
    taken = asyncio.Event()

    async def take_and_keep(peer: Conversation) -> None:
        taken.set()
        await never(peer)

    async with serving(take_and_keep) as server, httpx2.AsyncClient(limits=httpx2.Limits(max_connections=1)) as client:

        async def ask(first_byte: float) -> tuple[str, str]:
            sender = HttpTransport("acme", timeouts=Timeouts(connect=60, first_byte=first_byte), client=client)
            with pytest.raises(ModelFailure) as caught:
                async with sender.send(server.url, {}, [b"{}"]):
                    pass
            return caught.value.kind, caught.value.stage

        # The one connection is held for as long as the other waits: were both to give up at once, the second could
        # still be handed the first one's place in its last moment.
        holder = asyncio.create_task(ask(first_byte=60))
        await taken.wait()
        assert await ask(first_byte=0.3) == ("timeout", "connect")
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (httpx2.ConnectTimeout("x"), "connect"),
        (httpx2.PoolTimeout("x"), "connect"),
        (httpx2.ConnectError("x"), "connect"),
        (httpx2.ProxyError("x"), "connect"),
        (httpx2.UnsupportedProtocol("x"), "connect"),
        (httpx2.WriteTimeout("x"), "send"),
        (httpx2.WriteError("x"), "send"),
        (httpx2.ReadTimeout("x"), "headers"),
        (httpx2.ReadError("x"), "headers"),
        (httpx2.RemoteProtocolError("x"), "headers"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_the_exception_says_itself_is_the_least(error: Exception, stage: Stage) -> None:
    assert from_exception("acme", None, error, stage="connect").stage == stage
    assert from_exception("acme", None, error, stage="body").stage == (
        "connect" if stage == "connect" and isinstance(error, httpx2.ConnectError) else "body"
    )
