"""The width of the screen: tables and prose fit it, and 80 columns where nobody says otherwise.

A table never makes a line longer than the screen: its last column is cut first, then its widest one; the first column,
which names the row, is cut only where it is a long name, and in its middle. `--wide` cuts nothing. Commands to copy are
never cut either. Colours are for terminals only, and `NO_COLOR` turns them off.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from wakeful.surfaces.cli.shown_values import out, plain
from wakeful.views.presentation.plain_text import columns_of, short

__all__ = ["NARROW", "coloured", "columns", "fold", "folded", "painted", "prose", "short", "width", "wrapped"]

NARROW = 80
GAP = "  "
LEAST = 8
"""Letters that a cut column keeps at least."""
LAST_LEAST = 24
"""Letters that the last column is given, where others can give way."""
FIRST_LEAST = 32
"""Letters that the first column keeps: ids are shorter, and a longer name is cut in its middle."""
_HANG_MOST = 40
"""Columns that a folded line is indented at most."""
_LAST_COLUMN = re.compile(r"^.*\S {2,}(?=\S)|^ *")
_RED, _CYAN, _PLAIN = "\x1b[1;31m", "\x1b[36m", "\x1b[0m"
_TONES = {"added": "\x1b[32m", "removed": "\x1b[31m"}


def width() -> int:
    """`$COLUMNS`, or the terminal's, or 80."""
    return max(40, shutil.get_terminal_size((NARROW, 24)).columns)


def columns(rows: Sequence[Sequence[str]], titles: Sequence[str], *, wide: bool = False) -> list[str]:
    """Rows under their titles, as wide as the screen at most."""
    table = [list(titles), *([plain(cell).replace("\n", " ") for cell in row] for row in rows)]
    natural = [max(columns_of(row[index]) for row in table) for index in range(len(titles))]
    kept = natural if wide else _fitted(natural, width() - len(GAP) * (len(titles) - 1))
    cut = [
        [_cell(cell, most, number) for number, (cell, most) in enumerate(zip(row, kept, strict=True))] for row in table
    ]
    return [GAP.join(row).rstrip() for row in cut]


def wrapped(text: str, stream: TextIO, *, first: str = "", rest: str = "") -> str:
    """Prose in lines that fit, where somebody reads it on a screen; a line with a command is left whole."""
    is_read = stream.isatty()
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        before = rest if lines else first
        if not is_read or "wakeful " in line or len(before + line) <= width():
            lines.append(before + line)
        else:
            indent = line[: len(line) - len(line.lstrip())]
            lines += fold(line.lstrip(), first=before + indent, rest=rest + indent)
    return "\n".join(lines)


def fold(text: str, *, first: str, rest: str) -> list[str]:
    """Prose in lines that fit, the first behind `first` and the others behind `rest`."""
    return textwrap.wrap(
        text, width(), initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


def prose(lines: Iterable[str] | str) -> None:
    """Words, to stdout. A line that does not fit a terminal goes on below the place where its last column begins."""
    for line in [lines] if isinstance(lines, str) else lines:
        out(folded(line, sys.stdout))


def folded(line: str, stream: TextIO, indent: str = "") -> str:
    """One line of words behind an indent, folded below the place where its last column begins."""
    if _PLAIN in line:  # text of others has no colours: such a line was laid out to fit
        return indent + line
    found = _LAST_COLUMN.match(line)
    begins = min(found.end() if found is not None else 0, _HANG_MOST)
    own = len(line) - len(line.lstrip())
    hang = begins - own if begins else 2
    return wrapped(line, stream, first=indent, rest=indent + " " * hang)


def coloured(label: str, stream: TextIO) -> str:
    """`Error:` in red and `Hint:` in cyan, where the stream is a terminal that shows colours."""
    if not _has_colours(stream):
        return label
    return f"{_RED if label.startswith('Error') else _CYAN}{label}{_PLAIN}"


def painted(line: str, tone: str, stream: TextIO | None) -> str:
    """A line of a change in green or red, where the stream is a terminal that shows colours."""
    return f"{_TONES[tone]}{line}{_PLAIN}" if stream is not None and tone in _TONES and _has_colours(stream) else line


def _has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def _fitted(natural: Sequence[int], room: int) -> list[int]:
    """Widths that fit into the room: the last column gives way first, then a long name, then the widest of the rest."""
    kept = list(natural)
    while sum(kept) > room:
        able = [index for index in range(1, len(kept) - 1) if kept[index] > LEAST]
        if kept[-1] > LAST_LEAST or (not able and kept[-1] > LEAST):
            kept[-1] = max(LAST_LEAST if kept[-1] > LAST_LEAST else LEAST, kept[-1] - (sum(kept) - room))
        elif kept[0] > FIRST_LEAST and len(kept) > 1:
            kept[0] = max(FIRST_LEAST, kept[0] - (sum(kept) - room))
        elif able:
            kept[max(able, key=lambda index: kept[index])] -= 1
        else:
            break
    return kept


def _cell(text: str, most: int, number: int) -> str:
    """One cell of exactly so many columns; a name is cut in its middle."""
    shown = text if columns_of(text) <= most else _cut_middle(text, most) if number == 0 else _cut(text, most)
    return shown + " " * (most - columns_of(shown))


def _cut(text: str, most: int) -> str:
    kept = text[: most - 1]
    while columns_of(kept) > most - 1:
        kept = kept[:-1]
    return kept + "…"


def _cut_middle(text: str, most: int) -> str:
    end = text[-((most - 1) // 2) :]
    return _cut(text, most - columns_of(end)) + end
