"""Server-sent events: what the log has, then what comes, each once and in order.

A stream reads the log at its reader's speed and keeps nothing for it: a reader that is slow is behind, and costs no
more than one that is not.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse

from wakeful.contracts.errors import InvalidValue, WakefulError
from wakeful.surfaces.http.error_answers import problem_of

SSE = "text/event-stream"
FIRST_SECONDS = 0.05
_log = logging.getLogger("wakeful.http")
KEEP_ALIVE_SECONDS = 15.0
HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no", "connection": "keep-alive"}
"""For whatever stands between: a stream is neither kept nor collected."""
T = TypeVar("T")


class EventStream(Generic[T]):
    """The body of a stream over items that come from somewhere."""

    def __init__(self, items: AsyncIterator[T], shown: Callable[[T], bytes], closing: asyncio.Event) -> None:
        self._items = items
        self._shown = shown
        self._closing = closing

    async def parts(self) -> AsyncIterator[bytes]:
        """Bytes as they are sent. Ends when the server is shut down; the reader comes back with its last id."""
        yield b"retry: 1000\n\n"
        closing = asyncio.ensure_future(self._closing.wait())
        upcoming = asyncio.ensure_future(anext(self._items))
        try:
            while True:
                await asyncio.wait((upcoming, closing), timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if closing.done():
                    yield b": the server is shutting down; come back with Last-Event-ID\n\n"
                    return
                if not upcoming.done():
                    yield b": still here\n\n"
                    continue
                try:
                    frame = self._shown(upcoming.result())
                except StopAsyncIteration:
                    return
                except Exception as error:
                    yield error_frame(error)
                    return
                yield frame
                upcoming = asyncio.ensure_future(anext(self._items))
        finally:
            for each in (closing, upcoming):
                each.cancel()
            with suppress(BaseException):
                await upcoming
            await self._items.aclose()  # type: ignore[attr-defined]


async def sse_answer(items: AsyncIterator[T], shown: Callable[[T], bytes], closing: asyncio.Event) -> StreamingResponse:
    """A stream. Its first item is waited for only so long that an error can still be told as one."""
    first = asyncio.ensure_future(anext(items))
    done, _ = await asyncio.wait({first}, timeout=FIRST_SECONDS)
    if done and first.exception() is not None and not isinstance(first.exception(), StopAsyncIteration):
        raise first.exception() or RuntimeError
    stream = EventStream(_from(first, items), shown, closing)
    return StreamingResponse(stream.parts(), media_type=SSE, headers=HEADERS)


async def _from(first: "asyncio.Future[T]", items: AsyncIterator[T]) -> AsyncIterator[T]:
    try:
        try:
            yield await first
        except StopAsyncIteration:
            return
        async for item in items:
            yield item
    finally:
        first.cancel()
        await items.aclose()  # type: ignore[attr-defined]


def wants_stream(request: Request) -> bool:
    """Does the reader ask for a stream?"""
    return SSE in request.headers.get("accept", "")


def seen_before(after: int, last: str | None) -> int:
    """The last event that a reader has, as it says in one way or the other. Raises InvalidValue."""
    if last is None or not last.strip():
        return after
    if not last.strip().isdigit():
        raise InvalidValue(
            "invalid_cursor", "Last-Event-ID", f"{last!r} is no number of an event", "Begin with after=0."
        )
    return int(last.strip())


def error_frame(error: Exception) -> bytes:
    """What went wrong after a stream began, in the shape of every error. Nothing follows."""
    if not isinstance(error, WakefulError):
        _log.error("a stream failed", exc_info=error)
    return sse_frame(json.loads(problem_of(error).body), event="error")


def sse_frame(data: Any, *, event: str = "", event_id: str = "") -> bytes:
    """One event. Data is JSON on one line, so that no text of anybody ends it."""
    lines = [f"id: {event_id}"] if event_id else []
    lines += [f"event: {event}"] if event else []
    lines.append(f"data: {json.dumps(data, separators=(',', ':'), ensure_ascii=False)}")
    return ("\n".join(lines) + "\n\n").encode()
