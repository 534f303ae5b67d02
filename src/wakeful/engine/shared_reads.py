"""Reads that many callers need at the same moment, done once for all of them.

What is read is known until the loop has gone round once. What another process commits meanwhile was committed at the
same moment, as far as anybody can tell.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class SharedReads:
    """Of one engine."""

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}

    async def get(self, name: object, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` returns, or has returned to somebody else who gave the same name just now."""
        if name in self._known:
            known: T = self._known[name]
            return known
        found = await read()
        if not self._known:
            asyncio.get_running_loop().call_soon(self._known.clear)
        self._known[name] = found
        return found

    def forget(self) -> None:
        """Somebody here has written what may have been read. A store in memory does not wait for anything."""
        self._known.clear()
