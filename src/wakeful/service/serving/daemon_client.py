"""A client of a serving process, for commands: the standard library alone, because a command has to start fast.

    1. connect to its socket, or to its address with a token
    2. ask who it is: a wakeful of this interface, of the home that was meant
    3. ask; the connection stays open for what else the command asks

Nothing is sent to a process before it has said who it is. A stream that broke off is never taken for one that is over.
"""

import http.client
import json
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from wakeful._version import __version__
from wakeful.contracts.errors import ForTheCaller, WakefulError
from wakeful.service.operations.answers import SHUTTING_DOWN

API = "1"
"""The interface that this version speaks."""
HELLO_SECONDS = 5.0
WORK_SECONDS = 600.0
"""Some answers read a whole store."""
SILENCE_SECONDS = 45.0
"""A stream says every 15 seconds that it is there."""
LOOK_AGAIN_SECONDS = 0.2
LEAVING = b": the server is shutting down"
"""The comment that a stream of a process ends with when that process ends, and not what the stream is about."""
START = "Start it: wakeful daemon start"
LOGS = "Look: wakeful daemon logs"
FILE = "To work on the file instead: --store FILE"


class NoAnswer(ForTheCaller):
    """No process answers at the place of a daemon, or one that cannot be used."""


class NotNow(NoAnswer):
    """The process does not answer now, or went away while it did: asked again later, it may answer."""


class NobodyThere(NotNow):
    """Nothing accepts connections at that place."""


class ControlRefused(WakefulError):
    """The process answered with an error."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code
        self.details = details
        self.exit_code = 2 if status < 500 else 1


class DaemonAddress(NamedTuple):
    """Where a daemon is, and what opens it."""

    where: str
    """The path of a socket, or a URL."""
    token: str = ""
    home: str = ""
    """The home that it has to serve; blank: whichever it does."""
    flag: str = ""
    """` --connect NAME`, as a person comes back to it; blank: it is the daemon of the home."""

    @property
    def is_url(self) -> bool:
        return self.where.startswith(("http://", "https://"))


class DaemonAnswer(NamedTuple):
    """A whole answer."""

    body: bytes
    headers: Mapping[str, str]


class StreamedEvent(NamedTuple):
    """One event of a stream."""

    id: str
    event: str
    data: bytes


class SocketConnection(http.client.HTTPConnection):
    """HTTP through a socket of this machine."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class DaemonClient:
    """Requests to one process. Raises NoAnswer, or ControlRefused with the error that was told."""

    def __init__(self, address: DaemonAddress) -> None:
        self.address = address
        self.version = ""
        """Of the process, once it said so."""
        self.store = ""
        """Where the store is that the process serves, if it says so."""
        self._base = urlsplit(address.where).path.rstrip("/") if address.is_url else ""
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, where: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> DaemonAnswer:
        """One request and its answer."""
        self.greet()
        answer = self._send(method, where, body, query, {"accept": "application/json"})
        return self._whole(answer)

    def stream(
        self, where: str, query: Mapping[str, Any] | None = None, *, last: str | None = None
    ) -> Iterator[StreamedEvent]:
        """Events after the one with the id `last`, and all that follow, until there is nothing left to come.

        Raises NotNow where the process goes away before that.
        """
        self.greet()
        headers = {"accept": "text/event-stream"} | ({"last-event-id": last} if last is not None else {})
        answer = self._send("GET", where, None, query, headers, SILENCE_SECONDS)
        if answer.status != 200:
            self._whole(answer)
        found: dict[str, str] = {}
        try:
            for line in _lines(answer):
                if line.startswith(LEAVING):
                    raise draining(self.address.where)
                name, _, value = line.decode("utf-8").rstrip("\r").partition(":")
                if name:
                    found[name] = value.removeprefix(" ")
                elif "data" in found:
                    if found.get("event") == "error":
                        raise self._refused(500, found["data"].encode())
                    yield StreamedEvent(found.get("id", ""), found.get("event", ""), found["data"].encode())
                    found = {}
        except (OSError, http.client.HTTPException) as error:
            raise self._no_answer(error) from None
        finally:
            self.close()

    def follow(
        self,
        where: str,
        query: Mapping[str, Any] | None = None,
        *,
        away: "Callable[[NotNow], None]",
        last: str | None = None,
        shares: bool = False,
    ) -> Iterator[StreamedEvent]:
        """The same, over times in which the process is away: each event once.

        `away` is called when it went, and returns when it is back, or raises. `shares`: events without an id belong
        to the next one that has one, and come again with it.
        """
        begun = 0
        while True:
            again = begun if shares else 0
            try:
                for event in self.stream(where, query, last=last):
                    if again and not event.id:
                        again -= 1
                        continue
                    last, begun, again = (event.id, 0, 0) if event.id else (last, begun + 1, again)
                    yield event
                return
            except NotNow as gone:
                if not self.version:
                    raise  # it was never there
                away(gone)

    def until_back(self, gone: NotNow, seconds: float | None = None) -> None:
        """Wait until the process answers again. Raises what was told, where it is away for longer than `seconds`."""
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                self.greet()
            except NotNow:
                if ends is not None and time.monotonic() > ends:
                    raise gone from None
                time.sleep(LOOK_AGAIN_SECONDS)
            else:
                return

    def greet(self) -> None:
        """Who is there? Raises NoAnswer where it is not a daemon that this command can use."""
        if self._connection is not None and not self._is_dropped():
            return
        self.close()
        self._connection = self._connect()
        answer = self._send("GET", "/health", None, None, seconds=HELLO_SECONDS)
        place = self.address.where
        spoken, self.version = answer.getheader("wakeful-api"), answer.getheader("wakeful-version") or "?"
        if spoken is None:
            answer.close()
            self.close()
            raise NoAnswer(f"another program answers at {place}", f"Stop that program, or use another home. {FILE}")
        data = self._read(answer)
        said: dict[str, Any] = {}
        with suppress(ValueError):
            said = found if isinstance(found := json.loads(data), dict) else {}
        if spoken != API:
            self.close()
            raise NoAnswer(
                f"the daemon at {place} is wakeful {self.version} and speaks interface {spoken}; "
                f"this command is wakeful {__version__} and speaks {API}",
                "Use one version for both; after an upgrade here: wakeful daemon restart",
            )
        if answer.status != 200:
            self.close()
            raise self._refused(answer.status, data)
        self.store, serves = said.get("store", ""), said.get("home")
        if self.address.home and serves and serves != self.address.home:
            self.close()
            raise NoAnswer(
                f"the daemon at {place} serves another home: {serves}",
                f"To ask that one: WAKEFUL_HOME={serves}   To start one for this home, remove the socket first.",
            )
        if said.get("status") == "draining":
            self.close()
            raise draining(place)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_dropped(self) -> bool:
        """Was the connection closed at its other end? A process that was started again knows nothing of it."""
        sock = self._connection.sock if self._connection is not None else None
        return sock is None or bool(select.select([sock], [], [], 0)[0])

    def _connect(self) -> http.client.HTTPConnection:
        address = self.address
        if not address.is_url:
            return SocketConnection(address.where, HELLO_SECONDS)
        parts = urlsplit(address.where)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=HELLO_SECONDS)

    def _send(
        self,
        method: str,
        where: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None = None,
        seconds: float = WORK_SECONDS,
    ) -> http.client.HTTPResponse:
        assert self._connection is not None
        sent = {"authorization": f"Bearer {self.address.token}"} if self.address.token else {}
        sent |= headers or {}
        data = None
        if body is not None:
            data, sent["content-type"] = json.dumps(body), "application/json"
        asked = f"{self._base}{where}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        try:
            if self._connection.sock is None:
                self._connection.connect()
            self._connection.sock.settimeout(seconds)
            self._connection.request(method, asked, data, sent)
            return self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._no_answer(error) from None

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        try:
            return answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._no_answer(error) from None

    def _whole(self, answer: http.client.HTTPResponse) -> DaemonAnswer:
        data = self._read(answer)
        if answer.status >= 400:
            raise self._refused(answer.status, data)
        return DaemonAnswer(data, {name.lower(): value for name, value in answer.getheaders()})

    def _refused(self, status: int, data: bytes) -> ControlRefused | NotNow:
        words = told_error(data)
        code = words.get("code", "error")
        message, hint = words.get("message", f"it answered with status {status}"), words.get("hint", "")
        if code in ("token_missing", "token_refused"):
            where = "the variable WAKEFUL_TOKEN, or token_file of [connect.NAME] in wakeful.toml"
            message = f"{self.address.where}: {message}"
            hint = f"A token is made there with: wakeful token create NAME   It is read from {where}."
        if code == SHUTTING_DOWN:
            self.close()  # who answers next has to say who it is
            return NotNow(message, hint)
        return ControlRefused(status, code, message, hint, words.get("details"))

    def _no_answer(self, error: Exception) -> NoAnswer:
        place = self.address.where
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            return NotNow(f"the daemon at {place} does not answer", LOGS)
        if isinstance(error, http.client.IncompleteRead):
            return NotNow(f"the daemon at {place} went away while it answered", LOGS)
        if not isinstance(error, OSError):
            return NoAnswer(f"another program answers at {place}", f"Stop that program, or use another home. {FILE}")
        if self.address.is_url:
            return NobodyThere(f"no daemon answers at {place}: {words}", "Is wakeful serve running there?")
        return NobodyThere(f"no daemon answers at {place}: {words}", START)


def told_error(data: bytes) -> dict[str, Any]:
    """The fields of the error that an answer tells; none where it is told in another shape."""
    with suppress(ValueError, AttributeError):
        found = json.loads(data).get("error")
        return found if isinstance(found, dict) else {}
    return {}


def draining(place: str) -> NotNow:
    """It ends, and takes nothing any more."""
    return NotNow(f"the daemon at {place} is shutting down", f"Ask again in a moment. {FILE}")


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Lines as they come. Raises IncompleteRead where the answer breaks off: `readline` takes that for its end."""
    held: list[bytes] = []
    while piece := answer.read1():
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield b"".join((*held, line))
            held = []
        held.append(rest)
