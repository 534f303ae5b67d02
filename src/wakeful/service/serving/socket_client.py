"""A client of the process that serves a home, for programs that stay: requests and streams, through the socket.

It reads what it is told and keeps nothing: a stream that broke off is asked for again with the id of its last event.
"""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.service.serving.daemon_client import ControlRefused, NoAnswer

if TYPE_CHECKING:
    import httpx2

SECONDS = 30.0
SILENCE_SECONDS = 45.0
"""A stream says every 15 seconds that it is there."""
START = "Start it: wakeful daemon start"
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
"""The system's number, before its words."""


class StreamEvent(NamedTuple):
    """One event of a stream."""

    id: str
    data: Any


class SocketClient:
    """Requests to the process behind a socket. Raises NoAnswer, or ControlRefused with the error that was told."""

    def __init__(self, path: Path) -> None:
        import httpx2

        self.path = path
        transport = httpx2.AsyncHTTPTransport(uds=str(path))
        self._http = httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=SECONDS, trust_env=False
        )

    async def ask(self, method: str, where: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """One request and its answer."""
        asked = {name: value for name, value in query.items() if value is not None}
        with self._told():
            answer = await self._http.request(method, where, json=body, params=asked)
        return _answered(self.path, answer, answer.content)

    async def stream(self, where: str, last: str | None = None, **query: Any) -> AsyncGenerator[StreamEvent, None]:
        """Events after the one with the id `last`, and all that follow; it ends when the process ends it."""
        import httpx2

        headers = {"accept": "text/event-stream"} | ({"last-event-id": last} if last is not None else {})
        asked = {name: value for name, value in query.items() if value is not None}
        patience = httpx2.Timeout(SECONDS, read=SILENCE_SECONDS)
        with self._told():
            async with self._http.stream("GET", where, params=asked, headers=headers, timeout=patience) as answer:
                if answer.status_code != 200:
                    _answered(self.path, answer, await answer.aread())
                found: dict[str, str] = {}
                async for line in answer.aiter_lines():
                    name, _, value = line.partition(":")
                    if name:
                        found[name] = value.removeprefix(" ")
                    elif "data" in found and not line:
                        yield StreamEvent(found.get("id", ""), json.loads(found["data"]))
                        found = {}

    async def close(self) -> None:
        await self._http.aclose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A connection that cannot be made, breaks, or was closed here while somebody still asked: NoAnswer."""
        import httpx2

        try:
            yield
        except (httpx2.HTTPError, OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not self._http.is_closed:
                raise
            why = _ERRNO.sub("", str(error)) or type(error).__name__
            raise NoAnswer(f"no daemon answers at {self.path}: {why}", START) from None


def _answered(path: Path, answer: "httpx2.Response", data: bytes) -> Any:
    if "wakeful-api" not in answer.headers:
        raise NoAnswer(f"another program answers at {path}", "Stop that program, or use another home.")
    try:
        found = json.loads(data) if data else None
    except ValueError:
        raise NoAnswer(f"the daemon at {path} answered with something other than JSON", "wakeful daemon logs") from None
    if answer.status_code >= 400:
        words = found.get("error", {}) if isinstance(found, dict) else {}
        raise ControlRefused(
            answer.status_code,
            words.get("code", "error"),
            words.get("message", "it was refused"),
            words.get("hint", ""),
        )
    return found
