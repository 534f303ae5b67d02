"""A call that was begun: on the loop when the function is async, on a thread of its own when it is not."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

from wakeful.tools.threads import ToolExited, run_in_thread


class Running:
    """The handle of a call. Abandoning it does not stop the call: `result` still gets what comes late.

    Cancelling `result` cancels an async tool. A sync tool's thread cannot be stopped: its answer would only be lost.
    """

    __slots__ = ("is_thread", "result")

    def __init__(self, result: "asyncio.Future[Any]", is_thread: bool) -> None:
        self.result = result
        self.is_thread = is_thread


def begin(fn: Callable[..., Any], is_async: bool, given: tuple[Any, ...], values: dict[str, Any]) -> Running:
    """Start a function where it belongs."""
    if is_async:
        return Running(asyncio.ensure_future(_contained(fn(*given, **values))), is_thread=False)
    return Running(run_in_thread(functools.partial(fn, *given, **values)), is_thread=True)


async def _contained(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except SystemExit as error:  # from a task it would end the loop and every other turn with it
        raise ToolExited(f"the tool raised SystemExit: {error}") from error
