"""Where the outcomes of a turn arrive, and what its runner waits for.

It knows nobody: whoever carries a step out holds the inbox, and never the runner. The records of a turn make no circle
this way, and are gone as soon as the turn is let go of.
"""

import asyncio

from wakeful.contracts.envelope import Fact


class TurnInbox:
    """Outcomes that the turn has not taken in."""

    __slots__ = ("_broken", "_facts", "_waiter", "look")

    def __init__(self) -> None:
        self._facts: list[Fact] = []
        self._waiter: asyncio.Future[None] | None = None
        self._broken: BaseException | None = None
        self.look = False
        """There may be something to decide although no outcome came in."""

    @property
    def is_empty(self) -> bool:
        return not self._facts

    @property
    def is_broken(self) -> bool:
        return self._broken is not None

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
