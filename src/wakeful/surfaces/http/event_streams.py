"""Server-sent events: what the log has, then what comes, each once and in order.

A stream reads the log at its reader's speed and keeps nothing for it: a reader that is slow is behind, and costs no
more than one that is not. Of what many follow, each event is put into bytes once.

A stream is the task that answers its request and one that waits for the reader to go away. Signs of life, the end of
the server and the end of a token come to all of them from one place.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wakeful.contracts.errors import InvalidConfig, InvalidValue, WakefulError
from wakeful.service.access import TokenBook
from wakeful.service.serving.daemon_client import LEAVING
from wakeful.surfaces.http.error_answers import HttpProblem, problem_of
from wakeful.surfaces.http.guard import TOKEN, token_refused

SSE = "text/event-stream"
FIRST_SECONDS = 0.05
KEEP_ALIVE_SECONDS = 15.0
LOOK_SECONDS = 1.0
"""How often the tokens are looked at while there are streams."""
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
    (b"connection", b"keep-alive"),
]
"""For whatever stands between: a stream is neither kept nor collected."""
RETRY = b"retry: 1000\n\n"
STILL_HERE = b": still here\n\n"
SHUTTING_DOWN = LEAVING + b"; come back with Last-Event-ID\n\n"
FRAMES = 256
MOST_DIGITS = 18
"""Frames of events that are kept for those who follow the same."""
_log = logging.getLogger("wakeful.http")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Items(Protocol[T_co]):
    """What a stream is made of: an asynchronous generator, say."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    def __anext__(self) -> Awaitable[T_co]: ...

    async def aclose(self) -> None: ...


class OpenStreams:
    """All streams of a server: each is told when it ends, and gives a sign of life when it has been quiet."""

    def __init__(self, closing: asyncio.Event, tokens: TokenBook | None = None) -> None:
        """`tokens`: of readers that come over the network; one that is revoked ends their streams."""
        self.closing = closing
        self._tokens = tokens
        self._streams: set[EventStream[Any]] = set()
        self._keeper: asyncio.Task[None] | None = None

    def add(self, stream: "EventStream[Any]") -> None:
        self._streams.add(stream)
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    def remove(self, stream: "EventStream[Any]") -> None:
        self._streams.discard(stream)

    async def _keep(self) -> None:
        """Until the server ends; while there is no stream it sleeps like the others."""
        edition, was_changed, until = self._edition(None), False, 0.0
        while not self.closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.closing.wait()
            known, edition = edition, self._edition(edition)
            if edition != known or was_changed:  # twice: a reader may just have been let in
                self._end_revoked()
            was_changed = edition != known
            now = asyncio.get_running_loop().time()
            if now < until and not self.closing.is_set():
                continue
            until = now + KEEP_ALIVE_SECONDS / 2
            for stream in tuple(self._streams):
                if self.closing.is_set():
                    stream.end()
                else:
                    stream.show_life()

    def _edition(self, known: tuple[int, int] | None) -> tuple[int, int] | None:
        if self._tokens is None or not self._streams:
            return known
        with suppress(InvalidConfig):  # whoever asks anew is told; nobody is sent away for it
            return self._tokens.edition
        return known

    def _end_revoked(self) -> None:
        assert self._tokens is not None
        opens: dict[str, bool] = {}
        for stream in tuple(self._streams):
            token = stream.token
            if token is None:
                continue
            if token not in opens:
                opens[token] = self._tokens.caller(token) is not None
            if not opens[token]:
                stream.end(_error_frame(token_refused()))


class EventStream(Response, Generic[T]):
    """The answer to one reader, over items that come from somewhere."""

    def __init__(
        self,
        first: "asyncio.Future[T] | bytes",
        items: Items[T],
        shown: Callable[[T], bytes],
        streams: OpenStreams,
        ends: "Callable[[T], bool] | None" = None,
    ) -> None:
        """`first`: what comes first, if it comes; or its frame, where it is there. `ends`: does nothing follow it?"""
        self.status_code, self.background, self.body = 200, None, b""
        self.raw_headers = HEADERS
        self._first: asyncio.Future[T] | None = None if isinstance(first, bytes) else first
        self._head = RETRY + first if isinstance(first, bytes) else RETRY
        self._items, self._shown, self._streams, self._ends = items, shown, streams, ends
        self._last = b""
        self.token: str | None = None
        """What its reader came with over the network."""
        self._send: Send | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_quiet = self._is_gone = self._is_ended = False
        self._sign: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send, self._task = send, asyncio.current_task()
        self.token = scope.get("state", {}).get(TOKEN)
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        gone = asyncio.create_task(self._until_gone(receive))
        self._streams.add(self)
        try:
            await self._put(self._head)
            if not self._streams.closing.is_set():
                await self._put_all()
        except asyncio.CancelledError:
            if self._task is not None and not (self._is_gone or self._is_ended or self._streams.closing.is_set()):
                raise
            if self._task is not None:
                self._task.uncancel()
        finally:
            self._streams.remove(self)
            gone.cancel()
            if self._first is not None:
                self._first.cancel()
                with suppress(BaseException):
                    await self._first
            await self._items.aclose()
        if not self._is_gone:
            farewell = SHUTTING_DOWN if self._streams.closing.is_set() else b""
            await send({"type": "http.response.body", "body": self._last + farewell, "more_body": False})

    async def _put_all(self) -> None:
        try:
            if self._first is not None:
                first = self._shown(await asyncio.shield(self._first))
                self._first = None  # it would keep its item for as long as the stream is open
                await self._put(first)
            async for item in self._items:
                if self._ends is not None and self._ends(item):
                    self._last = self._shown(item)  # it leaves with the end of the answer
                    return
                await self._put(self._shown(item))
        except StopAsyncIteration:
            return
        except Exception as error:
            await self._put(error_frame(error))

    async def _put(self, frame: bytes) -> None:
        assert self._send is not None
        self._is_quiet = False
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        if self._task is not None:
            self._task.cancel()

    def end(self, last: bytes = b"") -> None:
        """The server ends, and the reader comes back with its last id; or it is told why not, in a last frame."""
        if self._task is not None and not self._is_ended:
            self._last, self._is_ended = last, True
            self._task.cancel()

    def show_life(self) -> None:
        """Where nothing was sent since the last time, a comment is. A reader that does not read gets one at most."""
        if self._is_quiet and (self._sign is None or self._sign.done()):
            self._sign = asyncio.create_task(self._put(STILL_HERE))
        self._is_quiet = True


async def sse_answer(
    items: Items[T],
    shown: Callable[[T], bytes],
    streams: OpenStreams,
    *,
    first: T | None = None,
    ends: Callable[[T], bool] | None = None,
) -> Response:
    """A stream. `first` comes before the items; where it is not known, the first of them is waited for, only so long
    that an error can still be told as one. `ends` says of an item that nothing follows it."""
    if first is not None:
        return EventStream(shown(first), items, shown, streams, ends)
    waiting = asyncio.ensure_future(anext(items))
    done, _ = await asyncio.wait({waiting}, timeout=FIRST_SECONDS)
    if done and waiting.exception() is not None and not isinstance(waiting.exception(), StopAsyncIteration):
        await items.aclose()
        raise waiting.exception() or RuntimeError
    return EventStream(waiting, items, shown, streams, ends)


class SharedFrames(Generic[T]):
    """Frames of events that many follow: each is made once. The name of an event says which it is."""

    def __init__(self, name: Callable[[T], str], made: Callable[[T], bytes]) -> None:
        self._name, self._made = name, made
        self._frames: dict[str, tuple[T, bytes]] = {}

    def __call__(self, item: T) -> bytes:
        name = self._name(item)
        known = self._frames.get(name)
        if known is not None and known[0] is item:
            return known[1]
        frame = self._made(item)
        self._frames[name] = (item, frame)
        if len(self._frames) > FRAMES:
            del self._frames[next(iter(self._frames))]
        return frame


def wants_stream(request: Request) -> bool:
    """Does the reader ask for a stream?"""
    return SSE in request.headers.get("accept", "")


def seen_before(after: int, last: str | None) -> int:
    """The last event that a reader has, as it says in one way or the other. Raises InvalidValue."""
    if last is None or not last.strip():
        return after
    number = last.strip()
    if not (number.isascii() and number.isdigit()) or len(number) > MOST_DIGITS:
        raise InvalidValue(
            "invalid_cursor", "Last-Event-ID", f"{last!r:.80} is not the number of an event", "Begin with after=0."
        )
    return int(number)


def error_frame(error: Exception) -> bytes:
    """What went wrong after a stream began, in the shape of every error. Nothing follows."""
    if not isinstance(error, WakefulError):
        _log.error("a stream failed", exc_info=error)
    return _error_frame(problem_of(error))


def _error_frame(problem: HttpProblem) -> bytes:
    return sse_frame(json.loads(problem.body), event="error")


def sse_frame(data: Any, *, event: str = "", event_id: str = "") -> bytes:
    """One event."""
    return frame_of(json.dumps(data, separators=(",", ":"), ensure_ascii=False), event=event, event_id=event_id)


def frame_of(data: str, *, event: str = "", event_id: str = "") -> bytes:
    """The same of data that is JSON on one line, so that no text of anybody ends it."""
    number, name = f"id: {event_id}\n" if event_id else "", f"event: {event}\n" if event else ""
    return f"{number}{name}data: {data}\n\n".encode()
