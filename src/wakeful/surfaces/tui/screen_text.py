"""Text of models, tools and people that does a screen no harm, folded to its width."""

import re
import unicodedata

from rich.cells import cell_len, chop_cells

from wakeful.views.presentation.plain_text import plain

MOST_MARKS = 3
"""Marks that may stand on one letter."""
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u200c\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Characters without a width: a word could hide in them."""


def harmless(text: str) -> str:
    """The text as it stands; what a terminal would obey is shown in letters, what it would hide is left out."""
    shown = _INVISIBLE.sub("", plain(text.expandtabs(4)))
    if shown.isascii():
        return shown
    kept, marks = [], 0
    for letter in shown:
        marks = marks + 1 if unicodedata.combining(letter) or unicodedata.category(letter) == "Me" else 0
        if marks <= MOST_MARKS:
            kept.append(letter)
    return "".join(kept)


def folded(text: str, width: int) -> list[str]:
    """The text in lines of so many columns at most, broken between words where that is possible."""
    return [line for each in harmless(text).splitlines() or [""] for line in _fold(each, max(width, 8))]


def _fold(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    found, now = [], ""
    for word in re.findall(r"\s*\S+", line):
        if cell_len(now + word) <= width:
            now += word
            continue
        if now:
            found.append(now)
        *whole, now = chop_cells(word.strip() if found else word, width)
        found += whole
    return [*found, now]


def cut(text: str, width: int) -> str:
    """The text in one line of at most so many columns."""
    flat = " ".join(harmless(text).split())
    if cell_len(flat) <= width:
        return flat
    return chop_cells(flat, max(width - 1, 1))[0] + "…"


def cut_middle(text: str, width: int) -> str:
    """A name in at most so many columns: its beginning and its end, which tell it from others that begin alike."""
    flat = " ".join(harmless(text).split())
    if cell_len(flat) <= width:
        return flat
    end = chop_cells(flat[::-1], max((width - 1) // 2, 1))[0][::-1]
    return chop_cells(flat, max(width - 1 - cell_len(end), 1))[0] + "…" + end


def padded(text: str, width: int) -> str:
    """The text in one line of exactly so many columns."""
    shown = cut(text, width)
    return shown + " " * (width - cell_len(shown))
