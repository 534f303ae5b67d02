"""Clients on the loopback address, light enough that 2,000 of them are one process: followers and callers."""

import asyncio
import json
import socket
import time
from collections.abc import Sequence


class Follower(asyncio.Protocol):
    """Asks for a stream and looks for marks in it; one that is deaf asks and never reads."""

    def __init__(self, request: bytes, *, is_deaf: bool = False) -> None:
        self.request, self.is_deaf = request, is_deaf
        self.begun = asyncio.get_running_loop().create_future()
        self.mark: bytes | None = None
        self.found: asyncio.Future[float] | None = None
        self._tail = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self.request)

    def look_for(self, mark: bytes) -> "asyncio.Future[float]":
        """When the mark came."""
        self.mark, self._tail = mark, b""
        self.found = asyncio.get_running_loop().create_future()
        return self.found

    def data_received(self, data: bytes) -> None:
        if not self.begun.done() and b"retry:" in data:
            self.begun.set_result(None)
            if self.is_deaf and self.transport is not None:
                self.transport.pause_reading()
        if self.mark is not None and self.found is not None:
            seen = self._tail + data
            self._tail = seen[-len(self.mark) :]
            if self.mark in seen and not self.found.done():
                self.found.set_result(time.perf_counter())

    def connection_lost(self, error: Exception | None) -> None:
        if not self.begun.done():
            self.begun.set_exception(ConnectionError("no stream"))
            self.begun.exception()


async def follow(port: int, path: str, many: int, token: str, *, is_deaf: bool = False) -> list[Follower]:
    """So many followers, once all of them have begun."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()
    loop, found = asyncio.get_running_loop(), []
    for _ in range(many):
        wire = socket.socket()
        if is_deaf:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.setblocking(False)
        await loop.sock_connect(wire, ("127.0.0.1", port))
        _, follower = await loop.create_connection(lambda: Follower(request, is_deaf=is_deaf), sock=wire)
        found.append(follower)
    await asyncio.gather(*(each.begun for each in found))
    return found


def leave(followers: Sequence[Follower]) -> None:
    for each in followers:
        if each.transport is not None:
            each.transport.abort()


class Caller:
    """Posts JSON on a connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> "Caller":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def write(self, path: str, body: object) -> None:
        assert self._writer is not None
        raw = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        self._writer.write(head.encode() + raw)

    async def post(self, path: str, body: object) -> bytes:
        """Raises AssertionError for an answer that is no success."""
        assert self._reader is not None
        self.write(path, body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 2"), head
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return await self._reader.readexactly(length)

    async def until(self, mark: bytes) -> float:
        """When a mark came in what is being answered; then the rest of the answer is read."""
        assert self._reader is not None
        seen = b""
        while mark not in seen:
            data = await self._reader.read(65536)
            assert data, seen
            seen += data
        when = time.perf_counter()
        while not seen.endswith(b"0\r\n\r\n"):
            data = await self._reader.read(65536)
            assert data, seen
            seen = seen[-16:] + data
        return when

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
