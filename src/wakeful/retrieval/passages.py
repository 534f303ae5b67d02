"""A text file as passages: whole paragraphs, up to a size that a model can use, each with its lines. Pure."""

from typing import NamedTuple

TARGET_CHARS = 1_200
"""A passage is closed once it is this long."""
MAX_CHARS = 2_400
"""A paragraph longer than this is cut at a line, and a line at this many characters."""


class Cut(NamedTuple):
    """A passage of one file."""

    first_line: int
    last_line: int
    title: str
    """The nearest heading above it."""
    text: str


def cut(text: str) -> list[Cut]:
    """The passages of a text, in order. No word of it is in two of them."""
    found: list[Cut] = []
    open_from, title, size = 1, "", 0
    lines = text.splitlines()
    pieces: list[str] = []

    def close(last: int) -> None:
        nonlocal pieces, size
        said = "\n".join(pieces).strip("\n")
        if said.strip():
            found.append(Cut(open_from, last, title, said))
        pieces, size = [], 0

    for number, line in enumerate(lines, 1):
        is_heading = line.startswith("#")
        ends_paragraph = not line.strip() and size >= TARGET_CHARS
        if pieces and (is_heading or ends_paragraph or size + len(line) > MAX_CHARS):
            close(number - 1)
        if is_heading:
            title = line.lstrip("#").strip()
        if not pieces:
            open_from = number
        for start in range(0, max(len(line), 1), MAX_CHARS):
            if start:
                close(number)
                open_from = number
            pieces.append(line[start : start + MAX_CHARS])
            size += len(pieces[-1]) + 1
    close(len(lines))
    return found
