"""A text file as lines that keep what ends them, so that what is not changed comes back byte for byte.

A line ends with LF or CRLF; a lone CR and the Unicode separators are characters like any other. Bytes that are not
UTF-8 stand as lone surrogates and come back as they were. A byte order mark at the beginning is kept apart.
Pure: bytes in, values out.
"""

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias

ProcessEnd: TypeAlias = Literal["\n", "\r\n", ""]
MARK = "\ufeff"


class TextLine(NamedTuple):
    """The words of a line, and how it ends. Only the last line of a file may end with nothing."""

    text: str
    ending: ProcessEnd = "\n"


class TextFile(NamedTuple):
    """What a text file holds."""

    mark: str
    lines: list[TextLine]

    @property
    def ending(self) -> ProcessEnd:
        """How most lines end."""
        counted = Counter(line.ending for line in self.lines if line.ending)
        return "\r\n" if counted["\r\n"] > counted["\n"] else "\n"

    @property
    def ends_open(self) -> bool:
        """Is there a last line without an end?"""
        return bool(self.lines) and not self.lines[-1].ending


def is_binary(data: bytes) -> bool:
    """A NUL is in no text that these tools can change; UTF-16 is binary in this sense."""
    return b"\x00" in data


def text_file(data: bytes) -> TextFile:
    """Bytes as lines."""
    text = data.decode("utf-8", "surrogateescape")
    mark = MARK if text.startswith(MARK) else ""
    return TextFile(mark, lines_of(text[len(mark) :]))


def lines_of(text: str) -> list[TextLine]:
    """A text as lines. A text that ends with a line end has no empty line after it."""
    pieces = text.split("\n")
    lines = [TextLine(piece[:-1], "\r\n") if piece.endswith("\r") else TextLine(piece, "\n") for piece in pieces[:-1]]
    return [*lines, TextLine(pieces[-1], "")] if pieces[-1] else lines


def bytes_of(file: TextFile) -> bytes:
    """Lines as bytes again."""
    return (file.mark + "".join(line.text + line.ending for line in file.lines)).encode("utf-8", "surrogateescape")


def is_sound(text: str) -> bool:
    """Can the text be written? Lone surrogates cannot, and a NUL would make the file binary."""
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def excerpt(text: str, most: int = 120) -> str:
    """A line for a message: quoted, and not longer than a message bears."""
    shown = text if len(text) <= most else f"{text[: most - 3]}..."
    return repr(shown)
