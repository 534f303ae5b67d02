"""Servers on this machine that answer exactly what a test wants, byte for byte, and tell what they saw."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

Talk = Callable[["Conversation"], Awaitable[None]]
Told = TypeVar("Told")


@dataclass
class Conversation:
    """One connection, as its server sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> tuple[bytes, bytes]:
        """Head and body of a request with a Content-Length."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        sizes = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
        return head, await self.reader.readexactly(sizes[0] if sizes else 0)

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: str, body: bytes, *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        await self.say("\r\n".join(lines).encode() + body)

    async def start_chunks(self) -> None:
        await self.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.say(b"%x\r\n%s\r\n" % (len(data), data))

    async def last_chunk(self, data: bytes) -> None:
        """A chunk and the end of the body in one write, as most servers send them."""
        await self.say(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))

    def reset(self) -> None:
        """Not an orderly end: the other side gets a reset."""
        self.writer.transport.abort()

    async def until_left(self) -> None:
        """Wait until the client is gone."""
        while await self.reader.read(65536):
            pass


@dataclass
class Server:
    """Where it listens, and how many connections it has had."""

    port: int
    connections: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed a connection that the server still held open."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def once_it_comes_that_far(ask: Callable[[float], Awaitable[Told]], is_it: Callable[[Told], bool]) -> Told:
    """How an exchange ends that has too little time. On a busy machine it may have had too little to come to the point
    where it is to end: then it gets more."""
    for seconds in (0.3, 2, 15):
        told = await ask(seconds)
        if is_it(told):
            break
    return told


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[Server]:
    """A server whose every connection has the same conversation."""
    held = Server(0)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        held.connections += 1
        conversation = Conversation(reader, writer)
        try:
            await talk(conversation)
            await conversation.until_left()
            held.left.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            held.left.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    held.port = server.sockets[0].getsockname()[1]
    try:
        yield held
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
