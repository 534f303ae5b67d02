"""What confinement costs: a confined `true` against bubblewrap started bare with the same flags.

    python benchmarks/confined.py

Both run in turns in one process. Bare is `subprocess.run` of the very line that a confined command is started with, and
nothing around it: nobody reads its output as it comes, counts its processes or waits for the last of them.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass

from reporting import Aim, aims_table, measure, number, table

RUNS = 60
WARM_UP = 5
LIMIT = 1.3


@dataclass(frozen=True)
class Cost:
    """Medians in milliseconds; None where the machine cannot hold a command that way."""

    bare: float | None = None
    confined: float | None = None
    problem: str = ""


def run() -> Cost:
    found = measure("confined.py", ["--cell"], 120)
    return Cost(**found)


async def _cell() -> Cost:
    from wakeful.sandbox import level_probe
    from wakeful.sandbox.command_process import CommandPipes
    from wakeful.sandbox.confinement import Sandbox

    level = level_probe.bubblewrap()
    if level.mode != "bubblewrap":
        return Cost(problem=level.reason)
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(folder, level=level)
        bare, confined = [], []
        for _ in range(WARM_UP + RUNS):
            with ExitStack() as holding:
                line = CommandPipes(holding)
                start = await sandbox.prepare(["true"], sandbox.root, line, holding)
                words = list(start.line)
                words = words[words.index(level.program) :]
                words = [*words[: words.index("--")], "--", "true"]
                began = time.perf_counter()
                subprocess.run(  # noqa: ASYNC221 - blocking is what is measured
                    words, pass_fds=start.passed, env=dict(start.environment), stdin=subprocess.DEVNULL, check=True
                )
                bare.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            ended = await sandbox.run(["true"], sandbox.root, timeout=30)
            confined.append((time.perf_counter() - began) * 1000)
            assert ended.exit_status == 0
    return Cost(statistics.median(bare[WARM_UP:]), statistics.median(confined[WARM_UP:]))


def aims(cost: Cost) -> list[Aim]:
    ratio = cost.confined / cost.bare if cost.confined is not None and cost.bare is not None else None
    return [Aim("a confined `true` over bare bubblewrap with the same flags", ratio, LIMIT, "x", cost.problem)]


def markdown(cost: Cost) -> str:
    def shown(value: float | None) -> str:
        return "-" if value is None else number(value)

    rows = [["bubblewrap, bare", shown(cost.bare)], ["confined by wakeful", shown(cost.confined)]]
    return f"""## A confined command

`true`, {RUNS} times each in turns, medians. Bare is the same line without anybody around it.

{table(["", "ms"], rows)}

{aims_table(aims(cost))}
"""


if __name__ == "__main__":
    if "--cell" in sys.argv:
        import dataclasses
        import json

        os.environ.setdefault("LANG", "C.UTF-8")
        print(json.dumps(dataclasses.asdict(asyncio.run(_cell()))))
    else:
        print(markdown(run()))
