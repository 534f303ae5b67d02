"""Named locks that no two running calls hold together, whoever made them.

A call takes all its names at once or none, so that two calls cannot each hold what the other wants. First come, first
served: a call waits for earlier ones that want any of its names, and for nobody else. Every wait has an end.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.gate.call_at_gate import CallAtGate


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


class CallLocks:
    """The locks that calls of one level claim, each under a name that no other run has."""

    def __init__(self, table: LockTable | None, turn_id: str) -> None:
        self._table = table
        self._turn_id = turn_id
        self.claimants: set[str] = set()
        """Calls that asked for locks here."""

    def name_owner(self, at: CallAtGate) -> str | None:
        """Under which name the call holds its locks; None: it has none."""
        is_locked = bool(at.declaration.locks) and self._table is not None
        at.lock_owner = self._owner_of(at.call_id, at.attempt) if is_locked else None
        return at.lock_owner

    def claim_now(self, at: CallAtGate) -> bool:
        """Take all its locks, if they are free; True also when it has none."""
        owner = self.name_owner(at)
        if owner is None or self._table is None:
            return True
        self.claimants.add(at.call_id)
        return self._table.try_claim(owner, at.declaration.locks)

    async def claim(self, at: CallAtGate, seconds: float) -> dict[str, str] | None:
        """Wait for its locks; who holds which of them, when they did not become free in time."""
        assert at.lock_owner is not None and self._table is not None
        if await self._table.claim(at.lock_owner, at.declaration.locks, seconds):
            return None
        return self._table.holders(at.declaration.locks)

    def let_go(self, call_id: str) -> None:
        """Nobody will run this call: what it claimed is free again."""
        if self._table is not None:
            self._table.release(self._owner_of(call_id))

    def _owner_of(self, call_id: str, attempt: int = 1) -> str:
        """A run that a crash or its caller left behind may still be at it: the next one is another owner."""
        return f"{self._turn_id}/{call_id}/{attempt}"
