"""Words of models, tools and logs as text: what a terminal would obey is shown, and nothing is longer than wanted."""

import json
import re
import unicodedata
from typing import Any
from unicodedata import east_asian_width

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and newline, marks that turn the direction of text, and halves of characters."""
_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that the JSON encoder leaves as they are."""
_ID_LETTERS = 16
"""Of the 26 of an id: ten of its time and six at random mean one record."""


def plain(text: str) -> str:
    r"""The text with `\x1b` in the place of an escape."""
    return _OBEYED.sub(_escaped, text)


def one_line(text: str, most: int = 100) -> str:
    """The text on one line, cut where it gets long."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def columns_of(text: str) -> int:
    """Columns of a terminal: letters of East Asia take two, marks on a letter none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else 1 + (east_asian_width(each) in "WF") for each in text)


def json_text(data: Any, *, indent: int | None = None) -> str:
    """JSON that a terminal can be shown and a program can read."""
    return _IN_JSON.sub(_escaped_in_json, json.dumps(data, indent=indent, ensure_ascii=False))


def arguments_text(arguments: dict[str, Any] | None, most: int = 80) -> str:
    """`order="A17", cents=4200`."""
    if not arguments:
        return ""
    return one_line(", ".join(f"{name}={json_text(value)}" for name, value in arguments.items()), most)


def counted(number: int, what: str) -> str:
    """`1 turn`, `3 turns`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(ms: float) -> str:
    """`0.4 ms`, `12 ms`, `3.1 s`."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def rough_span(seconds: float) -> str:
    """`8 s`, `12 min`, `3 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"


def short(name: str) -> str:
    """An id as people see and type it: `turn_01K4M3...` without its last letters. Other names stay as they are."""
    word, _, letters = name.rpartition("_")
    is_id = len(letters) == 26 and letters.isalnum() and letters.upper() == letters
    return f"{word}_{letters[:_ID_LETTERS]}" if word and is_id else name


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped_in_json(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"
