"""What every part shares: a measuring process of its own, aims and verdicts, tables, the facts of the machine.

A process that measures prints one line of JSON. Nothing here names the machine, its user or a path: the report is
published.
"""

import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
"""No library may send traces anywhere while it is measured."""


class Broken(Exception):
    """A measuring process that ended without a result; the text is its last words."""


@dataclass(frozen=True)
class Aim:
    """A promise with a number, and what was measured; None when there was nothing to measure it with."""

    text: str
    measured: float | None
    limit: float
    unit: str
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        return "pass" if self.measured <= self.limit else "missed"


def measure(script: str, arguments: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run one of our scripts in a new process and return what it measured."""
    command = [sys.executable, str(Path(__file__).parent / script), *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **QUIET},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Broken(f"no answer in {seconds:.0f} s, stopped") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode != 0:
        raise Broken(last_words(err) or f"exit code {process.returncode}")
    result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return result


def last_words(text: str) -> str:
    """The last line of what a process said, without the folders of this machine."""
    lines = text.strip().splitlines()
    return re.sub(r"(?<!\w)/(?:[\w.+-]+/)+", "", lines[-1]) if lines else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def aims_table(aims: Iterable[Aim]) -> str:
    return table(
        ["aim", "at most", "measured", "verdict"],
        [
            [
                aim.text + (f" ({aim.note})" if aim.note else ""),
                number(aim.limit, aim.unit),
                "-" if aim.measured is None else number(aim.measured, aim.unit),
                aim.verdict if aim.verdict == "pass" else f"**{aim.verdict}**",
            ]
            for aim in aims
        ],
    )


def number(value: float, unit: str = "") -> str:
    """Three figures that matter, thousands separated."""
    text = f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:,.3g}"
    return f"{text} {unit}".strip()


def machine() -> list[tuple[str, str]]:
    """What a reader needs to compare: no names, no paths."""
    load = f"{os.getloadavg()[0]:.1f}"
    return [
        ("date", time.strftime("%Y-%m-%d", time.gmtime())),
        ("cores", str(os.cpu_count())),
        ("processor", platform.machine()),
        ("system", platform.system()),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("one 4 KB write + fdatasync, median of 200", f"{_sync_cost():.2f} ms"),
        ("load average when the run began", load),
    ]


def versions(distributions: Iterable[str]) -> list[tuple[str, str]]:
    found = []
    for name in distributions:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed"))
    return found


def _sync_cost() -> float:
    with tempfile.TemporaryFile() as file:
        took = []
        for _ in range(200):
            os.write(file.fileno(), b"x" * 4096)
            began = time.perf_counter()
            getattr(os, "fdatasync", os.fsync)(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)
