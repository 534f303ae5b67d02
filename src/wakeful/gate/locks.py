"""Named locks that no two running calls hold together, whoever made them.

A call takes all its names at once or none, so that two calls cannot each hold what the other wants. First come, first
served: a call waits for earlier ones that want any of its names, and for nobody else. Every wait has an end.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class _Waiter:
    owner: str
    names: frozenset[str]
    granted: "asyncio.Future[bool]"

    def answer(self, granted: bool) -> None:
        if not self.granted.done():
            self.granted.set_result(granted)


class LockTable:
    """The locks of one process."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}
        """Name to owner."""
        self._waiting: list[_Waiter] = []

    def try_claim(self, owner: str, names: Sequence[str]) -> bool:
        """Take them now, if nobody else has them and nobody waits for them. What one holds already is no obstacle."""
        wanted = frozenset(name for name in names if self._held.get(name) != owner)
        if not wanted.isdisjoint(self._held) or any(not wanted.isdisjoint(each.names) for each in self._waiting):
            return False
        self._hold(owner, wanted)
        return True

    async def claim(self, owner: str, names: Sequence[str], timeout: float) -> bool:
        """Wait for them; False when they did not become free in time."""
        if self.try_claim(owner, names):
            return True
        loop = asyncio.get_running_loop()
        waiter = _Waiter(owner, frozenset(names), loop.create_future())
        self._waiting.append(waiter)
        timer = loop.call_later(timeout, waiter.answer, False)
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            self.release(owner)  # perhaps granted, and nobody is there to use it
            raise
        finally:
            timer.cancel()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self._grant()

    def holders(self, names: Sequence[str]) -> dict[str, str]:
        """Who has which of these."""
        return {name: self._held[name] for name in names if name in self._held}

    def release(self, owner: str) -> None:
        """Give everything back that this owner holds."""
        mine = [name for name, holder in self._held.items() if holder == owner]
        for name in mine:
            del self._held[name]
        if mine:
            self._grant()

    def _hold(self, owner: str, names: frozenset[str]) -> None:
        for name in names:
            self._held[name] = owner

    def _grant(self) -> None:
        blocked: set[str] = set()
        for waiter in [each for each in self._waiting if not each.granted.done()]:
            if waiter.names.isdisjoint(self._held) and waiter.names.isdisjoint(blocked):
                self._waiting.remove(waiter)
                self._hold(waiter.owner, waiter.names)
                waiter.answer(True)
            else:
                blocked |= waiter.names
