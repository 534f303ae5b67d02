"""What was worked out for the same objects before: agents of one kind share it, and no turn works it out anew.

By identity, for the values are large: what a result was made from is kept beside it, so that no id can be taken by
another. The oldest is forgotten first.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT = 32
"""About as many kinds of agents as one process has busy at once."""


class KeptResults(Generic[T]):
    """Results of a pure function."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._kept: dict[tuple[int, ...], tuple[tuple[object, ...], T]] = {}

    def of(self, given: Sequence[object], make: Callable[[], T]) -> T:
        """The result for these objects: kept, or made now."""
        key = tuple(map(id, given))
        known = self._kept.get(key)
        if known is None:
            known = (tuple(given), make())
            if len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = known
        return known[1]
