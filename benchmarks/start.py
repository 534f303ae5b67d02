"""How long it takes to begin: the two imports and `wakeful --help`.

    python benchmarks/start.py

Every figure is the median of 15 fresh processes, after one that is not counted (it writes the bytecode). An import
has its aim on the time around the import statement inside the process; `--help` on the whole process, as a person
waits for it. The last column is the process without a bare interpreter's own time.
"""

import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reporting import Aim, Broken, aims_table, last_words, number, table

RUNS = 15
BARE = "bare interpreter"
IMPORTS = {"import wakeful": 60.0, "from wakeful import Agent, tool, run": 250.0}
HELP = "wakeful --help"
HELP_LIMIT = 250.0


@dataclass(frozen=True)
class Start:
    """Medians in milliseconds; `inside` is the import statement alone."""

    what: str
    process: float | None = None
    inside: float | None = None
    problem: str = ""


def run() -> list[Start]:
    command = str(Path(sysconfig.get_path("scripts")) / "wakeful")
    return [
        _median(BARE, [sys.executable, "-c", "pass"]),
        *[_median(statement, [sys.executable, "-c", _timed(statement)]) for statement in IMPORTS],
        _median(HELP, [command, "--help"]),
    ]


def _timed(statement: str) -> str:
    return f"import time; b = time.perf_counter()\n{statement}\nprint((time.perf_counter() - b) * 1000)"


def _median(what: str, command: Sequence[str]) -> Start:
    try:
        took = [_once(command) for _ in range(RUNS + 1)][1:]
    except Broken as broken:
        return Start(what, problem=str(broken))
    inside = [inside for _, inside in took if inside is not None]
    return Start(what, statistics.median(p for p, _ in took), statistics.median(inside) if inside else None)


def _once(command: Sequence[str]) -> tuple[float, float | None]:
    began = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Broken(type(error).__name__) from error
    took = (time.perf_counter() - began) * 1000
    if done.returncode != 0:
        raise Broken(last_words(done.stderr) or f"exit code {done.returncode}")
    try:
        return took, float(done.stdout)
    except ValueError:
        return took, None


def aims(starts: list[Start]) -> list[Aim]:
    found = {start.what: start for start in starts}
    told = [Aim(f"`{what}`, the statement", found[what].inside, limit, "ms") for what, limit in IMPORTS.items()]
    return [*told, Aim(f"`{HELP}`, the whole process", found[HELP].process, HELP_LIMIT, "ms")]


def markdown(starts: list[Start]) -> str:
    bare = starts[0].process

    def shown(value: float | None) -> str:
        return "-" if value is None else number(value)

    rows = []
    for start in starts:
        beyond = start.process - bare if start.process is not None and bare is not None and start.what != BARE else None
        rows.append(
            [f"`{start.what}`" if start.what != BARE else BARE, *map(shown, (start.inside, start.process, beyond))]
        )
    text = table(["", "statement, ms", "whole process, ms", "process beyond a bare one, ms"], rows)
    problems = [f"- `{start.what}`: {start.problem}" for start in starts if start.problem]
    if problems:
        text += "\n\nNo result:\n\n" + "\n".join(problems)
    return f"{text}\n\n{aims_table(aims(starts))}\n"


if __name__ == "__main__":
    print(markdown(run()))
