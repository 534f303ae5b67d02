"""Where the outcomes of a turn arrive, and what its runner waits for.

It knows nobody: whoever carries a step out holds the inbox, and never the runner. The records of a turn make no circle
this way, and are gone as soon as the turn is let go of.
"""

import asyncio
from collections.abc import Callable

from wakeful.contracts.envelope import Fact
from wakeful.ports import Clock


class TurnInbox:
    """Outcomes that the turn has not taken in."""

    __slots__ = ("_broken", "_facts", "_waiter", "look")

    def __init__(self) -> None:
        self._facts: list[Fact] = []
        self._waiter: asyncio.Future[None] | None = None
        self._broken: BaseException | None = None
        self.look = False
        """There may be something to decide although no outcome came in."""

    def post(self, facts: list[Fact]) -> None:
        """Take an outcome from whoever carried a step out."""
        self._facts.extend(facts)
        self._wake()

    def look_again(self) -> None:
        """Something outside the inbox has changed."""
        self.look = True
        self._wake()

    def break_off(self, error: BaseException) -> None:
        """Work on the side broke (the store is full, the caller's own code raised): the run cannot go on."""
        self._broken = self._broken or error
        self._wake()

    def take(self) -> list[Fact]:
        """Everything that came, in its order."""
        taken, self._facts = self._facts, []
        return taken

    async def next(self) -> list[Fact]:
        """Wait until there is an outcome, or something to look at. Raises what broke the run."""
        if not self._facts and not self.look:
            # What was started stands before us in the loop's queue. Something quick is over when our turn comes:
            # taking it in then saves the tick that being woken would take.
            await asyncio.sleep(0)
        while not self._facts and not self.look:
            if self._broken is not None:
                raise self._broken
            await self.stirred()
        return self.take()

    async def stirred(self) -> None:
        """Until something comes."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WaitAlarm:
    """The clock of a turn that has something to wait for while it runs: a quick attempt, a provider that is away.

    It rings once for each time that it is set to. A time is slept for once: a wall clock that is set back does not make
    it longer. A turn in which only waiting is left rests, and needs no clock.
    """

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._due: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._rung = 0

    def set(self, due: int | None) -> None:
        """Ring at this time, and at no other; None: not at all."""
        if due == self._due:
            return
        self.close()
        if due is not None:
            self._due = due
            self._task = asyncio.create_task(self._wait(due))

    def heard(self) -> int:
        """The time that it has rung for, told once: what was due by then is over. 0: it has not rung."""
        rung, self._rung = self._rung, 0
        return rung

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._due = self._task = None

    async def _wait(self, due: int) -> None:
        await self._clock.sleep(max(0.0, (due - self._clock.now()) / 1_000_000))
        self._due = self._task = None
        self._rung = due
        self._ring()
