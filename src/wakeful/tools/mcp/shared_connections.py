"""One connection for each server, principal and event loop: shared while it is used, closed when it has been idle.

It stays open for five minutes after its last run, so that the next one need not start the server again. It keeps no
loop alive: a loop that ends takes the connection with it at once.

A server that failed is left alone for a while, longer each time; only an answer from it makes up for its failures.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from wakeful.tools.mcp.failures import NotReached
from wakeful.tools.mcp.servers import Server, ServerLimits

if TYPE_CHECKING:
    from wakeful.tools.mcp.connection import Connection

_places: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, ServerLimits, str, str], ConnectionPlace]]" = (
    WeakKeyDictionary()
)


def place_of(server: Server, limits: ServerLimits, principal: str, tokens: Path) -> "ConnectionPlace":
    """The one place of this server on the running loop."""
    places = _places.setdefault(asyncio.get_running_loop(), {})
    key = (server.key, limits, principal, str(tokens))
    place = places.get(key)
    if place is None:
        place = places[key] = ConnectionPlace(server, limits, principal, tokens)
    return place


class ConnectionPlace:
    """Where a connection is, or will be."""

    def __init__(self, server: Server, limits: ServerLimits, principal: str, tokens: Path) -> None:
        self._server = server
        self._limits = limits
        self._principal = principal
        self._tokens = tokens
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._last = ""

    def take(self) -> None:
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def give_back(self) -> None:
        self._users -= 1
        if self._users == 0 and self._connection is not None:
            if not self._limits.idle_seconds:
                await self._close()
                return
            self._idle = asyncio.get_running_loop().call_later(self._limits.idle_seconds, self._begin_to_close)

    def _begin_to_close(self) -> None:
        self._idle = None
        self._closing = asyncio.ensure_future(self._close())

    async def _close(self) -> None:
        async with self._opening:
            connection = self._connection
            if self._users == 0 and connection is not None:
                self._connection = None
                await connection.close()

    @asynccontextmanager
    async def used(self) -> AsyncIterator["Connection"]:
        """A connection that is open now. Raises NotReached."""
        self.take()
        try:
            yield await self._open()
        finally:
            await self.give_back()

    def answered(self) -> None:
        """The server is well."""
        self._failures = 0

    async def _open(self) -> "Connection":
        async with self._opening:
            connection = self._connection
            if connection is not None:
                if not connection.ended.is_set():
                    return connection
                self._connection = None
                await connection.close()
                self._failed("its connection ended")
            loop = asyncio.get_running_loop()
            wait = self._not_before - loop.time()
            if wait > 0:
                raise NotReached(f"{self._last}; it is tried again in {wait:.0f} s")
            connection = await self._made()
            try:
                await connection.open()
            except NotReached as problem:
                self._failed(problem.message)
                raise
            self._connection = connection
            return connection

    async def _made(self) -> "Connection":
        # The SDK takes most of a second to load: other turns go on meanwhile.
        await asyncio.to_thread(__import__, "wakeful.tools.mcp.connection")
        from wakeful.tools.mcp.connection import Connection

        return Connection(self._server, self._limits, self._principal, self._tokens)

    def _failed(self, why: str) -> None:
        waits = self._limits.retry_seconds
        self._failures += 1
        self._not_before = asyncio.get_running_loop().time() + waits[min(self._failures, len(waits)) - 1]
        self._last = why
