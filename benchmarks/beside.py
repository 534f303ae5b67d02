"""This version beside another one, in turns in one run: short runs, rounds, a crowd, the size of a turn.

    python benchmarks/beside.py PATH-OF-ANOTHER-CHECKOUT [--pairs 5] [--only short rounds crowd size]

Processor time, so that a busy machine distorts little; each cell in a process of its own. The ratio is the median of
the ratios of the pairs. Stalls are wall clock, and say something on a quiet machine only.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful import RunResult

CELLS = ("short", "rounds", "crowd", "size")
SHORT, PATHS, TURNS, ROUNDS = 150, 40, 300, 10

# ---- inside a cell's process


async def _short(folder: Path) -> dict[str, float]:
    """A run of one reply."""
    from wakeful import Agent, run
    from wakeful.store.sqlite import SqliteStore
    from wakeful.testing import scripted

    agent = Agent("bench", scripted(lambda request: "done"))
    path = folder / "runs.db"
    store = await SqliteStore.open(path)

    async def timed(count: int, one: "Callable[[int], Awaitable[RunResult]]") -> float:
        assert (await one(-1)).output == "done"
        began = time.process_time()
        for number in range(count):
            await one(number)
        return (time.process_time() - began) / count * 1e6

    found = {
        "open store, new thread, us": await timed(SHORT, lambda n: run(agent, "hi", store=store, thread=f"t{n}")),
        "open store, one thread, us": await timed(SHORT, lambda n: run(agent, "hi", store=store, thread="one")),
    }
    await store.close()
    found["path, us"] = await timed(PATHS, lambda n: run(agent, "hi", store=str(path), thread=f"p{n}"))
    found["no store, us"] = await timed(SHORT, lambda n: run(agent, "hi"))
    return found


async def _rounds(folder: Path) -> dict[str, float]:
    """Rounds of one call, on a new database, and the bare loop."""
    from contestants import CONTESTANTS

    prepare, bare = CONTESTANTS["wakeful+sqlite"].load(), CONTESTANTS["bare apsw"].load()
    found = {}
    for name, count, what in (("", 20, prepare), ("50", 50, prepare), ("800", 800, prepare), ("bare", 800, bare)):
        place = folder / f"rounds{name}"
        place.mkdir()
        began = time.process_time()
        await what(count, place)()
        if name:
            found[f"round, {name}, us"] = (time.process_time() - began) / count * 1e6
    found["times the bare loop"] = found["round, 800, us"] / found["round, bare, us"]
    found["bytes a round, 800"] = sum(file.stat().st_size for file in (folder / "rounds800").iterdir()) / 800
    return found


async def _crowd(folder: Path) -> dict[str, float]:
    """Turns at once, each in a thread of its own of one agent."""
    from memory import resident

    from wakeful import Agent, Budget, run, tool
    from wakeful.store.sqlite import SqliteStore
    from wakeful.testing import scripted

    @tool(effect="pure")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    replies: list[object] = [{"calls": [{"name": "add", "arguments": {"a": n, "b": 1}}]} for n in range(ROUNDS)]
    agent = Agent("bench", scripted([*replies, "done"]), tools=[add])
    store = await SqliteStore.open(folder / "runs.db")

    async def at_once(prefix: str, count: int) -> None:
        turns = (run(agent, "go", store=store, thread=f"{prefix}{n}", budget=Budget.unlimited()) for n in range(count))
        assert {result.output for result in await asyncio.gather(*turns)} == {"done"}

    await at_once("warm", 20)
    gc.collect()
    gc.freeze()
    held = resident()
    began = time.process_time()
    await at_once("t", TURNS)
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    await store.close()
    return {"round in a crowd, us": took / TURNS / ROUNDS * 1e6, "KB a turn": (peak - held) / TURNS / 1024}


async def _size(folder: Path) -> dict[str, float]:
    """Bytes of the database a turn of one reply, in one thread, one tool offered."""
    from wakeful import Agent, run, tool
    from wakeful.store.sqlite import SqliteStore
    from wakeful.testing import scripted

    @tool(effect="pure")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent, path = Agent("bench", scripted(lambda request: "done"), tools=[add]), folder / "runs.db"
    sizes = []
    for _ in range(2):
        store = await SqliteStore.open(path)
        for number in range(200):
            await run(agent, f"hello {number}", store=store, thread="t")
        await store.close()
        sizes.append(path.stat().st_size)
    return {"bytes a turn": (sizes[1] - sizes[0]) / 200}


# ---- around it


def cell(name: str, root: Path) -> dict[str, float]:
    """One cell with the code of a checkout."""
    paths = f"{root / 'src'}{os.pathsep}{root / 'benchmarks'}"
    command = [sys.executable, __file__, "--cell", name, "."]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": paths})
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(names: list[str], other: Path, pairs: int) -> None:
    here = Path(__file__).parent.parent
    for name in names:
        both = [(cell(name, other), cell(name, here)) for _ in range(pairs)]
        for what in both[0][0]:
            before, now = ([each[side][what] for each in both] for side in (0, 1))
            ratio = statistics.median(new / old for old, new in zip(before, now, strict=True))
            print(f"{what:28} {statistics.median(before):9,.1f} {statistics.median(now):9,.1f} {ratio:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="This version beside another one.")
    parser.add_argument("other", type=Path, help="the checkout of another version")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=CELLS, default=list(CELLS))
    parser.add_argument("--cell", choices=CELLS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell is None:
        compare(given.only, given.other, given.pairs)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure = {"short": _short, "rounds": _rounds, "crowd": _crowd, "size": _size}[given.cell]
        print(json.dumps(asyncio.run(measure(Path(folder)))))


if __name__ == "__main__":
    main()
