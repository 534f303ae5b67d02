"""Many turns at once in one process: 1,000 turns of 10 rounds, each in its own session, on one SQLite store.

    python benchmarks/crowd.py
    python benchmarks/crowd.py --turns 200 --rounds 50

All turns are started together. A ticker on the same event loop asks to be woken every millisecond; the longest it was
kept waiting is the longest stall. Memory is the process's peak minus what it held just before the turns were started,
after a warm-up, divided by the turns. The garbage collector is set as docs/explain/many-turns.md says.
"""

import argparse
import asyncio
import gc
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory import peak, resident
from reporting import Broken, measure, number, table

TURNS, ROUNDS, WARM_UP = 1_000, 10, 20
TICK = 0.001
LIMIT = 300.0


@dataclass(frozen=True)
class Crowd:
    """What the process measured. `most_open` shows that the turns really were open at once."""

    turns: int
    rounds: int
    seconds: float = 0.0
    peak_bytes: int = 0
    longest_stall: float = 0.0
    most_open: int = 0
    problem: str = ""


# ---- inside the measuring process


class _Open:
    """Turns whose first round has begun and that have not answered yet."""

    now = 0
    most = 0


async def _crowd(turns: int, rounds: int, folder: Path) -> dict[str, Any]:
    from wakeful import Agent, Budget, run, tool
    from wakeful.testing import scripted

    @tool(effect="pure")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        if a == 0:
            _Open.now += 1
            _Open.most = max(_Open.most, _Open.now)
        return a + b

    replies: list[Any] = [{"calls": [{"name": "add", "arguments": {"a": i, "b": 1}}]} for i in range(rounds)]
    agent = Agent(name="crowd", model=scripted([*replies, "done"]), tools=[add])

    async def one(store: Path) -> None:
        result = await run(agent, "go", store=str(store), budget=Budget.unlimited())
        if result.output != "done":
            raise AssertionError(f"a turn ended {result.status} and said {result.output!r}")
        _Open.now -= 1

    await asyncio.gather(*(one(folder / "warm-up.db") for _ in range(WARM_UP)))
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 3, 300)
    _Open.most = 0
    stalls: list[float] = []
    ticker = asyncio.create_task(_ticker(stalls))
    await asyncio.sleep(0.05)
    stalls.clear()
    before = resident()
    began = time.perf_counter()
    await asyncio.gather(*(one(folder / "runs.db") for _ in range(turns)))
    seconds = time.perf_counter() - began
    await asyncio.sleep(2 * TICK)
    ticker.cancel()
    return {
        "seconds": seconds,
        "peak_bytes": peak() - before,
        "longest_stall": max(stalls),
        "most_open": _Open.most,
    }


async def _ticker(stalls: list[float]) -> None:
    while True:
        due = time.perf_counter() + TICK
        await asyncio.sleep(TICK)
        stalls.append(time.perf_counter() - due)


# ---- around it


def run(turns: int = TURNS, rounds: int = ROUNDS) -> Crowd:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--turns", str(turns), "--rounds", str(rounds), "--folder", folder]
        try:
            return Crowd(turns, rounds, **measure("crowd.py", arguments, LIMIT))
        except Broken as broken:
            return Crowd(turns, rounds, problem=str(broken))


def markdown(crowd: Crowd) -> str:
    if crowd.problem:
        return f"No result: {crowd.problem}\n"
    all_rounds = crowd.turns * crowd.rounds
    rows = [
        ["turns started together", f"{crowd.turns:,}"],
        ["most open at once", f"{crowd.most_open:,}"],
        ["rounds a turn", f"{crowd.rounds:,}"],
        ["time", number(crowd.seconds, "s")],
        ["turns a second", number(crowd.turns / crowd.seconds)],
        ["rounds a second", number(all_rounds / crowd.seconds)],
        ["peak memory a turn", number(crowd.peak_bytes / crowd.turns / 1024, "KB")],
        ["longest stall of the event loop", number(crowd.longest_stall * 1000, "ms")],
    ]
    return table(["", "measured"], rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Many turns at once in one process.")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folder:
        print(json.dumps(asyncio.run(_crowd(args.turns, args.rounds, args.folder))))
    else:
        print(markdown(run(args.turns, args.rounds)))


if __name__ == "__main__":
    main()
