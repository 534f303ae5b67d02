"""Coroutines that begin at once, and go on as one task if they have to wait."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from wakeful.tools.eager_start import EagerStarts

WORD: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="none")


async def ready() -> EagerStarts:
    starts = EagerStarts()
    await asyncio.sleep(0)
    return starts


async def at_once() -> str:
    return "done"


async def test_what_never_waits_is_over_before_the_loop_had_its_turn() -> None:
    starts = await ready()
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "a tick")
    result = starts.start(at_once())
    assert result.done() and result.result() == "done" and others == []
    starts.close()


async def test_what_it_raises_is_its_result() -> None:
    async def broken() -> None:
        raise ValueError("no")

    async def gone() -> None:
        raise asyncio.CancelledError

    starts = await ready()
    assert isinstance(starts.start(broken()).exception(), ValueError)
    assert starts.start(gone()).cancelled()
    starts.close()


@pytest.mark.parametrize("waits", [lambda: asyncio.sleep(0), lambda: asyncio.sleep(0.001)], ids=["a tick", "a timer"])
async def test_what_waits_goes_on_as_one_task_in_one_context(waits: Callable[[], Awaitable[None]]) -> None:
    seen: list[Any] = []

    async def slow() -> str:
        seen.append(asyncio.current_task())
        token = WORD.set("inside")
        await waits()
        seen.append(asyncio.current_task())
        assert WORD.get() == "inside"
        WORD.reset(token)
        return "done"

    starts = await ready()
    result = starts.start(slow())
    assert not result.done() and WORD.get() == "none"
    assert asyncio.current_task() not in seen
    assert await result == "done"
    assert seen == [result, result]
    starts.close()


async def test_each_start_has_a_context_of_its_own() -> None:
    async def says(word: str) -> str:
        before = WORD.get()
        WORD.set(word)
        return before

    starts = await ready()
    assert [starts.start(says(word)).result() for word in ("one", "two")] == ["none", "none"]
    starts.close()


async def test_a_timeout_that_is_opened_before_the_first_wait_ends_the_work_and_not_who_started_it() -> None:
    async def late() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(60)
        except TimeoutError:
            return "late"
        return "never"

    starts = await ready()
    assert await starts.start(late()) == "late"
    starts.close()


@pytest.mark.parametrize("ticks", range(4))
async def test_cancelled_at_any_moment_it_can_clean_up(ticks: int) -> None:
    cleaned: list[str] = []

    async def careful() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    starts = await ready()
    result = starts.start(careful())
    for _ in range(ticks):
        await asyncio.sleep(0)
    result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await result
    assert cleaned == ["up"]
    starts.close()


async def test_work_that_starts_work_and_a_start_right_after_a_wait_have_tasks_of_their_own() -> None:
    starts = await ready()

    async def outer() -> str:
        return await starts.start(at_once())

    first, second = starts.start(outer()), starts.start(outer())
    assert [await first, await second] == ["done", "done"]
    starts.close()


async def test_nothing_is_left_behind() -> None:
    starts = await ready()
    assert starts.start(at_once()).done()
    starts.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
