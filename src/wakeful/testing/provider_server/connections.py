"""The sockets of the provider server: who listens, and how an answer leaves in bad weather.

Rule: bad weather is real. A refused connection finds nobody listening at the port, a cut answer lacks the end that HTTP
demands, a reset is a reset. While nobody listens the port stays taken, so that no other program gets it.
"""

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from wakeful.testing.provider_server.weather import FINE, Trouble

_LOOK = 0.02
"""Seconds between two looks at whether anybody is to listen."""
_BACKLOG = 256


class RequestBytes(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class WireDelivery:
    """An answer on its way."""

    status: int | None
    """None: no answer comes."""
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    chunked: bool = False
    """Each part is an event of a stream."""
    before_usage: int = 0
    """So many parts come before the counts."""
    trouble: Trouble = FINE
    record: Any = None


class Connections:
    """Listens on loopback until it is closed."""

    def __init__(
        self, port: int, answer: Callable[[RequestBytes], WireDelivery], nobody_listens: Callable[[], bool]
    ) -> None:
        self._answer = answer
        self._nobody_listens = nobody_listens
        self._refused_until = 0.0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._workers: set[threading.Thread] = set()
        self._socket = _bound(port)
        self._socket.listen(_BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        self._listens = True
        self._thread = threading.Thread(target=self._serve, name="provider-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nothing of it is left behind: no socket, no thread."""
        self.closing.set()
        self._thread.join()
        self._socket.close()
        self._drop_all()
        for worker in list(self._workers):
            worker.join()

    def refuse(self, seconds: float) -> None:
        """Nobody listens for so long, and from when this returns on."""
        self._refused_until = time.monotonic() + seconds
        while self._listens and time.monotonic() < self._refused_until:
            time.sleep(_LOOK / 10)

    # --- the listening thread -----------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self.closing.is_set():
            wanted = time.monotonic() >= self._refused_until and not self._nobody_listens()
            if wanted != self._listens:
                self._begin() if wanted else self._stop()
            if not self._listens:
                self.closing.wait(_LOOK)
                continue
            if not select.select([self._socket], [], [], _LOOK)[0]:
                continue
            with contextlib.suppress(OSError):
                connection, address = self._socket.accept()
                worker = threading.Thread(target=self._converse, args=(connection, address), daemon=True)
                with self._lock:
                    self._open.add(connection)
                    self._workers.add(worker)
                worker.start()

    def _begin(self) -> None:
        self._socket.listen(_BACKLOG)
        self._listens = True

    def _stop(self) -> None:
        """The socket that listens is closed; another one, which does not listen, keeps the port."""
        self._socket.close()
        self._socket = _bound(self.port)
        self._drop_all()
        self._listens = False

    def _drop_all(self) -> None:
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _converse(self, connection: socket.socket, address: Any) -> None:
        connections, answer = self, self._answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                delivery = answer(RequestBytes(self.command, self.path, dict(self.headers.items()), body))
                if not deliver(self, delivery, connections):
                    self.close_connection = True

            def do_GET(self) -> None:
                self.handle_any()

            def do_POST(self) -> None:
                self.handle_any()

            def log_message(self, format: str, *arguments: Any) -> None:
                """What was asked stands in the records."""

        try:
            with contextlib.suppress(OSError):
                Handler(connection, address, None)  # type: ignore[arg-type]
        finally:
            with self._lock:
                self._open.discard(connection)
                self._workers.discard(threading.current_thread())
            connection.close()


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    return made


def deliver(handler: BaseHTTPRequestHandler, delivery: WireDelivery, connections: Connections) -> bool:
    """Send an answer as its weather has it. False: the connection is over."""
    trouble = delivery.trouble
    if trouble.word == "refused":
        connections.refuse(trouble.number("seconds", 1))
    if trouble.word in ("refused", "reset"):
        _reset(handler.connection)
        return False
    if trouble.word == "hang":
        _hang(handler.connection, trouble, connections)
        return False
    parts, whole = _parts(delivery)
    handler.send_response(delivery.status or 200)
    for name, value in delivery.headers.items():
        handler.send_header(name, value)
    if delivery.chunked:
        handler.send_header("transfer-encoding", "chunked")
    else:
        handler.send_header("content-length", str(sum(map(len, delivery.parts))))
    handler.end_headers()
    pause = trouble.number("seconds", 0.05) if trouble.word == "drip" else 0
    *first, last = [b"%x\r\n%s\r\n" % (len(part), part) if delivery.chunked else part for part in parts] or [b""]
    for part in first:
        if pause and connections.closing.wait(pause):
            return False
        handler.wfile.write(part)
    if pause and connections.closing.wait(pause):
        return False
    is_whole = whole and trouble.word != "hang_inside"
    if is_whole and delivery.record is not None:  # before the last bytes are out: whoever has them finds it so
        delivery.record.delivered = len(parts) == len(delivery.parts)
    handler.wfile.write(last + (b"0\r\n\r\n" if is_whole and delivery.chunked else b""))
    if trouble.word == "hang_inside":
        _hang(handler.connection, trouble, connections)
    return is_whole


def _parts(delivery: WireDelivery) -> tuple[list[bytes], bool]:
    """What is sent of an answer, and whether HTTP's end of it is."""
    trouble, parts = delivery.trouble, [part for part in delivery.parts if part]
    if trouble.word not in ("cut", "hang_inside"):
        return parts, True
    clean = trouble.text("end") == "clean"
    if trouble.text("bytes") is not None:
        return [b"".join(parts)[: int(trouble.number("bytes", 0))]], clean and delivery.chunked
    if not delivery.chunked or len(parts) == 1:
        return [part[: len(part) // 2] for part in parts], clean and delivery.chunked
    middle = delivery.before_usage if trouble.text("at") else max(1, len(parts) // 2)
    return parts[: int(trouble.number("events", middle))], clean


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _hang(connection: socket.socket, trouble: Trouble, connections: Connections) -> None:
    """Wait until the time is over, the client has left, or the server is closed."""
    until = time.monotonic() + trouble.number("seconds", float("inf"))
    while time.monotonic() < until and not connections.closing.wait(_LOOK):
        readable, _, _ = select.select([connection], [], [], 0)
        if readable and not connection.recv(1, socket.MSG_PEEK):
            return
