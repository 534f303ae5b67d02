"""Lines of what a call puts out, from pieces as they come. A line is handed on when it is whole, because a secret that
is cut in two would not be found. Of a line that is too long the beginning is handed on, with its secrets hidden."""

from collections.abc import Callable

LINE_CHARS = 16_384
"""Handed on of a line that is too long. As much again is looked at for secrets, and left out."""
LEFT_OUT = " [the rest of the line is left out]\n"


class OutputLines:
    """The lines of one call."""

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
