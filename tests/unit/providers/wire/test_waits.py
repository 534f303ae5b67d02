"""One timer for many waits: it wakes who waits too long, and nobody else."""

import asyncio
import time

import pytest

from wakeful.providers.wire.waits import Waits


async def waited(waits: Waits, seconds: float, work: "asyncio.Future[None]") -> str:
    """How a wait ended, as the transport does it."""
    waits.begin(asyncio.get_running_loop().time() + seconds)
    try:
        await work
        return "done"
    except asyncio.CancelledError:
        if waits.was_too_long():
            return "too long"
        raise
    finally:
        waits.end()


def never() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def test_a_wait_that_lasts_too_long_is_ended_and_its_task_goes_on() -> None:
    waits = Waits()
    assert await waited(waits, 0.01, never()) == "too long"
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0, "nothing is left cancelled"
    await asyncio.sleep(0)
    waits.close()


async def test_a_later_wait_has_its_own_time_though_the_timer_was_set_for_an_earlier_one() -> None:
    waits = Waits()
    done = never()
    done.set_result(None)
    assert await waited(waits, 0.01, done) == "done"
    longer = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.05, longer.set_result, None)
    assert await waited(waits, 60, longer) == "done", "the timer rang in between and let it be"
    waits.close()


async def test_a_shorter_wait_after_a_longer_one_is_not_forgotten() -> None:
    waits = Waits()
    done = never()
    done.set_result(None)
    assert await waited(waits, 600, done) == "done"
    assert await waited(waits, 0.01, never()) == "too long"
    waits.close()


async def test_nobody_is_woken_between_two_waits() -> None:
    waits = Waits()
    done = never()
    done.set_result(None)
    assert await waited(waits, 0.01, done) == "done"
    await asyncio.sleep(0.03)  # a slow reader: the timer rings while nobody waits
    assert await waited(waits, 0.01, never()) == "too long", "and is set again for the next"
    waits.close()


async def test_whoever_asks_for_the_next_piece_is_the_one_that_is_woken() -> None:
    waits = Waits()
    done = never()
    done.set_result(None)
    assert await waited(waits, 600, done) == "done"
    assert await asyncio.create_task(waited(waits, 0.01, never())) == "too long"
    waits.close()


async def test_a_cancellation_from_elsewhere_is_not_taken_for_a_timeout() -> None:
    waits = Waits()
    task = asyncio.create_task(waited(waits, 600, never()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    waits.close()


@pytest.mark.parametrize("first", ["the timeout", "the cancellation"])
async def test_a_cancellation_in_the_same_moment_as_the_timeout_wins(first: str) -> None:
    waits = Waits()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(waited(waits, 0.01, never()))
    await asyncio.sleep(0)
    time.sleep(0.02)  # noqa: ASYNC251  (holds the loop until the timer is due: both come in one turn of it)
    if first == "the cancellation":
        task.cancel()
    else:
        loop.call_at(loop.time(), task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    waits.close()


async def test_closing_leaves_no_timer_behind() -> None:
    waits = Waits()
    done = never()
    done.set_result(None)
    await waited(waits, 0.01, done)
    waits.close()
    assert waits._handle is None
