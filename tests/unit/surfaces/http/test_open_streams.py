"""A stream as its server sees it: signs of life, readers that go away, the end of the server, bytes made once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from wakeful.surfaces.http.event_streams import (
    RETRY,
    SHUTTING_DOWN,
    STILL_HERE,
    EventStream,
    OpenStreams,
    SharedFrames,
    sse_answer,
)


class Reader:
    """The other end of a connection."""

    def __init__(self) -> None:
        self.got: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_ended = False
        self.gone = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.got.put_nowait(message["body"])
            self.is_ended = not message["more_body"]


class Items:
    """Items that come when the test says so."""

    def __init__(self) -> None:
        self.coming: asyncio.Queue[str] = asyncio.Queue()
        self.is_closed = False

    async def all(self) -> AsyncIterator[str]:
        try:
            while True:
                yield await self.coming.get()
        finally:
            self.is_closed = True


async def opened(items: Items, reader: Reader, closing: asyncio.Event) -> "tuple[EventStream[str], asyncio.Task[None]]":
    stream = await sse_answer(items.all(), str.encode, OpenStreams(closing))
    assert isinstance(stream, EventStream)
    answering = asyncio.create_task(stream({"type": "http"}, reader.receive, reader.send))
    assert await reader.got.get() == RETRY
    return stream, answering


async def test_a_quiet_stream_gives_a_sign_of_life_and_a_busy_one_does_not() -> None:
    items, reader = Items(), Reader()
    stream, answering = await opened(items, reader, asyncio.Event())
    stream.show_life()
    items.coming.put_nowait("one")
    assert await reader.got.get() == b"one"
    stream.show_life()
    assert reader.got.empty(), "something was sent since the last time"
    stream.show_life()
    assert await reader.got.get() == STILL_HERE
    reader.gone.set()
    await answering


async def test_a_reader_that_goes_away_ends_its_stream_and_what_it_reads() -> None:
    items, reader = Items(), Reader()
    _, answering = await opened(items, reader, asyncio.Event())
    reader.gone.set()
    await answering
    assert (items.is_closed, reader.is_ended) == (True, False)


async def test_the_end_of_the_server_is_told_to_every_stream() -> None:
    items, reader, closing = Items(), Reader(), asyncio.Event()
    _, answering = await opened(items, reader, closing)
    items.coming.put_nowait("one")
    assert await reader.got.get() == b"one"
    closing.set()
    await answering
    assert await reader.got.get() == SHUTTING_DOWN
    assert (items.is_closed, reader.is_ended) == (True, True)


def test_bytes_of_an_event_are_made_once_for_all() -> None:
    made: list[str] = []

    def frame(item: list[str]) -> bytes:
        made.append(item[0])
        return item[0].encode()

    frames = SharedFrames(lambda item: item[0], frame)
    first, same_name = ["a"], ["a"]
    assert [frames(first), frames(first), frames(same_name)] == [b"a", b"a", b"a"]
    assert made == ["a", "a"], "another event of that name is not taken for the first"
