"""Server-sent events: what the log has, then what comes, each once and in order.

A stream reads the log at its reader's speed and keeps nothing for it: a reader that is slow is behind, and costs no
more than one that is not.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from starlette.responses import StreamingResponse

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
                    item = upcoming.result()
                except StopAsyncIteration:
                    return
                yield self._shown(item)
                upcoming = asyncio.ensure_future(anext(self._items))
        finally:
            for each in (closing, upcoming):
                each.cancel()
            with suppress(BaseException):
                await upcoming
            await self._items.aclose()  # type: ignore[attr-defined]


def sse_answer(items: AsyncIterator[T], shown: Callable[[T], bytes], closing: asyncio.Event) -> StreamingResponse:
    stream = EventStream(items, shown, closing)
    return StreamingResponse(stream.parts(), media_type="text/event-stream", headers=HEADERS)


def sse_frame(data: Any, *, event: str = "", event_id: str = "") -> bytes:
    """One event. Data is JSON on one line, so that no text of anybody ends it."""
    lines = [f"id: {event_id}"] if event_id else []
    lines += [f"event: {event}"] if event else []
    lines.append(f"data: {json.dumps(data, separators=(',', ':'), ensure_ascii=False)}")
    return ("\n".join(lines) + "\n\n").encode()
