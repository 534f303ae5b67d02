"""Waiting for somebody else's code for so long and no longer.

Whoever is late is left behind: it is told to stop, has a moment to clean up after itself, and what it says then is
nobody's word. It runs apart from whoever waits for it, so that one that holds on when it is told to stop holds nobody
up, and one that is cancelled by its own doing ends itself alone.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

GRACE_SECONDS = 1.0
"""How long one that was told to stop may take to clean up: a command has processes to end."""


class LateAnswer(Exception):
    """It did not answer in its time."""


async def answered_within(answer: Awaitable[Any], seconds: float) -> Any:
    """The answer. Raises LateAnswer, or what was raised."""
    work = asyncio.ensure_future(answer)
    try:
        done, _ = await asyncio.wait({work}, timeout=seconds)
    except asyncio.CancelledError:
        await _leave(work)
        raise
    if not done:
        await _leave(work)
        raise LateAnswer
    if work.cancelled():
        raise RuntimeError("it cancelled itself")
    return work.result()


async def _leave(work: "asyncio.Future[Any]") -> None:
    work.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody is there to be told
    work.cancel()
    await asyncio.wait({work}, timeout=GRACE_SECONDS)
