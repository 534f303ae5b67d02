"""The cost of a tree of subtasks, against the same rounds run flat in one turn.

    python benchmarks/trees.py

Three levels of eight children each, every level with twenty rounds: 584 subtasks and their root. Each round asks the
scripted model and runs a trivial tool; a level that has children makes them in its first round. Beside it, one turn
with as many rounds one after another. On a SQLite file, the budget and the gate included.
"""

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from reporting import Aim, aims_table, number, table

from wakeful import Agent, Budget, tool
from wakeful import run as run_turn
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel

CHILDREN, DEPTH, ROUNDS, RUNS = 8, 3, 20, 3
LEVELS = sum(CHILDREN**depth for depth in range(DEPTH + 1))
LIMIT = 1.3
TEXT = f"""## The cost of a tree of subtasks

{DEPTH} levels of {CHILDREN} children, {ROUNDS} rounds each: {LEVELS - 1} subtasks and their root, {LEVELS * ROUNDS:,}
rounds in one turn, one ledger, one log. Beside it one turn with as many rounds one after another. SQLite, median of
{RUNS} runs each, side by side.
"""


@dataclass(frozen=True)
class Cost:
    """Milliseconds for the whole."""

    tree: float
    flat: float
    rounds: int

    @property
    def ratio(self) -> float:
        return self.tree / self.flat


@tool(effect="pure")
async def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


ADD = {"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}
SPLIT = {
    "calls": [
        {"name": "run_subtask", "arguments": {"title": f"part {part}", "instructions": f"Do part {part}."}}
        for part in range(CHILDREN)
    ]
}


def branching(request: ModelRequest) -> object:
    if request.answered == 0 and request.depth < DEPTH:
        return SPLIT
    return ADD if request.answered < ROUNDS - 1 else "done"


def straight(request: ModelRequest) -> object:
    return ADD if request.answered < LEVELS * ROUNDS - 1 else "done"


async def once(agent: Agent[None, str], store: Path) -> tuple[float, int]:
    began = time.perf_counter()
    result = await run_turn(agent, "Do it.", store=store, budget=Budget.unlimited())
    took = (time.perf_counter() - began) * 1000
    assert result.completed, result.message
    return took, result.model_calls


async def measure(runs: int = RUNS) -> Cost:
    tree = Agent("tree", ScriptedModel(branching), tools=[add], subtasks=True)
    flat = Agent("flat", ScriptedModel(straight), tools=[add], subtasks=True)
    trees, flats, rounds = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number_of_run in range(runs):
            took, made = await once(flat, Path(folder) / f"flat{number_of_run}.db")
            flats.append(took)
            took, rounds = await once(tree, Path(folder) / f"tree{number_of_run}.db")
            trees.append(took)
            assert made == rounds == LEVELS * ROUNDS
    return Cost(statistics.median(trees), statistics.median(flats), rounds)


def run() -> Cost:
    return asyncio.run(measure())


def markdown(cost: Cost) -> str:
    rows = [
        ("tree", number(cost.tree / 1000), number(cost.tree * 1000 / cost.rounds)),
        ("flat", number(cost.flat / 1000), number(cost.flat * 1000 / cost.rounds)),
    ]
    aims = [Aim(f"a tree of {LEVELS - 1} subtasks against the same rounds run flat", cost.ratio, LIMIT, "x")]
    return f"{TEXT}\n{table(['', 's', 'us a round'], rows)}\n\n{aims_table(aims)}\n"


if __name__ == "__main__":
    print(markdown(run()))
