"""One session with one server on one event loop, opened and closed by one task of its own.

Calls come from any task of the loop. Every wait is bounded: for the handshake, for a list, for an answer. A call that
is given up tells the server so. What a failure means for the call is in its class (`failures`).
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.client import Client, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from wakeful._version import __version__
from wakeful.contracts.errors import WakefulError
from wakeful.tools.mcp.failures import (
    AnswerLate,
    AnswerLost,
    BadAnswer,
    NotReached,
    ServerProblem,
    ServerRefusal,
    SessionGone,
)
from wakeful.tools.mcp.http import Signs, client_for
from wakeful.tools.mcp.oauth import Ask, Login
from wakeful.tools.mcp.servers import HttpServer, Server, ServerLimits, StdioServer, without_secrets
from wakeful.tools.mcp.stdio import Tail, running
from wakeful.tools.mcp.tool_list import ListedTool, ToolList, fingerprint

OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
PERSON_SECONDS = 600.0
"""How long a person may take to log in."""
CLOSE_SECONDS = 20.0
LAST_WORDS_SECONDS = 0.5


class Connection:
    """A session. `open` it, use it, `close` it; when it has `ended` it is of no more use."""

    def __init__(
        self, server: Server, limits: ServerLimits, principal: str, tokens: Path, ask: Ask | None = None
    ) -> None:
        self.server = server
        self.ended = asyncio.Event()
        """Set when the server is gone, or this side has had enough."""
        self.tail = Tail()
        self._limits = limits
        self._principal = principal
        self._tokens = tokens
        self._ask = ask
        self._signs = Signs()
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._problem: ServerProblem | None = None
        self._listing: ToolList | None = None
        self._ask_once = asyncio.Lock()

    async def open(self) -> None:
        """Raises NotReached, with the server's own last words."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready), name=f"wakeful-mcp-{self.server.name}")
        try:
            await asyncio.shield(ready)
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            if ready.done() and not ready.cancelled():
                ready.exception()  # seen, also by a caller that was cancelled

    async def close(self) -> None:
        """End the session and whatever was started for it. Does not raise; bounded."""
        self.ended.set()
        owner = self._owner
        if owner is None or owner.done():
            return
        done, _ = await asyncio.wait({owner}, timeout=CLOSE_SECONDS)
        if not done:
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_SECONDS)

    @property
    def protocol(self) -> str | None:
        """The revision that both speak."""
        return self._client.protocol_version if self._client is not None else None

    # --- the task that owns the session ------------------------------------------------------------------------------

    async def _own(self, ready: "asyncio.Future[None]") -> None:
        seconds = self._limits.connect_seconds if self._ask is None else PERSON_SECONDS
        try:
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(seconds):
                        self._client = await self._entered(stack)
                except TimeoutError:
                    raise NotReached(f"it did not answer within {seconds:g} s") from None
                if not ready.done():
                    ready.set_result(None)
                await self.ended.wait()
        except BaseException as error:
            self._problem = self._why(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._client = None
            self.ended.set()
            if not ready.done():
                ready.set_exception(self._problem or NotReached("it was closed while it was being opened"))

    async def _entered(self, stack: AsyncExitStack) -> Client:
        return await stack.enter_async_context(
            Client(
                await self._transport(stack),
                mode="legacy" if self.server.protocol == "2025-11-25" else self.server.protocol,
                client_info=types.Implementation(name="wakeful", version=__version__),
                message_handler=self._heard,
                cache=None,
            )
        )

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server, limits = self.server, self._limits
        if isinstance(server, StdioServer):
            return running(server, self.tail, self.ended, limits)
        auth = Login(server, self._principal, self._tokens, self._ask) if server.oauth is not None else None
        client = await stack.enter_async_context(client_for(server, self._signs, limits, auth=auth))
        return streamable_http_client(server.url, http_client=client, max_sse_event_size=limits.message_bytes)

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._listing = None

    def _why(self, error: BaseException) -> ServerProblem:
        """Why there is no session, in words that hold no secret."""
        for each in _flat(error):
            if isinstance(each, ServerProblem):
                return NotReached(self._with_last_words(each.message))
            if isinstance(each, WakefulError):
                return NotReached(each.message)
            if isinstance(each, MCPError):
                meant = self._meaning(each)
                return NotReached(
                    meant.message if isinstance(meant, AnswerLost) else self._with_last_words(meant.message)
                )
        name = type(_flat(error)[0]).__name__
        return NotReached(self._with_last_words(f"the connection could not be made or broke ({name})"))

    def _with_last_words(self, text: str) -> str:
        more = [self.tail.note] if self.tail.note else []
        said = self.tail.text()
        if said:
            more.append(f"its last words: {said[-500:]}")
        return without_secrets("; ".join((text, *more)), self.server)

    # --- what is asked of it -----------------------------------------------------------------------------------------

    async def listing(self, *, fresh: bool = False) -> ToolList:
        """Its tools; asked again when it said that they changed, or when `fresh`. Raises a ServerProblem."""
        async with self._ask_once:
            if fresh or self._listing is None:
                self._listing = None
                listing = await self._bounded(self._pages(), self._limits.list_seconds)
                self._listing = listing
            return self._listing

    async def call(
        self, name: str, arguments: dict[str, Any], seconds: float, on_progress: OnProgress
    ) -> types.CallToolResult:
        """Call a tool, with progress always asked for. Cancelling it, or its time being over, tells the server."""

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message)

        client = self._current()
        asked = client.call_tool(name, arguments, progress_callback=progressed)
        result: types.CallToolResult = await self._bounded(asked, seconds)
        return result

    def _current(self) -> Client:
        client = self._client
        if client is None or self.ended.is_set():
            problem = self._problem
            raise NotReached(problem.message if problem else self._with_last_words("its connection has ended"))
        return client

    async def _pages(self) -> ToolList:
        client = self._current()
        found: list[ListedTool] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(self._limits.pages):
            page = await client.list_tools(cursor=cursor)
            room = self._limits.tools - len(found)
            found += [_listed(tool) for tool in page.tools[:room]]
            cursor = page.next_cursor
            if cursor is None and len(page.tools) <= room:
                return ToolList(tuple(found))
            if len(page.tools) > room or cursor in seen or cursor is None:
                break
            seen.add(cursor)
        return ToolList(tuple(found), f"its list does not end: {len(found):,} tools were taken and no more is read")

    async def _bounded(self, asked: Any, seconds: float) -> Any:
        problem: ServerProblem
        try:
            async with asyncio.timeout(seconds):
                return await asked
        except TimeoutError:
            problem = AnswerLate(f"it did not answer within {seconds:g} s")
        except MCPError as error:
            await self._let_it_finish()
            problem = self._meaning(error)
        except (ValidationError, RuntimeError, ValueError) as error:
            if self.ended.is_set():
                problem = AnswerLost(self._with_last_words("its connection ended"))
            else:
                said = without_secrets(_short(str(error)), self.server)
                problem = BadAnswer(f"its answer is not valid: {said}")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            problem = AnswerLost(self._with_last_words("its connection ended"))
        if isinstance(problem, SessionGone):
            self.ended.set()
        raise problem

    async def _let_it_finish(self) -> None:
        """A server that died may have said why: its last words come a moment after its end."""
        if self.ended.is_set() and self._owner is not None:
            await asyncio.wait({self._owner}, timeout=LAST_WORDS_SECONDS)

    def _meaning(self, error: MCPError) -> ServerProblem:
        """An error by its number: our own signs first, then what the session says, then the server's own."""
        code, words = error.code, without_secrets(_short(error.message), self.server)
        if code == self._signs.not_reached:
            return NotReached(words)
        if code == self._signs.session_gone:
            return SessionGone(words)
        if code == self._signs.lost:
            return AnswerLost(words)
        if code == types.CONNECTION_CLOSED and (self.ended.is_set() or isinstance(self.server, HttpServer)):
            return AnswerLost(self._with_last_words(words))
        return ServerRefusal(words, code)


def _listed(tool: types.Tool) -> ListedTool:
    hints = tool.annotations
    return ListedTool(
        name=tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        read_only=hints.read_only_hint if hints else None,
        destructive=hints.destructive_hint if hints else None,
        idempotent=hints.idempotent_hint if hints else None,
        open_world=hints.open_world_hint if hints else None,
        fingerprint=fingerprint(
            tool.description, tool.input_schema, hints.model_dump(by_alias=True, exclude_none=True) if hints else {}
        ),
    )


def _flat(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [each for inner in error.exceptions for each in _flat(inner)]
    return [error]


def _short(text: str) -> str:
    return " ".join(text.split())[:500]
