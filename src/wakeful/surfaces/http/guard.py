"""The door: who asks, from where, with how much. What does not get past it has no effect, whatever it asks for.

In order: the name of the host that the client wanted, the page it came from, who it is, how large and how deep its body
is and how long it takes to arrive. A body is whole before anything acts on it.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from wakeful._version import __version__
from wakeful.contracts.errors import InvalidConfig
from wakeful.service.access import Caller, TokenBook, local_caller
from wakeful.service.operations.answers import SHUTTING_DOWN
from wakeful.surfaces.http.error_answers import HttpProblem, problem

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/health",)
DELIVERIES = "/callbacks/"
"""Deliveries: the address is the secret, and the body is the sender's."""
MAX_BODY = 1_000_000
MAX_DEPTH = 64
BODY_SECONDS = 15.0
LINGER_SECONDS = 1.0
LINGER_BYTES = 4 * MAX_BODY


class LocalPeer(str):
    """The address of a client that came through the socket of the home; its port is the number of its user. It is a
    type of its own: no text of a header is one."""

    __slots__ = ()


PEER = LocalPeer("local")
HEADERS = "headers"
"""In the state of a request: its headers as text, their names in small letters."""
BODY = "body"
"""In the state of a request: its whole body. A server that has it before the door is opened puts it there."""
AT_ONCE = "at_once"
"""In the state of a request, where its server can do it: writes JSON as an answer in one piece, and says whether it
did."""
TOKEN = "token"
"""What the caller came with: a stream that stays open is looked after by it."""
REFUSALS = "refusals"
"""Where refusals are counted, for those behind the door."""
API_VERSION = "1"
SLASH = "\ue02f"
"""Stands for an encoded slash in a path while a route is looked for: a name that has one is still one name."""
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?+|[\[\]{}]', re.DOTALL)
"""Texts as a whole, so that brackets inside them are not counted, and brackets. No place is looked at twice, also where
a text has no end."""
MARKS = (
    (b"wakeful-api", API_VERSION.encode()),
    (b"wakeful-version", __version__.encode()),
    (b"x-content-type-options", b"nosniff"),
)
KEPT_BY_NOBODY = (b"cache-control", b"no-store")
_SINGLE = (
    b"host",
    b"authorization",
    b"origin",
    b"content-type",
    b"content-length",
    b"idempotency-key",
    b"last-event-id",
)
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(slots=True)
class Guard:
    """The application behind the door."""

    app: App
    tokens: TokenBook
    hosts: frozenset[str]
    """Names under which clients on the network may call this server."""
    origins: frozenset[str] = frozenset()
    """Pages that may call it, besides its own."""
    refused: "Counter[str]" = field(default_factory=Counter)
    """What was refused, by code."""
    body_seconds: float = BODY_SECONDS
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: a request that is cut off then was cut off by that."""
    _has_looked: bool = False
    """At the file of tokens, in this pass of the loop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        marked = MarkedSend(send)
        try:
            await self._let_in(scope, receive, marked)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not self.closing.is_set():
                raise
            task.uncancel()
            if not marked.has_begun:
                await answer(marked, cut_off())

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.setdefault("state", {})
        state[REFUSALS] = self.refused
        headers = state[HEADERS] = _headers(scope)
        if b"%2f" in (raw := scope.get("raw_path", b"").lower()) and raw.isascii():
            scope["path"] = unquote(_ENCODED_SLASH.sub(SLASH, scope["raw_path"].decode("ascii")))
        refusal = _ambiguous(scope, headers) or self._foreign(scope, headers) or self._unknown(scope, headers)
        if refusal is None and scope["method"] in _CHANGING:
            refusal = self._wrong_content(scope, headers)
        if refusal is None:
            body = state.get(BODY)
            if body is None:
                body = await self._body(receive, headers)
            if isinstance(body, HttpProblem):
                refusal = body
            else:
                state[BODY], receive = body, _again(body, receive)
                if _depth(body) > MAX_DEPTH and not _is_delivery(scope):
                    refusal = problem(
                        422, "too_deep", f"the body is nested more than {MAX_DEPTH} levels deep", "Send less."
                    )
        if refusal is not None:
            count_refusal(scope, refusal)
            if state.get(BODY) is None:  # it is still coming
                await _read_rest(receive)
            await answer(send, refusal)
            return
        await self.app(scope, receive, send)

    def _foreign(self, scope: Scope, headers: Mapping[str, str]) -> HttpProblem | None:
        """A name that is not ours, or a page that is not ours: somebody's browser was made to call."""
        if _is_local(scope):
            return None
        host = _host_name(headers.get("host", ""))
        if host not in self.hosts:
            return problem(
                421,
                "foreign_host",
                f"this server is not called {host!r}",
                "Use its address, or start it with --advertise.",
            )
        origin, said = headers.get("origin"), headers.get("host", "")
        if origin is not None and origin not in (*self.origins, f"http://{said}", f"https://{said}"):
            return problem(
                403, "foreign_origin", "the request comes from another site's page", "Call it from a program."
            )
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return problem(403, "cross_site", "the request comes from another site's page", "Call it from a program.")
        return None

    def _unknown(self, scope: Scope, headers: Mapping[str, str]) -> HttpProblem | None:
        """Set `caller`. Nobody without a token gets further, but to what is open to all."""
        if _is_local(scope):
            scope["state"]["caller"] = local_caller(scope["client"][1])
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        try:
            caller = self._caller(token.strip()) if kind.lower() == "bearer" else None
        except InvalidConfig:
            return problem(
                503, "tokens_unreadable", "the tokens of this home cannot be read", "Look there: wakeful token list"
            )
        if caller is not None:
            scope["state"] |= {"caller": caller, TOKEN: token.strip()}
            return None
        if scope["path"] in OPEN_PATHS or _is_delivery(scope):
            scope["state"]["caller"] = Caller("anonymous", frozenset())
            return None
        if kind:
            return token_refused()
        return problem(
            401,
            "token_missing",
            "a token is needed here",
            "Send `Authorization: Bearer TOKEN`; make one with: wakeful token create NAME",
        )

    def _caller(self, token: str) -> Caller | None:
        """Whose token it is. One look at the file is for all requests that wait for their turn in the loop: they had
        arrived before it, and what arrives after it has its turn after `_look_again`. Raises InvalidConfig."""
        looks = not self._has_looked
        found = self.tokens.caller(token, looks=looks)
        if looks:
            self._has_looked = True
            asyncio.get_running_loop().call_soon(self._look_again)
        return found

    def _look_again(self) -> None:
        self._has_looked = False

    def _wrong_content(self, scope: Scope, headers: Mapping[str, str]) -> HttpProblem | None:
        """A form of another site's page can send anything but JSON."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json" or _is_delivery(scope):
            return None
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if not has_body and not kind:
            return None
        return problem(
            415, "not_json", f"the body is {kind or 'of no known type'}", "Send `Content-Type: application/json`."
        )

    async def _body(self, receive: Receive, headers: Mapping[str, str]) -> bytes | HttpProblem:
        said = headers.get("content-length", "")
        if said.isascii() and said.isdigit() and int(said) > MAX_BODY:
            return _too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return problem(400, "cut_off", "the body did not arrive whole", "Send it again.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > MAX_BODY:
                        return _too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            return problem(
                408,
                "too_slow",
                f"the body took longer than {self.body_seconds:g} seconds",
                "Send it again.",
                retryable=True,
            )


def cut_off() -> HttpProblem:
    """The server ends and can wait no longer: nobody says whether the request had its effect."""
    return problem(
        503,
        SHUTTING_DOWN,
        "the daemon is shutting down, and this request was not done in time",
        "Ask again once it runs; with the same Idempotency-Key it is done once.",
        retryable=True,
    )


def token_refused() -> HttpProblem:
    return problem(401, "token_refused", "the token is not valid here", "Make one: wakeful token create NAME")


def _too_large() -> HttpProblem:
    return problem(413, "too_large", f"the body is larger than {MAX_BODY:,} bytes", "Send less.")


async def answer(send: Send, refusal: HttpProblem) -> None:
    """Send an error, and close the connection: what else it may hold is not read."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(refusal.body)).encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="wakeful"'))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})


async def _read_rest(receive: Receive) -> None:
    """A client that is still sending when the connection is closed would lose the answer: what it sends is dropped,
    for a while."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while size <= LINGER_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


def count_refusal(scope: Scope, refusal: HttpProblem) -> None:
    """One more was refused for this reason."""
    counted: Counter[str] = scope["state"][REFUSALS]
    counted[refusal.words.code] += 1


def caller_of(scope: Scope) -> Caller:
    """Who asks, as the door found out."""
    found: Caller = scope["state"]["caller"]
    return found


def _is_local(scope: Scope) -> bool:
    client = scope.get("client") or ("", 0)
    return isinstance(client[0], LocalPeer)


def _is_delivery(scope: Scope) -> bool:
    return bool(scope["path"].startswith(DELIVERIES))


def _ambiguous(scope: Scope, headers: Mapping[str, str]) -> HttpProblem | None:
    """A header that decides about the request and stands there twice: whoever is in between may believe the other."""
    if len(headers) == len(scope["headers"]):
        return None
    said = Counter(name.lower() for name, _ in scope["headers"])
    twice = next((name.decode() for name in _SINGLE if said[name] > 1), None)
    if twice is None:
        return None
    return problem(400, "bad_http", f"the header {twice} is given twice", "Send it once.")


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


@lru_cache(maxsize=64)
def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _depth(body: bytes) -> int:
    """How deep brackets are nested, as far as it matters: looked at before anything parses it."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return 0
    deepest = level = 0
    for found in _BRACKETS.finditer(body):
        byte = found[0][0]
        if byte in b"[{":
            level += 1
            deepest = max(deepest, level)
            if deepest > MAX_DEPTH:
                break
        elif byte in b"]}":
            level -= 1
    return deepest


def _again(body: bytes, receive: Receive) -> Receive:
    """The body for whoever is behind the door, then what the connection says."""
    given = False

    async def read() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return read


class MarkedSend:
    """Every answer says which interface and which version it is of, and is kept by nobody."""

    __slots__ = ("_send", "has_begun")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = [*message.get("headers", ()), *MARKS]
            if b"cache-control" not in [name for name, _ in headers]:
                headers.append(KEPT_BY_NOBODY)
            message = {**message, "headers": headers}
        await self._send(message)
