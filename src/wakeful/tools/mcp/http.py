"""HTTP as servers are spoken to: to judged addresses, in answers of bounded size, one request's failure its own.

The SDK ends a whole session when one request fails on the way. Here such a failure is answered as an error of that
request alone, with a number that only this process knows, so that no server can pretend one.
"""

import json
import logging
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from wakeful._version import __version__
from wakeful.tools.mcp.addresses import AddressRefused, Destinations
from wakeful.tools.mcp.servers import HttpServer, ServerLimits

FAILED = "wakeful.failed"
"""An extension of a request that is not to be sent: why it cannot be."""
SESSION = "mcp-session-id"
ERROR_BYTES = 64 * 1024
TALKATIVE = ("httpcore2", "httpx2", "mcp.client.auth", "mcp.client.streamable_http")
"""Their lines show addresses with their queries, headers as they come, and failed logins with all they hold."""
SHORT = {"connect": 10.0, "read": 30.0, "write": 30.0, "pool": 10.0}
WORDS_FOR = {401: "it requires a login or a key", 403: "it refuses access", 429: "its rate limit was reached"}


def _code() -> int:
    return -33_000_000 - secrets.randbelow(1 << 40)


@dataclass(slots=True)
class Signs:
    """Error numbers for what happened on the way, drawn anew for each connection."""

    not_reached: int = field(default_factory=_code)
    session_gone: int = field(default_factory=_code)
    lost: int = field(default_factory=_code)


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends in an error when it grows beyond its bound."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int | None) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if self._most is not None and size > self._most:
                raise httpx2.ReadError(f"the answer is larger than {self._most:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class JudgedTransport(httpx2.AsyncBaseTransport):
    """Connects to the address that was judged, under the name that was asked for."""

    def __init__(self, destinations: Destinations, signs: Signs, limits: ServerLimits, *, has_login: bool) -> None:
        self._destinations = destinations
        self._signs = signs
        self._limits = limits
        self._has_login = has_login
        self._by_host: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if FAILED in request.extensions:  # a login that came to nothing: this is its answer
            return _answer(self._signs.not_reached, str(request.extensions[FAILED]))
        spoken = request.method == "POST" and request.headers.get("content-type", "").startswith("application/json")
        try:
            response = await self._sent(request, spoken)
        except (AddressRefused, OSError, httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            if _is_stream(request):
                raise httpx2.ConnectError(str(error)) from None
            return _answer(
                self._signs.not_reached, f"{request.url.host} cannot be reached: {str(error) or 'no answer'}"
            )
        except (httpx2.TransportError, httpx2.StreamError) as error:
            if _is_stream(request):
                raise
            return _answer(self._signs.lost, f"the connection broke: {str(error) or type(error).__name__}")
        return await self._judged(request, response) if spoken and response.status_code >= 400 else response

    async def _sent(self, request: httpx2.Request, spoken: bool) -> httpx2.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        addresses = await self._destinations.addresses_of(host, port)
        extensions = {**request.extensions, "sni_hostname": host}
        if not spoken and not _is_stream(request):
            extensions["timeout"] = SHORT  # logins and farewells: nobody else bounds them
        # One pool for each name: two names may share an address, and one's certificate says nothing about the other.
        pool = self._by_host.get(host)
        if pool is None:
            pool = self._by_host[host] = httpx2.AsyncHTTPTransport(trust_env=False)
        while True:
            address = addresses.pop(0)
            judged = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions=extensions,
            )
            try:
                response = await pool.handle_async_request(judged)
                break
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if not addresses:
                    raise
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":  # it was asked for plain: a few bytes could become gigabytes
            await response.aclose()
            raise httpx2.ReadError(f"the answer is encoded as {encoding[:20]!r}")
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, None if events else self._limits.message_bytes)
        if events:
            return response
        # Read here: a body that breaks off later would take the whole session with it.
        try:
            return httpx2.Response(response.status_code, headers=response.headers, content=await response.aread())
        finally:
            await response.aclose()

    async def _judged(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """A refusal, with what it means for the call. A JSON-RPC error in it is the server's own word and stays."""
        status = response.status_code
        if status == 401 and self._has_login:
            return response  # it is answered with a token
        if SESSION in request.headers and status == 404:
            return _answer(self._signs.session_gone, "it has ended this session")
        body = response.content[:ERROR_BYTES]
        if _is_rpc_error(body):
            kept = {"content-type": "application/json", **_challenge(response)}
            return httpx2.Response(status, headers=kept, content=body)
        words = f"HTTP {status}" + (f": {WORDS_FOR[status]}" if status in WORDS_FOR else "")
        if status >= 500:
            return _answer(self._signs.lost, f"it answered {words}")
        if status in WORDS_FOR:
            return _answer(self._signs.not_reached, f"it answered {words}", status, _challenge(response))
        return httpx2.Response(status, headers=_challenge(response), content=b"")

    async def aclose(self) -> None:
        for pool in self._by_host.values():
            await pool.aclose()


def client_for(
    server: HttpServer, signs: Signs, limits: ServerLimits, *, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """The client of one connection. No proxy, no cookie and no redirect comes between it and the server."""
    for name in TALKATIVE:
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.CRITICAL)
    destinations = Destinations(server.url, allow_private=server.allow_private)
    return httpx2.AsyncClient(
        transport=JudgedTransport(destinations, signs, limits, has_login=auth is not None),
        headers={"user-agent": f"wakeful/{__version__}", **server.headers, "accept-encoding": "identity"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        timeout=httpx2.Timeout(30.0, read=None),  # silence is bounded by whoever waits
        auth=auth,
        follow_redirects=False,
        trust_env=False,
    )


def _is_stream(request: httpx2.Request) -> bool:
    """The one long-lived request; the SDK minds its failures by itself."""
    return request.method == "GET" and "text/event-stream" in request.headers.get("accept", "")


def _answer(code: int, message: str, status: int = 502, headers: dict[str, str] | None = None) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message[:500]}}
    return httpx2.Response(
        status, headers={"content-type": "application/json", **(headers or {})}, content=json.dumps(body).encode()
    )


def _challenge(response: httpx2.Response) -> dict[str, str]:
    found = response.headers.get("www-authenticate")
    return {"www-authenticate": found} if found else {}


def _is_rpc_error(body: bytes) -> bool:
    try:
        data = json.loads(body)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("jsonrpc") == "2.0" and isinstance(data.get("error"), dict)
