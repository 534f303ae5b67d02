"""What running tools say of their progress: which notes become facts."""

import math
from collections.abc import Callable

from wakeful.contracts.events import ToolProgress
from wakeful.tools.results import clean

SECONDS_BETWEEN_FACTS = 1.0
MAX_MESSAGE_CHARS = 500
ACKNOWLEDGED = "cancel_acknowledged"
"""The message of the note that says: the call has seen that it is to stop."""


class _Notes:
    __slots__ = ("began", "count", "pending", "written")

    def __init__(self, now: float) -> None:
        self.began = now
        self.count = 0
        self.written = float("-inf")
        self.pending: ToolProgress | None = None


class ProgressNotes:
    """Which notes become facts."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._calls: dict[str, _Notes] = {}

    def take(
        self, call_id: str, message: str, done: float | None, total: float | None, partial: str = ""
    ) -> ToolProgress | None:
        """A new note; returned when it is due as a fact."""
        now = self._monotonic()
        notes = self._calls.setdefault(call_id, _Notes(now))
        notes.count += 1
        notes.pending = ToolProgress(
            progress_seq=notes.count,
            message=clean(message[:MAX_MESSAGE_CHARS]) or None,
            progress=_finite(done),
            total=_finite(total),
            partial_preview=clean(partial[:MAX_MESSAGE_CHARS]) or None,
            elapsed_ms=int((now - notes.began) * 1000),
        )
        if now - notes.written < SECONDS_BETWEEN_FACTS:
            return None
        notes.written = now
        due, notes.pending = notes.pending, None
        return due

    def acknowledged(self, call_id: str) -> list[ToolProgress]:
        """The call has seen that it is to stop: a fact at once, after what it said before that."""
        now = self._monotonic()
        notes = self._calls.setdefault(call_id, _Notes(now))
        notes.count += 1
        elapsed = int((now - notes.began) * 1000)
        seen = ToolProgress(progress_seq=notes.count, message=ACKNOWLEDGED, elapsed_ms=elapsed)
        before, notes.pending, notes.written = notes.pending, None, now
        return [before, seen] if before is not None else [seen]

    def last(self, call_id: str) -> list[ToolProgress]:
        """The call is over: its last note, when it has not been written."""
        notes = self._calls.pop(call_id, None)
        return [notes.pending] if notes is not None and notes.pending is not None else []


def _finite(number: float | None) -> float | None:
    """JSON has no place for the others."""
    return number if number is not None and math.isfinite(number) else None
