"""How long a person waits for `wakeful status`, and for a bare `wakeful why`, against a running daemon: with a handful
of agents, and with 10,000.

    python benchmarks/status.py
    python benchmarks/status.py --agents 1000

Every figure is the median of 15 fresh processes after one that is not counted. `processor` is what the command itself
used: on a machine that does other things it says more than the wait. The last row is the same question about the file
of the store, in the process of the command.
"""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from reporting import number, table

RUNS = 15
LIMIT = 300.0
COMMAND = str(Path(sysconfig.get_path("scripts")) / "wakeful")


class Waited(NamedTuple):
    """Medians in milliseconds."""

    what: str
    wall: float
    processor: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, default=10_000)
    most: int = parser.parse_args().agents
    rows = [each for count in (5, most) for each in _measured(count)]
    print(table(("question", "wall ms", "processor ms"), [(r.what, number(r.wall), number(r.processor)) for r in rows]))
    worst = max(row.wall for row in rows if "daemon" in row.what and "why" not in row.what)
    print(f"aim: `status` under {LIMIT:.0f} ms against a daemon; measured {worst:.0f} ms")


def _measured(count: int) -> list[Waited]:
    with tempfile.TemporaryDirectory() as folder:
        around = {**os.environ, "WAKEFUL_HOME": folder}
        asyncio.run(_make(Path(folder), count))
        subprocess.run([COMMAND, "daemon", "start", "--listen", "none"], env=around, check=True, capture_output=True)
        try:
            by_daemon = _median(f"daemon, {count:,} agents", ["status"], around)
            listed = _median(f"daemon, {count:,} agents, --json", ["status", "--json"], around)
            why = _median(f"daemon, {count:,} agents, `wakeful why`", ["why"], around)
        finally:
            subprocess.run([COMMAND, "daemon", "stop"], env=around, check=True, capture_output=True)
        return [by_daemon, listed, why, _median(f"file, {count:,} agents", ["status"], around)]


async def _make(home: Path, count: int) -> None:
    from wakeful import Agent, Runtime
    from wakeful.testing import scripted

    model = scripted(["fine"])
    async with Runtime(home, agents=[Agent(f"agent-{number}", model) for number in range(count)]):
        pass


def _median(what: str, arguments: list[str], around: dict[str, str]) -> Waited:
    took = [_once([COMMAND, *arguments], around) for _ in range(RUNS + 1)][1:]
    return Waited(what, statistics.median(w for w, _ in took), statistics.median(c for _, c in took))


def _once(command: list[str], around: dict[str, str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=around, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


if __name__ == "__main__":
    main()
