"""A server on this machine that takes notices."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from wakeful import Runtime
from wakeful.testing import FixedClock


class Receiver:
    """A server on this machine that takes notices."""

    def __init__(self) -> None:
        self.status = 200
        self.got: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        self.got.append(json.loads(await reader.readexactly(int(fields["content-length"]))))
        self.keys.append(fields["idempotency-key"])
        writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?token=secret"
    async with server:
        yield receiver


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()
