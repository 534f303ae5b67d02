"""Servers that go wrong at one point of an exchange, and always there: a point, a fault, and what it looks like."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from kit.wires.wire_formats import WireFormat
from wakeful.contracts.models import FailureKind, Stage
from wakeful.providers.wire.http import Timeouts

from .wire.servers import Conversation, Server, Talk, serving

Fault = Literal["refused", "reset", "closed", "stall", "garbage", "too slow"]
SHORT = 0.2
"""Seconds that a server has which never answers. Servers that answer, if only with a fault, have all the time."""
PATIENT = Timeouts(connect=20, first_byte=20, between_chunks=20, whole=40)
DRIP = 0.01
WORDS = "Whole."


@dataclass(frozen=True)
class Case:
    """One fault at one point, and what the timeline has to say of it."""

    point: str
    fault: Fault
    kind: FailureKind
    stage: Stage
    talk: Callable[[WireFormat], Talk] | None = None
    timeouts: Timeouts = PATIENT
    tls: bool = False
    prompt: str = "Say it."
    stream: bool = True

    def __str__(self) -> str:
        return f"{self.point}-{self.fault}".replace(" ", "-")


# --- what servers do --------------------------------------------------------------------------------------------------


async def never(_: Conversation) -> None:
    """Waits until nobody is there any more."""


async def hang_up(conversation: Conversation) -> None:
    conversation.reset()


async def read_some(conversation: Conversation) -> None:
    await conversation.reader.read(1)
    conversation.reset()


async def slow_reader(conversation: Conversation) -> None:
    while True:
        await conversation.reader.read(512)
        await asyncio.sleep(DRIP)


async def no_reader(conversation: Conversation) -> None:
    conversation.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(60)


async def early_garbage(conversation: Conversation) -> None:
    await conversation.reader.read(1)
    await conversation.say(b"\x00\x01 this is no answer\r\n\r\n")
    while await conversation.reader.read(1 << 20):
        pass


async def plain_text(conversation: Conversation) -> None:
    await conversation.reader.read(1)
    await conversation.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    conversation.writer.close()


async def drip_a_handshake(conversation: Conversation) -> None:
    """The beginning of a TLS record that goes on and on."""
    await conversation.reader.read(1)
    await conversation.say(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03")
    while True:
        await conversation.say(b"\x00")
        await asyncio.sleep(DRIP)


def after_the_request(then: Callable[[Conversation], Awaitable[None]]) -> Callable[[WireFormat], Talk]:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await then(conversation)

    return lambda _: talk


async def close(conversation: Conversation) -> None:
    conversation.writer.close()


async def say_garbage(conversation: Conversation) -> None:
    await conversation.say(b"\x00\x01 this is no answer\r\n\r\n")
    conversation.writer.close()


async def drip_headers(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        await conversation.say(b"x")
        await asyncio.sleep(DRIP)


def in_the_stream(place: int, then: Callable[[Conversation], Awaitable[None]]) -> Callable[[WireFormat], Talk]:
    """The answer's first events, and then this."""

    def of(wire: WireFormat) -> Talk:
        async def talk(conversation: Conversation) -> None:
            while True:  # an answer that ends in good order keeps the connection for the next attempt
                await conversation.request()
                await conversation.start_chunks()
                for event in wire.events(WORDS)[:place]:
                    await conversation.chunk(event)
                await then(conversation)

        return talk

    return of


async def end_cleanly(conversation: Conversation) -> None:
    await conversation.say(b"0\r\n\r\n")


async def break_framing(conversation: Conversation) -> None:
    await conversation.say(b"zz\r\nno chunk\r\n")


async def break_json(conversation: Conversation) -> None:
    await conversation.chunk(b'data: {"type": "response.output_text.delta", "choices": [{"del\n\n')
    await conversation.say(b"0\r\n\r\n")


async def drip_comments(conversation: Conversation) -> None:
    """Always something, and never an end: only the deadline of the whole can end it."""
    while True:
        await conversation.chunk(b": still here\n\n")
        await asyncio.sleep(DRIP)


def in_the_body(then: Callable[[Conversation], Awaitable[None]], share: float) -> Callable[[WireFormat], Talk]:
    """Part of an answer that is not streamed, and then this."""

    def of(wire: WireFormat) -> Talk:
        async def talk(conversation: Conversation) -> None:
            await conversation.request()
            body = wire.body(WORDS)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            await conversation.say(head.encode() + body[: int(len(body) * share)])
            await then(conversation)

        return talk

    return of


async def drip_spaces(conversation: Conversation) -> None:
    while True:
        await conversation.say(b" ")
        await asyncio.sleep(DRIP * 4)


def whole_body(made: Callable[[WireFormat], bytes]) -> Callable[[WireFormat], Talk]:
    def of(wire: WireFormat) -> Talk:
        async def talk(conversation: Conversation) -> None:
            while True:
                await conversation.request()
                await conversation.answer("200 OK", made(wire), "Content-Type: application/json")

        return talk

    return of


def always(talk: Talk) -> Callable[[WireFormat], Talk]:
    return lambda _: talk


# --- the points of an exchange ----------------------------------------------------------------------------------------

LONG = "word " * 1_600_000
"""More than the buffers between two programs hold."""
IMPATIENT = Timeouts(connect=20, first_byte=SHORT, between_chunks=20, whole=40)
TO_CONNECT = Timeouts(connect=SHORT, first_byte=20, between_chunks=20, whole=40)
TO_TAKE = Timeouts(connect=20, first_byte=20, between_chunks=SHORT, whole=40)
IN_ALL = Timeouts(connect=20, first_byte=20, between_chunks=20, whole=SHORT * 2)


def longer(timeouts: Timeouts, times: int) -> Timeouts:
    """The same limits, each so many times as long."""
    return Timeouts(
        connect=timeouts.connect * times,
        first_byte=timeouts.first_byte * times,
        between_chunks=timeouts.between_chunks * times,
        whole=timeouts.whole * times,
    )


BEFORE_THE_ANSWER = [
    Case("connect", "refused", "connection", "connect"),
    Case("connect", "stall", "timeout", "connect", timeouts=TO_CONNECT),
    Case("tls", "refused", "connection", "connect", always(never), tls=True),
    Case("tls", "reset", "connection", "connect", always(read_some), tls=True),
    Case("tls", "stall", "timeout", "connect", always(never), TO_CONNECT, tls=True),
    Case("tls", "garbage", "connection", "connect", always(plain_text), tls=True),
    Case("tls", "too slow", "timeout", "connect", always(drip_a_handshake), TO_CONNECT, tls=True),
    Case("send", "reset", "connection", "send", always(read_some), prompt=LONG),
    Case("send", "stall", "timeout", "send", always(no_reader), TO_TAKE, prompt=LONG),
    Case("send", "garbage", "invalid_response", "headers", always(early_garbage)),
    Case("send", "too slow", "timeout", "send", always(slow_reader), IMPATIENT, prompt=LONG),
    Case("headers", "reset", "connection", "headers", after_the_request(hang_up)),
    Case("headers", "closed", "connection", "headers", after_the_request(close)),
    Case("headers", "stall", "timeout", "headers", after_the_request(never), IMPATIENT),
    Case("headers", "garbage", "invalid_response", "headers", after_the_request(say_garbage)),
    Case("headers", "too slow", "timeout", "headers", after_the_request(drip_headers), IMPATIENT),
]


def in_chunk(place: int) -> list[Case]:
    """Every fault after `place` events of a stream."""
    at = f"chunk {place}"
    first = TO_TAKE if place else IMPATIENT
    return [
        Case(at, "reset", "stream_interrupted", "body", in_the_stream(place, hang_up)),
        Case(at, "closed", "stream_interrupted", "body", in_the_stream(place, close)),
        Case(f"{at} (ends cleanly)", "closed", "stream_interrupted", "body", in_the_stream(place, end_cleanly)),
        Case(at, "stall", "timeout", "body", in_the_stream(place, never), first),
        Case(at, "garbage", "stream_interrupted", "body", in_the_stream(place, break_framing)),
        Case(f"{at} (its JSON)", "garbage", "invalid_response", "decode", in_the_stream(place, break_json)),
        Case(at, "too slow", "timeout", "body", in_the_stream(place, drip_comments), IN_ALL),
    ]


NOT_STREAMED = [
    Case("body", "reset", "stream_interrupted", "body", in_the_body(hang_up, 0.5), stream=False),
    Case("body", "closed", "stream_interrupted", "body", in_the_body(close, 0.99), stream=False),
    Case("body", "stall", "timeout", "body", in_the_body(never, 0.5), TO_TAKE, stream=False),
    Case("body", "too slow", "timeout", "body", in_the_body(drip_spaces, 0.5), IN_ALL, stream=False),
    Case(
        "body",
        "garbage",
        "invalid_response",
        "decode",
        whole_body(lambda wire: wire.body(WORDS)[:-20]),
        stream=False,
    ),
    Case("body (no answer in it)", "garbage", "invalid_response", "decode", whole_body(lambda _: b"[]"), stream=False),
]

AT_THE_END = {
    "reset": hang_up,
    "closed": close,
    "stall": never,
    "garbage": break_framing,
    "too slow": drip_comments,
}
"""What may happen behind the last event. The answer is whole; nothing of this touches it."""


# --- running them -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def going_wrong(case: Case, wire: WireFormat, certificate: "ssl.SSLContext") -> AsyncIterator[str]:
    """The address of a server with this fault."""
    if case.point == "connect":
        with _unanswered(case.fault) as port:
            yield f"http://127.0.0.1:{port}"
        return
    assert case.talk is not None
    trusted = certificate if (case.point, case.fault) == ("tls", "refused") else None
    async with _serving(case.talk(wire), trusted) as server:
        yield server.url.replace("http:", "https:") if case.tls else server.url


@asynccontextmanager
async def _serving(talk: Talk, tls: ssl.SSLContext | None) -> AsyncIterator[Server]:
    if tls is None:
        async with serving(talk) as server:
            yield server
        return
    listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls)
    async with listener:
        yield Server(listener.sockets[0].getsockname()[1])


@contextlib.contextmanager
def _unanswered(fault: Fault) -> Iterator[int]:
    """A port where nobody listens, or where nobody picks up."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        if fault == "stall":
            listener.listen(0)
            for _ in range(4):  # the queue of those who wait to be picked up is full
                waiting = held.enter_context(socket.socket())
                waiting.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    waiting.connect(("127.0.0.1", port))
        yield port
