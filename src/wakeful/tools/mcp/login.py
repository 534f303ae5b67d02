"""Logging in to a server: a person goes to an address, and the browser brings the answer to this machine.

Only this asks a person. What was granted is kept by server and principal, and used by calls from then on.
"""

import asyncio
from collections.abc import Callable
from html import escape
from urllib.parse import parse_qs, urlsplit

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.mcp.connection import Connection
from wakeful.tools.mcp.oauth import Ask, BrowserGrant, redirect_uri
from wakeful.tools.mcp.servers import HttpServer
from wakeful.tools.mcp.source import McpSource

MAX_REQUEST_BYTES = 16 * 1024


async def log_in(source: McpSource, ask: Ask, principal: str | None = None) -> None:
    """Get permission to use a server. Raises NotReached when it is not given, InvalidConfig when it has no OAuth."""
    connection = Connection(_with_login(source), source.limits, principal or source.principal, source.tokens, ask)
    await connection.open()
    await connection.close()


async def browser_login(source: McpSource, show: Callable[[str], None], principal: str | None = None) -> None:
    """The same, with the browser of whoever is shown the address."""
    await log_in(source, in_a_browser(_with_login(source), show), principal)


def _with_login(source: McpSource) -> HttpServer:
    server = source.server
    if not isinstance(server, HttpServer) or server.oauth is None:
        raise InvalidConfig(f"the MCP server {server.name!r} has no login", "say oauth=True, or headers= with a key")
    return server


def in_a_browser(server: HttpServer, show: Callable[[str], None]) -> Ask:
    """Shows the address, and listens on this machine for the one request that brings the answer."""

    async def ask(url: str) -> BrowserGrant:
        parts = urlsplit(redirect_uri(server))
        answer: asyncio.Future[BrowserGrant] = asyncio.get_running_loop().create_future()

        async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                line = (await reader.readuntil(b"\r\n")).decode("latin-1")
                status, words, granted = _understood(line, parts.path)
                body = f"<!doctype html><title>wakeful</title><p>{escape(words)}</p>"
                head = f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n"
                writer.write((head + body).encode())
                await writer.drain()
                if granted is not None and not answer.done():
                    answer.set_result(granted)
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
                pass  # somebody else knocked
            finally:
                writer.close()

        try:
            listening = await asyncio.start_server(visited, parts.hostname, parts.port, limit=MAX_REQUEST_BYTES)
        except OSError as error:
            raise InvalidConfig(
                f"port {parts.port}, where the browser should bring the answer, cannot be used: {error}",
                "give another: oauth with redirect_port",
            ) from None
        async with listening:
            show(url)
            return await answer

    return ask


def _understood(line: str, path: str) -> tuple[str, str, BrowserGrant | None]:
    method, _, rest = line.partition(" ")
    asked = urlsplit(rest.partition(" ")[0])
    if method != "GET" or asked.path != path:
        return "404 Not Found", "There is nothing here.", None
    given = {name: values[0] for name, values in parse_qs(asked.query).items()}
    if "code" not in given:
        return "200 OK", "Access was not granted. You can close this window.", BrowserGrant("", given.get("state"))
    words = "wakeful is logged in. You can close this window."
    return "200 OK", words, BrowserGrant(given["code"], given.get("state"), given.get("iss"))
