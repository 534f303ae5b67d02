"""A call that was begun: on the loop when the function is async, on a thread of its own when it is not."""

import asyncio
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from wakeful.tools.threads import contained_exit, run_in_thread

inside_tool: ContextVar[bool] = ContextVar("inside_tool", default=False)
"""Set while the code of a tool runs, and in everything it starts: a tool never decides about the calls of an agent."""


class CallHandle:
    """The handle of a call. Abandoning it does not stop the call: `result` still gets what comes late.

    Cancelling `result` cancels an async tool. A sync tool's thread cannot be stopped: its answer would only be lost.
    """

    __slots__ = ("is_thread", "on_value", "result")

    result: "asyncio.Future[Any]"

    def __init__(self, result: "asyncio.Future[Any] | None" = None, *, is_thread: bool) -> None:
        if result is not None:
            self.result = result
        self.is_thread = is_thread
        self.on_value: Callable[[Any], None] | None = None
        """Told what an async tool returned at once, a tick before `result` is done."""


def begin(fn: Callable[..., Any], is_async: bool, given: tuple[Any, ...], values: dict[str, Any]) -> CallHandle:
    """Start a function where it belongs."""
    running = CallHandle(is_thread=not is_async)
    if is_async:
        running.result = asyncio.get_running_loop().create_task(_contained(fn, given, values, running))
    else:
        running.result = run_in_thread(functools.partial(_called, fn, given, values))
    return running


def _called(fn: Callable[..., Any], given: tuple[Any, ...], values: dict[str, Any]) -> Any:
    inside_tool.set(True)  # in the thread's copy of the context
    return fn(*given, **values)


async def _contained(
    fn: Callable[..., Any], given: tuple[Any, ...], values: dict[str, Any], running: CallHandle
) -> Any:
    inside_tool.set(True)  # in the task's own context
    try:
        value = await fn(*given, **values)
        if running.on_value is not None:
            running.on_value(value)
        return value
    except (SystemExit, KeyboardInterrupt) as error:
        raise contained_exit(error) from None
