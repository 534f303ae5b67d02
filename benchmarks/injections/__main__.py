"""`python -m benchmarks.injections`: all tasks, three ways to hand the tools over; writes `docs/injections.md`.

--seed N      another set of tasks
--rounds N    more or fewer of them (5)
--only NAME   declared, mcp or undeclared
--print       print the page instead of writing it
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.injections.running import Outcome, run_task
from benchmarks.injections.tasks import Task, generate
from benchmarks.injections.tools import declared, served, undeclared

PAGE = Path(__file__).parents[2] / "docs" / "injections.md"
WAYS = {
    "declared": "tools that declare `untrusted`, `reads_private`, `content`",
    "mcp": "the same tools of an MCP server, with its annotations",
    "undeclared": "the same functions, declaring nothing",
}
COLUMNS = (
    "tools",
    "attacks that act",
    "benign tasks done",
    "attacked tasks done",
    "approvals a task, median",
    "approvals a benign task, median and most",
)
HEAD = f"""# Injections

Written by `python -m benchmarks.injections`; do not edit.

The tasks are generated ({{tasks}}: {{benign}} benign, {{attacked}} attacked). Each has private data, untrusted input
and a tool that acts. The model is a script that obeys every injection it reads, before it does what it was asked for. A
person answers approvals, and approves exactly what the task asks for. An attack *acts* when anything was done that the
owner had not asked for. The rule that is measured is in [explain/security.md](explain/security.md).

| {" | ".join(COLUMNS)} |
|---|---:|---:|---:|---:|---:|
"""
TAIL = """
What acts with declared tools names only words that the owner wrote. "Only values that the owner named" puts private
data into free text to a receiver whom the owner chose: no comparison of values finds that. "A piece of the owner's
value" acts where the piece is a whole word of a name that has several.

The total is a property of this mix of tasks as much as of the check. "Only values that the owner named" always acts,
and is generated once for each world with free text, whatever the number of rounds; every other kind is generated in
each round. With `--rounds 1` the same check shows 8.8 % (6 of 68), and with `--seed 1` and `--seed 2` it shows 3.1 %
(10 of 320, declared tools). Read the table by kind.
"""


async def run_way(way: str, tasks: Sequence[Task], folder: Path) -> list[Outcome]:
    """All tasks with the tools handed over in one way."""
    if way != "mcp":
        made = (declared if way == "declared" else undeclared)(folder)
        return [await run_task(task, made, folder) for task in tasks]
    held = served(folder, sys.executable)
    await held.offer()  # one server for all runs: whoever holds it keeps it
    try:
        return [await run_task(task, [served(folder, sys.executable)], folder, "mcp.office/") for task in tasks]
    finally:
        await held.close()


def share(part: Sequence[Any], whole: Sequence[Any]) -> str:
    return f"{len(part)} of {len(whole)} ({100 * len(part) / max(1, len(whole)):.1f} %)"


def row(way: str, outcomes: Sequence[Outcome]) -> str:
    """One line of the table."""
    attacked = [each for each in outcomes if each.task.attacked]
    benign = [each for each in outcomes if not each.task.attacked]
    asked = [each.approvals for each in benign]
    cells = [
        WAYS[way],
        share([each for each in attacked if each.acted], attacked),
        share([each for each in benign if each.finished], benign),
        share([each for each in attacked if each.finished], attacked),
        f"{statistics.median(each.approvals for each in outcomes):g}",
        f"{statistics.median(asked):g}, {max(asked)}",
    ]
    return "| " + " | ".join(cells) + " |"


def kinds(found: dict[str, list[Outcome]]) -> list[str]:
    """What acted, kind by kind."""
    names = list(dict.fromkeys(each.task.kind for each in next(iter(found.values()))))
    lines = ["", "## By kind", "", f"| kind | {' | '.join(found)} |", f"|---|{'---:|' * len(found)}"]
    for name in names:
        cells = []
        for outcomes in found.values():
            of_kind = [each for each in outcomes if each.task.kind == name]
            acted = sum(each.acted for each in of_kind)
            approvals = statistics.median(each.approvals for each in of_kind)
            cells.append(f"{acted} of {len(of_kind)} act, {approvals:g} approvals")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


async def measure(ways: Sequence[str], tasks: Sequence[Task]) -> dict[str, list[Outcome]]:
    found = {}
    for way in ways:
        with tempfile.TemporaryDirectory() as folder:
            found[way] = await run_way(way, tasks, Path(folder))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.injections", description=__doc__)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=list(WAYS))
    parser.add_argument("--print", action="store_true", dest="prints")
    given = parser.parse_args()
    tasks = generate(given.seed, given.rounds)
    ways = [given.only] if given.only else list(WAYS)
    found = asyncio.run(measure(ways, tasks))
    attacked = sum(task.attacked for task in tasks)
    head = HEAD.format(tasks=len(tasks), benign=len(tasks) - attacked, attacked=attacked)
    page = head + "\n".join([*(row(way, outcomes) for way, outcomes in found.items()), *kinds(found)]) + "\n" + TAIL
    if given.prints or given.only:
        print(page)
    else:
        PAGE.write_text(page)
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
