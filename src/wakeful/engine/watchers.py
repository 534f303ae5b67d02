"""Who watches a turn while it runs.

Facts are shown after they are stored, never before; glimpses are shown as they come and may be lost. A watcher that
raises disturbs nobody: it is dropped, and the turn goes on.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.models import ModelGlimpse

LINE_CHARS = 16_384
"""Handed on of a line that is too long. As much again is looked at for secrets, and left out."""
LEFT_OUT = " [the rest of the line is left out]\n"


class ModelGlimpsed(NamedTuple):
    """Words of an attempt that is not over."""

    step: int
    attempt: int
    piece: ModelGlimpse
    level: str | None = None
    """The level whose words they are; None: the root."""
    depth: int = 0
    made_by: str | None = None
    """The call that made the level."""


class ProgressGlimpsed(NamedTuple):
    """A note of a call that is running."""

    step: int
    call_id: str
    tool_name: str
    message: str
    done: float | None
    total: float | None


class OutputGlimpsed(NamedTuple):
    """A piece of what a running call puts out."""

    step: int
    call_id: str
    tool_name: str
    text: str
    level: str | None = None
    """The level that made the call; None: the root."""


Glimpse: TypeAlias = ModelGlimpsed | ProgressGlimpsed | OutputGlimpsed


class Seats(Protocol):
    """Where words of a thread's turns, and lines of their calls, can be heard while they come, by listeners that come
    and go."""

    @property
    def is_taken(self) -> bool:
        """Somebody listens now."""
        ...

    def hear(self, turn_id: str, seen: ModelGlimpsed | OutputGlimpsed) -> None:
        """Output comes in whole lines. Must not block, and does not raise."""
        ...


class Watcher(Protocol):
    """Sees a turn. Must not block."""

    def facts(self, recorded: Sequence[StoredFact]) -> None: ...

    def glimpse(self, seen: Glimpse) -> None: ...


class OutputLines:
    """Lines of what a call puts out, from pieces as they come. A line is handed on when it is whole, because a secret
    that is cut in two would not be found. Of a line that is too long the beginning is handed on, with its secrets
    hidden."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._rest = ""
        self._is_cut = False
        """The beginning of the line that is under way was handed on."""

    def take(self, text: str) -> str:
        """The lines that are whole now; nothing where none is."""
        lines, end, self._rest = (self._rest + text).rpartition("\n")
        lines += end
        if self._is_cut:
            if not lines:
                self._rest = ""
                return ""
            lines = lines.partition("\n")[2]
            self._is_cut = False
        if len(self._rest) > 2 * LINE_CHARS:
            lines += self._hide(self._rest)[:LINE_CHARS] + LEFT_OUT
            self._rest, self._is_cut = "", True
        return lines
