"""Calling what the host brought: plain or async, wherever it belongs."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from wakeful.ports.client_requests import AnswerT, PlainOrAsync
from wakeful.tools.threads import run_in_thread


async def awaited(answer: PlainOrAsync[AnswerT]) -> AnswerT:
    """The answer of something that is plain or async."""
    return await answer if inspect.isawaitable(answer) else answer


def is_async(function: Callable[..., Any]) -> bool:
    """Is it a coroutine function, or an object whose call is one?"""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def in_its_place(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call something that may take long: async on the loop, plain on a thread."""
    if is_async(function):
        return await function(*arguments)
    return await awaited(await run_in_thread(functools.partial(function, *arguments)))


async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call something that is quick, on the loop."""
    return await awaited(function(*arguments))
