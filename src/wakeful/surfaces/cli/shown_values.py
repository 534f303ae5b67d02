"""Words of models, tools and logs as a terminal may show them: what it would obey is shown as text.

Every text that did not come from this program goes through `plain` or `json_text` on its way out.
"""

import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

MINUTE, HOUR, DAY = 60, 3600, 86_400
AGE_WIDTH = 6
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and newline, marks that turn the direction of text, and halves of characters."""
_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that the JSON encoder leaves as they are."""


def plain(text: str) -> str:
    r"""The text with `\x1b` in the place of an escape."""
    return _OBEYED.sub(_escaped, text)


def one_line(text: str, most: int = 100) -> str:
    """The text on one line, cut where it gets long."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def json_text(data: Any, *, indent: int | None = None) -> str:
    """JSON that a terminal can be shown and a program can read."""
    return _IN_JSON.sub(_escaped_in_json, json.dumps(data, indent=indent, ensure_ascii=False))


def arguments_text(arguments: dict[str, Any] | None, most: int = 80) -> str:
    """`order="A17", cents=4200`."""
    if not arguments:
        return ""
    return one_line(", ".join(f"{name}={json_text(value)}" for name, value in arguments.items()), most)


def undeclared_words(tools: Sequence[str]) -> str:
    """The problem with tools that read and act and declare nothing, and what to do."""
    some = ", ".join(tools[:10]) + (f" and {len(tools) - 10} more" if len(tools) > 10 else "")
    verb = "reads and acts and declares" if len(tools) == 1 else "read and act and declare"
    return (
        f"{some} {verb} nothing. Add @tool(untrusted=True) if its results may hold text from strangers, "
        "reads_private=True if they are private, untrusted=False if neither"
    )


def out(lines: Iterable[str] | str) -> None:
    """Results, to stdout."""
    for line in [lines] if isinstance(lines, str) else lines:
        sys.stdout.write(line + "\n")


def counted(number: int, what: str) -> str:
    """`1 turn`, `3 turns`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def moment(at: int) -> str:
    """Microseconds since the epoch as a person's own date and time."""
    return datetime.fromtimestamp(at / 1_000_000).strftime("%Y-%m-%d %H:%M:%S")


def ago(at: int) -> str:
    """How long ago that was, from microseconds since the epoch: `40 s`, `3 min`, `5 h`, `2 d`."""
    return span(max(0.0, time.time() - at / 1_000_000))


def age_cell(at: int) -> str:
    """The same for a column: always as wide, so that a list looks the same a moment later."""
    return f"{ago(at):<{AGE_WIDTH}}"


def span(seconds: float) -> str:
    """`40 s`, `3 min`, `5 h`, `2 d`."""
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 2 * size or (seconds >= size and unit == "min"):
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def duration(ms: float) -> str:
    """`0.4 ms`, `12 ms`, `3.1 s`."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def size(count: int) -> str:
    """`3.4 MB`."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped_in_json(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"
