"""Calling what the host brought: plain or async, wherever it belongs."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from wakeful.tools.threads import run_in_thread


def is_async(function: Callable[..., Any]) -> bool:
    """Is it a coroutine function, or an object whose call is one?"""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def in_its_place(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call something that may take long: async on the loop, plain on a thread."""
    if is_async(function):
        return await function(*arguments)
    answer = await run_in_thread(functools.partial(function, *arguments))
    return await answer if inspect.isawaitable(answer) else answer


async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call something that is quick, on the loop."""
    answer = function(*arguments)
    return await answer if inspect.isawaitable(answer) else answer
