"""Bytes of a stream: frames, and an error in the middle as an event with the shape of every error."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from wakeful.contracts.errors import StoreLocked
from wakeful.surfaces.http.event_streams import OpenStreams, sse_answer, sse_frame


async def streamed(items: AsyncGenerator[int, None]) -> list[bytes]:
    """What a reader gets that stays to the end."""
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> Any:
        await asyncio.Event().wait()

    closing = asyncio.Event()
    answer = await sse_answer(items, lambda item: sse_frame(item, event="n", event_id=str(item)), OpenStreams(closing))
    await answer({"type": "http"}, receive, send)
    closing.set()
    await asyncio.sleep(0)
    return [part for part in sent if part]


async def test_an_error_in_the_middle_is_the_last_event_and_has_the_shape_of_errors() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise StoreLocked("the store is locked", "Try again.")

    _, first, last = await streamed(broken())
    assert first == b"id: 1\nevent: n\ndata: 1\n\n"
    name, data = last.decode().strip().split("\n")
    assert name == "event: error"
    words = json.loads(data.removeprefix("data: "))["error"]
    assert (words["code"], words["retryable"], words["hint"]) == ("store_locked", True, "Try again.")


async def test_what_is_no_error_of_ours_says_nothing_about_itself() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise RuntimeError("the key is sk-secret")

    *_, last = await streamed(broken())
    assert b"sk-secret" not in last and b"internal_error" in last


async def test_what_nothing_follows_leaves_with_the_end_of_the_answer_and_what_is_known_first_with_its_head() -> None:
    sent: list[Any] = []

    async def numbers() -> AsyncGenerator[int, None]:
        yield 2
        yield 3

    async def send(message: Any) -> None:
        sent.append((message.get("body", b""), message.get("more_body")))

    async def receive() -> Any:
        await asyncio.Event().wait()

    closing = asyncio.Event()
    streams, items = OpenStreams(closing), numbers()
    answer = await sse_answer(items, sse_frame, streams, first=1, ends=lambda item: item == 3)
    await answer({"type": "http"}, receive, send)
    closing.set()
    await asyncio.sleep(0)
    assert sent[1:] == [
        (b"retry: 1000\n\ndata: 1\n\n", True),
        (b"data: 2\n\n", True),
        (b"data: 3\n\n", False),
    ]
    assert items.ag_frame is None, "it was closed"
