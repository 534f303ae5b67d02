"""Requests over HTTP against servers that do what real ones do on bad days."""

import asyncio
import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest

from kit.wires.loopback import nobody_listens
from wakeful.contracts.errors import ModelFailure
from wakeful.providers.wire.http import HttpTransport, Timeouts
from wakeful.providers.wire.loop_client import close_shared_client, shared_client
from wakeful.providers.wire.redaction import Secret

from .servers import Conversation, Server, once_it_comes_that_far, serving

KEY = "sk-very-secret-0123456789"
HEADERS = {"authorization": f"Bearer {KEY}", "accept": "text/event-stream"}
REF = "acme:model-1"


def transport(**seconds: float) -> HttpTransport:
    return HttpTransport("acme", timeouts=Timeouts(**seconds), key_variable="ACME_API_KEY")


async def asked(url: str, sender: HttpTransport | None = None, chunks: tuple[bytes, ...] = (b"{}",)) -> bytes:
    async with (sender or transport()).send(url, HEADERS, chunks, model_ref=REF) as response:
        return await response.read()


async def events(url: str, sender: HttpTransport | None = None) -> list[bytes]:
    async with (sender or transport()).send(url, HEADERS, [b"{}"], model_ref=REF) as response:
        return [event.data async for batch in response.events() for event in batch]


async def failure_of(attempt: object) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await attempt  # type: ignore[misc]
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.diagnostics)
    assert KEY not in shown
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    return caught.value


async def timeout_of(
    url: str, limit: str, stage: str, ask: Callable[..., Awaitable[object]] | None = None
) -> ModelFailure:
    """How a request fails that gets little of one kind of time."""
    return await once_it_comes_that_far(
        lambda seconds: failure_of((ask or asked)(url, transport(**{limit: seconds}))),
        lambda failure: failure.stage == stage,
    )


async def test_the_body_is_sent_in_pieces_and_arrives_whole_with_its_length() -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def talk(peer: Conversation) -> None:
        seen.append(await peer.request())
        await peer.answer("200 OK", b'{"ok":true}')

    chunks = (b"{", b'"a":', b'"' + b"x" * 200_000 + b'"', b"", b"}")
    async with serving(talk) as server:
        assert await asked(server.url, chunks=chunks) == b'{"ok":true}'
    head, body = seen[0]
    assert body == b"".join(chunks)
    assert b"transfer-encoding" not in head.lower()
    assert b"content-type: application/json" in head.lower()
    assert f"authorization: bearer {KEY}".encode() in head.lower()


async def test_events_come_as_they_are_sent_not_when_the_answer_ends() -> None:
    go_on = asyncio.Event()

    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        await peer.chunk(b"event: a\ndata: 1\n\nda")
        await go_on.wait()
        await peer.chunk(b"ta: 2\n\n")
        await peer.chunk(b"")

    async with serving(talk) as server, transport().send(server.url, HEADERS, [b"{}"]) as response:
        assert response.status == 200
        assert response.headers["content-type"] == "text/event-stream"
        coming = response.events()
        assert await anext(coming) == [("a", b"1")]
        go_on.set()
        assert [batch async for batch in coming] == [[("message", b"2")]]


async def test_a_connection_is_used_again_also_when_reading_stopped_at_the_last_event() -> None:
    async def talk(peer: Conversation) -> None:
        while True:
            await peer.request()
            await peer.start_chunks()
            await peer.last_chunk(b"data: [DONE]\n\n")

    async with serving(talk) as server:
        for _ in range(3):
            async with transport().send(server.url, HEADERS, [b"{}"]) as response:
                async for batch in response.events():
                    assert [event.data for event in batch] == [b"[DONE]"]
                    break
        assert server.connections == 1


async def test_a_connection_is_used_again_whose_stream_ends_a_little_after_the_last_event() -> None:
    async def talk(peer: Conversation) -> None:
        while True:
            await peer.request()
            await peer.start_chunks()
            await peer.chunk(b"data: [DONE]\n\n")
            await asyncio.sleep(0.05)
            await peer.last_chunk(b": end\n\n")

    async def connections(seconds: float) -> int:
        """How many three exchanges need; a busy machine may need longer for the end of a stream."""
        async with serving(talk) as server:
            for _ in range(3):
                async with transport(linger=seconds).send(server.url, HEADERS, [b"{}"]) as response:
                    async for batch in response.events():
                        assert [event.data for event in batch] == [b"[DONE]"]
                        break
            return server.connections

    assert Timeouts().linger >= 2 * 0.05
    assert await once_it_comes_that_far(connections, lambda found: found == 1) == 1
    assert await connections(0.0) == 3, "without the wait, each needs one of its own"


async def test_a_server_that_holds_its_stream_open_after_the_last_event_holds_up_nobody() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        await peer.chunk(b"data: [DONE]\n\n")

    async with serving(talk) as server:
        async with transport().send(server.url, HEADERS, [b"{}"]) as response:
            assert [event.data for event in await anext(response.events())] == [b"[DONE]"]
        await server.left.wait()


async def test_nothing_listening_is_a_connection_failure_that_names_the_host() -> None:
    with nobody_listens() as port:
        url = f"http://127.0.0.1:{port}"
        failure = await failure_of(asked(f"{url}/v1/x?key={KEY}"))
    assert (failure.kind, failure.stage, failure.status) == ("connection", "connect", None)
    assert url.removeprefix("http://") in failure.message
    assert "nothing listens there" in failure.message
    assert failure.diagnostics is not None and failure.diagnostics.http_client is not None
    assert failure.diagnostics.http_client.is_connect
    assert failure.diagnostics.url == f"{url}/v1/x"
    assert failure.diagnostics.model_ref == REF
    assert any("Connect" in line for line in failure.diagnostics.source_chain or ())


async def test_a_name_that_no_network_knows_is_told_as_that() -> None:
    failure = await failure_of(asked("http://localhost:1"))
    assert (failure.kind, failure.stage) == ("connection", "connect")


async def test_tls_to_a_port_without_tls_says_so() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.reader.read(10)
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url.replace("http://", "https://")))
    assert (failure.kind, failure.stage) == ("connection", "connect")
    assert "no TLS there" in failure.message


async def test_a_handshake_that_never_ends_is_a_timeout_while_connecting() -> None:
    async with serving(lambda peer: asyncio.sleep(60)) as server:
        failure = await failure_of(asked(server.url.replace("http://", "https://"), transport(connect=0.05)))
    assert (failure.kind, failure.stage) == ("timeout", "connect")
    assert failure.diagnostics is not None and failure.diagnostics.http_client is not None
    assert failure.diagnostics.http_client.is_timeout and failure.diagnostics.http_client.is_connect


async def test_a_reset_before_the_answer_is_a_connection_failure() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        peer.reset()

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert (failure.kind, failure.stage) == ("connection", "headers")
    assert "before it answered" in failure.message


async def test_an_orderly_end_without_an_answer_is_a_connection_failure_too() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        peer.writer.close()

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert (failure.kind, failure.stage) == ("connection", "headers")


async def test_a_server_that_stops_reading_the_request_is_a_failure_while_sending() -> None:
    async def talk(peer: Conversation) -> None:
        await asyncio.sleep(60)

    async with serving(talk) as server:
        chunks = tuple(b"x" * 1_000_000 for _ in range(20))
        failure = await failure_of(asked(server.url, transport(between_chunks=0.05), chunks))
    assert (failure.kind, failure.stage) == ("timeout", "send")


async def test_an_answer_that_does_not_begin_in_time_is_a_timeout() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.until_left()

    async with serving(talk) as server:
        failure = await timeout_of(server.url, "first_byte", "headers")
        await server.left.wait()
    assert (failure.kind, failure.stage) == ("timeout", "headers")
    assert "did not begin to answer" in failure.message


async def test_headers_that_trickle_do_not_get_more_time_than_headers_that_do_not_come() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\n")
        while True:
            await peer.say(b"x-more: and more\r\n")
            await asyncio.sleep(0.01)

    async with serving(talk) as server:
        failure = await timeout_of(server.url, "first_byte", "headers")
    assert (failure.kind, failure.stage) == ("timeout", "headers")


@pytest.mark.parametrize("garbage", [b"\x00\x01\x02 what\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n\r\n"])
async def test_something_that_is_not_http_is_an_invalid_response(garbage: bytes) -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.say(garbage)

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert (failure.kind, failure.stage) == ("invalid_response", "headers")
    assert "does not speak HTTP" in failure.message


async def _reset(peer: Conversation) -> None:
    peer.reset()


async def _end(peer: Conversation) -> None:
    peer.writer.close()


async def _garbage(peer: Conversation) -> None:
    await peer.say(b"no chunk\r\n\r\n")


@pytest.mark.parametrize("fault", [_reset, _end, _garbage])
async def test_a_stream_that_breaks_is_interrupted(fault: object) -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        await peer.chunk(b"data: 1\n\n")
        await asyncio.sleep(0.01)
        await fault(peer)  # type: ignore[operator]

    async with serving(talk) as server:
        failure = await failure_of(events(server.url))
    assert (failure.kind, failure.stage, failure.status) == ("stream_interrupted", "body", None)
    assert "nothing of it was used" in failure.message


async def test_a_body_shorter_than_its_length_is_interrupted() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.say(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"half":')
        peer.writer.close()

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert (failure.kind, failure.stage) == ("stream_interrupted", "body")


async def test_a_stall_between_chunks_is_a_timeout_and_closes_the_connection() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        await peer.chunk(b"data: 1\n\n")
        await peer.until_left()

    async with serving(talk) as server:
        failure = await timeout_of(server.url, "between_chunks", "body", events)
        await server.left.wait()
    assert (failure.kind, failure.stage) == ("timeout", "body")
    assert "stopped in the middle" in failure.message


async def test_the_first_piece_may_take_longer_than_the_ones_after_it() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        await asyncio.sleep(1)
        await peer.last_chunk(b"data: 1\n\n")

    async with serving(talk) as server:
        assert await events(server.url, transport(first_byte=60, between_chunks=0.4)) == [b"1"]


async def test_a_stream_that_trickles_for_ever_ends_at_the_whole_timeout() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        while True:
            await peer.chunk(b": still here\n\n")
            await asyncio.sleep(0.01)

    async with serving(talk) as server:
        failure = await timeout_of(server.url, "whole", "body", events)
    assert (failure.kind, failure.stage) == ("timeout", "body")


async def test_a_429_says_when_to_come_back() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        body = b'{"error":{"message":"slow down please","type":"requests","code":"rate_limit_exceeded"}}'
        await peer.answer("429 Too Many Requests", body, "Retry-After: 7")

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert (failure.kind, failure.stage, failure.status, failure.retry_after) == ("rate_limited", "headers", 429, 7.0)
    assert "slow down please" in failure.message


async def test_a_refusal_that_repeats_the_key_does_not_carry_it_further() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.answer("401 Unauthorized", f'{{"error":{{"message":"bad key {KEY}"}}}}'.encode())

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert failure.kind == "auth_error"
    assert "ACME_API_KEY" in failure.message and "[redacted]" in failure.message


async def test_a_status_counts_even_when_its_body_is_cut() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 503 Unavailable\r\nContent-Length: 100\r\n\r\n{")
        peer.reset()

    async with serving(talk) as server:
        failure = await failure_of(asked(server.url))
    assert (failure.kind, failure.status) == ("server_error", 503)


@pytest.mark.parametrize("own_client", [False, True])
async def test_a_redirect_is_not_followed_so_that_no_key_goes_where_it_was_not_meant_to(own_client: bool) -> None:
    async def elsewhere(peer: Conversation) -> None:
        await peer.request()
        await peer.answer("200 OK", b"{}")

    async with serving(elsewhere) as other:

        async def talk(peer: Conversation) -> None:
            while True:
                await peer.request()
                await peer.answer("307 Temporary Redirect", b"", f"Location: {other.url}/v1?sig=abcdefgh")

        # A client of the caller's that would follow it does not follow it for us.
        async with serving(talk) as server, httpx2.AsyncClient(follow_redirects=True) as eager:
            sender = HttpTransport("acme", client=eager if own_client else None)
            failure = await failure_of(asked(server.url, sender))
            assert other.connections == 0
            assert (await eager.post(server.url)).status_code == 200  # it would have gone there
            assert other.connections == 1
    assert (failure.kind, failure.status) == ("contract_error", 307)
    assert f"{other.url}/v1," in failure.message and "abcdefgh" not in failure.message


async def test_the_most_talkative_logs_hold_no_key(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.answer("500 Oops", b"{}", f"x-echo: {KEY}")

    # Its own level, too: connections to MCP servers of this process may have made the library quiet.
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="httpx2"):
        async with serving(talk) as server:
            await failure_of(asked(f"{server.url}/v1"))
    assert "HTTP Request: POST" in caplog.text  # the library did log
    assert KEY not in caplog.text
    with caplog.at_level(logging.DEBUG, logger="httpcore2"):  # who asks for its own debug lines gets them
        async with serving(talk) as server:
            await failure_of(asked(f"{server.url}/v1"))
    assert KEY in caplog.text, "without the level that the client sets, the server's own headers would be there"


async def test_a_key_with_a_line_end_in_it_is_refused_without_being_shown() -> None:
    async with serving(lambda peer: asyncio.sleep(0)) as server:
        with pytest.raises(ModelFailure) as caught:
            async with transport().send(server.url, {"authorization": f"Bearer {KEY}\nx"}, [b"{}"]):
                pass
    assert caught.value.kind == "contract_error"
    assert KEY not in str(caught.value) and KEY not in repr(caught.value.diagnostics)


async def _begun(server: Server, sender: HttpTransport) -> AsyncIterator[bytes]:
    async with sender.send(server.url, HEADERS, [b"{}"]) as response:
        async for batch in response.events():
            for event in batch:
                yield event.data


@pytest.mark.parametrize("when", ["before the answer", "in the middle of it"])
async def test_cancelling_closes_the_connection(when: str) -> None:
    arrived = asyncio.Event()

    async def talk(peer: Conversation) -> None:
        await peer.request()
        if when != "before the answer":
            await peer.start_chunks()
            await peer.chunk(b"data: 1\n\n")
        arrived.set()
        await peer.until_left()

    async with serving(talk) as server:
        task = asyncio.create_task(events(server.url))
        await arrived.wait()
        assert not server.left.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


async def test_leaving_a_stream_that_is_read_by_another_task_closes_its_connection() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        await peer.chunk(b"data: 1\n\n")
        await peer.until_left()

    async with serving(talk) as server:
        coming = _begun(server, transport())
        assert await asyncio.create_task(anext(coming)) == b"1"
        await asyncio.create_task(coming.aclose())  # type: ignore[attr-defined]
        await server.left.wait()


async def test_many_streams_at_a_time_share_one_client() -> None:
    async def talk(peer: Conversation) -> None:
        await peer.request()
        await peer.start_chunks()
        for number in range(5):
            await peer.chunk(b"data: %d\n\n" % number)
        await peer.chunk(b"")

    async with serving(talk) as server:
        got = await asyncio.gather(*(events(server.url) for _ in range(50)))
    assert got == [[b"0", b"1", b"2", b"3", b"4"]] * 50
    assert shared_client() is shared_client()


async def test_a_closed_shared_client_is_replaced() -> None:
    first = shared_client()
    await close_shared_client()
    assert first.is_closed
    assert shared_client() is not first


def test_the_shared_client_is_closed_with_its_loop_without_a_warning() -> None:
    program = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from servers import serving
from wakeful.providers.wire import http, loop_client

async def talk(peer):
    await peer.request()
    await peer.answer("200 OK", b"{}")

kept = []

async def main():
    async with serving(talk) as server:
        async with http.HttpTransport("acme").send(server.url, {}, [b"{}"]) as response:
            assert await response.read() == b"{}"
        kept.append(loop_client.shared_client())
        assert not kept[-1].is_closed
        http.HttpTransport("acme")

for _ in range(2):
    asyncio.run(main())
assert all(client.is_closed for client in kept) and kept[0] is not kept[1]
"""
    from pathlib import Path

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_http_library_is_loaded_with_the_first_request_and_not_before() -> None:
    program = """
import sys
import wakeful.providers.wire.http, wakeful.providers.wire.failures, wakeful.providers.wire.schemas
wakeful.providers.wire.http.HttpTransport("acme")
assert not {"httpx", "httpx2", "httpcore2", "openai", "anthropic"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret!r} {secret} {secret:}" + repr({"key": [secret]})
    assert secret.reveal() == KEY
    assert secret == Secret(KEY) and hash(secret) == hash(Secret(KEY)) and secret != Secret("other")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
