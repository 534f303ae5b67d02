"""Time, new names and texts to look things up in."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from wakeful.contracts.knowledge import Passage


class Clock(Protocol):
    """Time. Nothing else in the runtime may ask for it."""

    def now(self) -> int:
        """Microseconds since the epoch, for facts."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for durations."""
        ...

    def skipped(self) -> int:
        """Microseconds of `now` in which nothing could run, added up since a beginning of the clock's own.

        A stopped process, a suspended machine and a clock that was set are such times. Noticed while somebody follows.
        """
        ...

    def follow(self) -> AbstractContextManager[None]:
        """Notice such times as long as it is open."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """New names. Unique for ever, of no other meaning, and such that nobody can guess the next one."""

    def new(self, prefix: str) -> str: ...


@runtime_checkable
class Collection(Protocol):
    """A named set of texts that a turn may look things up in."""

    @property
    def name(self) -> str: ...

    @property
    def untrusted(self) -> bool:
        """May anybody have written what it finds?"""
        ...

    async def search(self, question: str, limit: int = 8) -> "Sequence[Passage]":
        """The passages nearest to the question, best first. May raise: the turn goes on without them."""
        ...
