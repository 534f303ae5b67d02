"""A turn's stored facts, for its result: in memory while they are few, read back from the log when they are many.

A long turn must not keep every fact it ever wrote alive: it would cost memory, and the garbage collector would walk
over all of them again and again.
"""

from collections.abc import Callable, Iterable

from wakeful.contracts.envelope import Recorded

KEPT = 1_000
"""A turn with more facts than this keeps none of them."""


class KnownFacts:
    """What is known of a turn's facts in this process."""

    def __init__(self, recorded: Iterable[Recorded], read: Callable[[], list[Recorded]]) -> None:
        self._kept: list[Recorded] | None = list(recorded)
        self._read = read
        self.last_seq = self._kept[-1].seq if self._kept else 0

    @property
    def keeps_none(self) -> bool:
        """There were too many: they are read back when somebody asks."""
        return self._kept is None

    def add(self, recorded: list[Recorded]) -> None:
        """Facts that are stored now."""
        if recorded:
            self.last_seq = recorded[-1].seq
            if self._kept is not None:
                self._kept.extend(recorded)
                if len(self._kept) > KEPT:
                    self._kept = None

    def __call__(self) -> list[Recorded]:
        """All of them, in order."""
        if self._kept is None:
            return self._read()
        return self._kept
