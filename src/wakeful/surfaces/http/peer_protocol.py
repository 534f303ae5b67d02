"""HTTP on one connection: who is at the other end, how long they may take to begin, and how much of a head is held.

The parser (httptools, in C) sets no limit to a head: what it holds without handing anything over is counted here.
A request that comes whole is handed over whole, and the head of an answer leaves with the first bytes of its body. The
usual answer of a route that takes a body is written at once, without the messages of ASGI.

No other protocol is spoken here. Clients that offer one with a request (`Upgrade: h2c`, as those of Java do) are
answered as if they had not. The parser would take what follows such an offer, the body too, for that other protocol:
so the head is read again without it.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wakeful.surfaces.http.connections import BoundedConnection
from wakeful.surfaces.http.error_answers import problem
from wakeful.surfaces.http.guard import AT_ONCE, BODY, KEPT_BY_NOBODY, MARKS, PEER, Guard

CUT_SECONDS = 2.0
"""How long, once the server ends, a client may take to read what was written for it."""
HELD_BYTES = 65_536
"""How much of a head, or of what follows a body, may arrive before it is whole."""
_CREDENTIALS = getattr(socket, "SO_PEERCRED", None)


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([name + b": " + value + b"\r\n" for name, value in headers])


_JSON_HAS = _lines(((b"content-type", b"application/json"), *MARKS, KEPT_BY_NOBODY))


class _JoinedWrites:
    """A transport that keeps the head of an answer until what follows it is written, or until nothing else is to do.

    Nothing is written for a client that has gone: the loop would log each of these writes.
    """

    __slots__ = ("_call_soon", "_held", "_transport", "is_closing", "is_head")

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._call_soon = transport, loop.call_soon
        self._held = b""
        self.is_closing = transport.is_closing
        self.is_head = False
        """The next bytes begin an answer. Where they do not after all, they leave a moment later."""

    def write(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        elif self.is_head:
            self.is_head, self._held = False, data
            self._call_soon(self._flush)
            return
        if not self.is_closing():
            self._transport.write(data)

    def write_whole(self, data: bytes) -> None:
        """An answer with its head and its body."""
        self.is_head = False
        if self._held:
            data, self._held = self._held + data, b""
        if not self.is_closing():
            self._transport.write(data)

    def _flush(self) -> None:
        if self._held:
            data, self._held = self._held, b""
            if not self.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PeerProtocol(BoundedConnection, HttpToolsProtocol):
    """HTTP that knows who is at the other end of the home's socket, and gives nobody for ever to say what it wants."""

    _cutting: asyncio.TimerHandle | None = None
    _keeping: asyncio.TimerHandle | None = None
    """Ends a connection on which nothing is asked any more."""
    _idle_since = 0.0
    """By the clock of the loop: when the newest answer was complete."""
    _held = 0
    _is_in_head = False
    _offer: bytes | None = None
    """The head of a request that offers another protocol, without that offer."""
    _defaults: Sequence[tuple[bytes, bytes]] | None = None
    """Headers that the server has for all answers, the same object for a second."""
    _beginning = b""
    """How an answer without an error begins with these."""
    _is_new = False
    """The head of the request came with the bytes that are being read: nothing has been done about it yet."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport = self._writes = _JoinedWrites(transport, self.loop)
        found = transport.get_extra_info("socket")
        if found is not None and found.family == socket.AF_UNIX:
            self.client = (PEER, _peer(found))
        else:
            self.network.enter(self)
        self.await_head()

    def data_received(self, data: bytes) -> None:
        self._held += len(data)
        try:
            self._feed(data)
        except HttpParserError:
            self.send_400_response("invalid HTTP request received")
            return
        self._is_new = False
        if self._head is not None or self.is_idle:
            self.look_at_head()
        if self._held > HELD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"more than {HELD_BYTES:,} bytes of headers")

    def _feed(self, data: bytes) -> None:
        """Read what came. Raises HttpParserError."""
        while data:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as offer:
                if self._offer is None:  # a tunnel
                    raise HttpParserError("CONNECT") from None
                data, head, self._offer = data[offer.args[0] :], self._offer, None
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
                self.parser.feed_data(head)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told in the shape of every error, and counted: a line for each would let anybody fill the
        log. Where an answer is under way, nothing can be said."""
        if isinstance(self.app, Guard):
            self.app.refused["bad_http"] += 1
        if self.is_idle or not self.cycle.response_started:
            body = problem(400, "bad_http", msg.rstrip(".").lower(), "Send a request of HTTP/1.1.").body
            headers = (
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                *MARKS,
            )
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + _lines(headers) + b"\r\n" + body)
        self.transport.close()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """What comes after a body says nothing about the request: the door has looked at its headers."""
        if not self._is_in_head:
            return
        name = name.lower()
        if name == b"expect":
            super().on_header(name, value)
        else:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            self._offer = self._head_without_offer() if self.parser.get_method() != b"CONNECT" else None
            return
        self._held, self._is_in_head = 0, False
        self._is_new = self._writes.is_head = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._held = 0
        if self._is_new:
            self.cycle.body += body  # nobody waits for it yet
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._held = 0
        if not self._is_new:
            super().on_message_complete()
            return
        cycle, state = self.cycle, self.scope["state"]
        state[BODY], cycle.body, cycle.more_body = bytes(cycle.body), bytearray(), False
        state[AT_ONCE] = self._answer_at_once

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """As in uvicorn, where the loop calls something more at the end of each task."""
        cycle.task = self.loop.create_task(self._run(cycle, app))
        self.tasks.add(cycle.task)

    async def _run(self, cycle: Any, app: Any) -> None:
        try:
            await cycle.run_asgi(app)
        finally:
            self.tasks.discard(cycle.task)

    def _head_without_offer(self) -> bytes:
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(each for each in map(bytes.strip, value.split(b",")) if each.lower() != b"upgrade")
            if value and name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join((*lines, b"", b""))

    def _answer_at_once(self, scope: Any, body: bytes) -> bool:
        """Write JSON that is no error in one piece: what `cycle.send` does with the two messages of `JsonAnswer`.
        False: nothing was done, and it has to take that way."""
        cycle = self.cycle
        if cycle.scope is not scope or cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
            return False  # another request has come behind it, or its client does not read and is waited for there
        if cycle.access_log or not cycle.keep_alive:
            return False
        if cycle.default_headers is not PeerProtocol._defaults:
            PeerProtocol._defaults = cycle.default_headers  # others in each second
            PeerProtocol._beginning = b"HTTP/1.1 200 OK\r\n" + _lines(cycle.default_headers)
        self._writes.write_whole(
            b"%bcontent-length: %d\r\n%b\r\n%b" % (PeerProtocol._beginning, len(body), _JSON_HAS, body)
        )
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.on_response()
        return True

    def on_response_complete(self) -> None:
        """As in uvicorn, with one timer for as long as a connection is used: a timer for each answer is put into the
        loop's heap, and taken out again by the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self._keeping is None:
            self._keeping = self.loop.call_later(self.timeout_keep_alive, self._look_whether_idle)

    def _look_whether_idle(self) -> None:
        self._keeping = None
        if not self.is_idle or self._head is not None:
            return  # the next answer sets it again, or the head that has begun is late
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._keeping = self.loop.call_later(left, self._look_whether_idle)
        else:
            self.timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """The server ends. A reader that does not take what is written for it is waited for no longer than others."""
        super().shutdown()
        self.forget_head()
        self._cutting = self.loop.call_later(CUT_SECONDS, self._cut)

    def _cut(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget_head()
        for timer in (self._cutting, self._keeping):
            if timer is not None:
                timer.cancel()
        self.network.leave(self)
        super().connection_lost(exc)


def _peer(connection: Any) -> int:
    """The user at the other end, as the kernel says."""
    if _CREDENTIALS is None:
        return os.getuid()  # the socket can be opened by its owner alone
    data = connection.getsockopt(socket.SOL_SOCKET, _CREDENTIALS, 12)
    return int.from_bytes(data[4:8], sys.byteorder)
