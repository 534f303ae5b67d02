"""Words of models, tools and logs as a terminal may show them: what it would obey is shown as text.

Every text that did not come from this program goes through `plain` or `json_text` on its way out.
"""

import re
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from wakeful.views.presentation.plain_text import arguments_text, counted, duration, json_text, one_line, plain

__all__ = [
    "AGE_WIDTH",
    "DAY",
    "HOUR",
    "MINUTE",
    "STATES",
    "age_cell",
    "ago",
    "arguments_text",
    "counted",
    "duration",
    "json_text",
    "local_times",
    "moment",
    "one_line",
    "out",
    "plain",
    "size",
    "span",
    "state_words",
    "undeclared_words",
]

MINUTE, HOUR, DAY = 60, 3600, 86_400
AGE_WIDTH = 6
STATES = {"awake_idle": "idle", "awake_running": "running", "awaiting_task": "waits"}
"""States of agents in the words of a person, where they have others."""


def state_words(state: str, waiting_for: str) -> str:
    """How an agent stands, for a person."""
    return f"waiting for {plain(waiting_for)}" if waiting_for else STATES.get(state, state)


_UTC = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


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


def moment(at: int) -> str:
    """Microseconds since the epoch as a person's own date and time."""
    return datetime.fromtimestamp(at / 1_000_000).strftime("%Y-%m-%d %H:%M:%S")


def local_times(text: str) -> str:
    """The text with its times, which the log has in UTC, as a person's own date and time."""
    return _UTC.sub(lambda found: moment(int(datetime.fromisoformat(found[0]).timestamp() * 1e6)), text)


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


def size(count: int) -> str:
    """`3.4 MB`."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
