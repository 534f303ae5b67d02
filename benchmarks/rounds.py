"""The cost of a round: one trivial tool call a round, 10 to 5,000 rounds in one turn, wakeful beside its peers.

    python benchmarks/rounds.py                      every cell; about ten minutes
    python benchmarks/rounds.py --only wakeful+sqlite langgraph+sqlite --rounds 50 800
    python benchmarks/rounds.py --profile out.txt    only wakeful on SQLite, 800 rounds, under cProfile

A cell is one library at one number of rounds, in a process of its own: a warm-up turn, then whole turns, each on a
new database, from the call to the answer, opening and closing the database included. The value is the median time of
a turn, divided by its rounds. No library streams. A turn that is not finished at the limit is stopped and reported as
such: its value is the cost of a round so far, which is a lower bound, because no library's rounds get cheaper as the
conversation grows.
"""

import argparse
import asyncio
import cProfile
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import profiling
from contestants import CONTESTANTS, Contestant
from contestants.work import FINAL, Count
from reporting import Aim, Broken, aims_table, measure, number, table

ROUNDS = (10, 50, 200, 800, 5_000)
LIMIT = 60.0
WARM_UP = 20
ENOUGH_RUNS, ENOUGH_SECONDS, MOST_RUNS = 3, 1.0, 25
OURS, RIVAL, YARDSTICK = "wakeful+sqlite", "langgraph+sqlite", "bare apsw"
PROFILED_ROUNDS = 800


@dataclass(frozen=True)
class Cell:
    """One library at one number of rounds. `problem` says why there is no number."""

    name: str
    rounds: int
    runs: int = 0
    microseconds: float | None = None
    processor: float | None = None
    """Processor time, all threads: where it is much less than the time, the machine was busy or the disk slow."""
    lowest: float | None = None
    highest: float | None = None
    bytes_a_round: float | None = None
    stopped_after: int | None = None
    problem: str = ""

    @property
    def finished(self) -> bool:
        return self.microseconds is not None and self.stopped_after is None

    def cost(self) -> str:
        if self.microseconds is None:
            return "no result"
        if self.stopped_after is not None:
            return f"> {number(self.microseconds)} (stopped after {self.stopped_after:,} rounds)"
        return number(self.microseconds)

    def work(self) -> str:
        if self.processor is None:
            return "no result"
        return ("> " if self.stopped_after is not None else "") + number(self.processor)

    def size(self) -> str:
        if self.bytes_a_round is None:
            return "no result" if self.problem else "not finished"
        return number(self.bytes_a_round)


# ---- inside the cell's process


async def _cell(contestant: Contestant, rounds: int, limit: float, folder: Path) -> dict[str, object]:
    prepare = contestant.load()
    await prepare(WARM_UP, _new(folder, "warm-up"))()
    seconds: list[float] = []
    processor: list[float] = []
    while True:
        turn = prepare(rounds, _new(folder, f"run-{len(seconds)}"))
        Count.rounds = 0
        began, began_processor = time.perf_counter(), time.process_time()
        task = asyncio.ensure_future(turn())
        await asyncio.wait({task}, timeout=limit)
        took, took_processor = time.perf_counter() - began, time.process_time() - began_processor
        if not task.done():
            if seconds:
                break  # an earlier turn finished inside the limit: that one counts
            return {"seconds": [took], "processor": [took_processor], "stopped_after": Count.rounds, "folder": "run-0"}
        if (said := task.result()) != FINAL or Count.rounds != rounds:
            raise AssertionError(f"{contestant.name} did {Count.rounds} of {rounds} rounds and said {said!r}")
        seconds.append(took)
        processor.append(took_processor)
        spent = sum(seconds)
        if spent + took > limit or len(seconds) >= MOST_RUNS:
            break
        if len(seconds) >= ENOUGH_RUNS and spent >= ENOUGH_SECONDS:
            break
    return {"seconds": seconds, "processor": processor, "stopped_after": None, "folder": f"run-{len(seconds) - 1}"}


def _new(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


async def _profiled(contestant: Contestant, rounds: int, folder: Path) -> dict[str, object]:
    prepare = contestant.load()
    await prepare(WARM_UP, _new(folder, "warm-up"))()
    turn = prepare(rounds, _new(folder, "run"))
    profiler = cProfile.Profile()
    profiler.enable()
    await turn()
    profiler.disable()
    return {"profile": profiling.text(profiler, rounds)}


# ---- around it


def profile(rounds: int = PROFILED_ROUNDS) -> str:
    """Where the time of wakeful's durable round goes, as text."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--cell", OURS, "--rounds", str(rounds), "--folder", folder, "--under-profiler"]
        return str(measure("rounds.py", arguments, 2 * LIMIT)["profile"])


def run_cell(contestant: Contestant, rounds: int, limit: float) -> Cell:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--cell", contestant.name, "--rounds", str(rounds), "--limit", str(limit), "--folder", folder]
        try:
            result = measure("rounds.py", arguments, 3 * limit + 60)
        except Broken as broken:
            return Cell(contestant.name, rounds, problem=str(broken))
        stopped_after = result["stopped_after"]
        done = rounds if stopped_after is None else stopped_after
        if done == 0:
            return Cell(contestant.name, rounds, problem=f"not one round in {limit:.0f} s")
        measurable = contestant.durable and stopped_after is None
        costs = [seconds / done * 1e6 for seconds in result["seconds"]]
        return Cell(
            contestant.name,
            rounds,
            runs=len(costs),
            microseconds=statistics.median(costs),
            processor=statistics.median(seconds / done * 1e6 for seconds in result["processor"]),
            lowest=min(costs),
            highest=max(costs),
            bytes_a_round=_bytes(Path(folder) / result["folder"]) / done if measurable else None,
            stopped_after=stopped_after,
        )


def _bytes(folder: Path) -> int:
    """Everything a run leaves on disk, once the write-ahead log is folded into the database."""
    for path in folder.glob("*.db"):
        database = sqlite3.connect(path)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run(names: list[str], counts: list[int], limit: float) -> list[Cell]:
    cells = []
    for rounds in counts:
        for name in names:
            cell = run_cell(CONTESTANTS[name], rounds, limit)
            spread = ""
            if cell.lowest and cell.highest and cell.processor:
                spread = f" ({number(cell.lowest)} to {number(cell.highest)}; processor {number(cell.processor)})"
            size = f", {cell.size()} bytes" if cell.bytes_a_round else ""
            print(
                f"{name:24} {rounds:5} rounds: {cell.cost()} us a round{spread}, {cell.runs} runs{size} {cell.problem}",
                file=sys.stderr,
                flush=True,
            )
            cells.append(cell)
    return cells


def aims(cells: list[Cell]) -> list[Aim]:
    """The promises of the project about a round, with what these cells say of them."""
    found = {(cell.name, cell.rounds): cell for cell in cells}

    def cost(name: str, rounds: int) -> float | None:
        cell = found.get((name, rounds))
        return cell.microseconds if cell and cell.finished else None

    def size(rounds: int) -> float | None:
        cell = found.get((OURS, rounds))
        return cell.bytes_a_round if cell and cell.finished else None

    counts = sorted({cell.rounds for cell in cells})
    told = [Aim(f"durable round, {n:,} rounds", cost(OURS, n), 350 if n <= 50 else 200, "us") for n in counts]
    for rounds in counts:
        mine, bare = found.get((OURS, rounds)), found.get((YARDSTICK, rounds))
        if rounds >= 800 and mine and bare and mine.processor and bare.processor:
            share = mine.processor / bare.processor
            told.append(Aim(f"processor over a {YARDSTICK} loop's, {rounds:,} rounds", share, 5, "times"))
    for rounds, part in ((50, 18), (800, 55)):
        mine, rival = cost(OURS, rounds), found.get((RIVAL, rounds))
        if rival and rival.microseconds is not None:
            share = None if mine is None else mine / rival.microseconds
            note = f"1/{1 / share:.0f}; the aim is 1/{part}" if share else ""
            told.append(Aim(f"share of {RIVAL}'s round, {rounds} rounds", share, 1 / part, "", note))
    if {50, 5_000} <= set(counts):
        few, many = cost(OURS, 50), cost(OURS, 5_000)
        told.append(Aim("a round of 5,000 over a round of 50", many / few if few and many else None, 1.2, "times"))
    told += [Aim(f"database a round, {n:,} rounds", size(n), 4_096, "bytes") for n in counts]
    return told


def markdown(cells: list[Cell]) -> str:
    counts = sorted({cell.rounds for cell in cells})
    names = list(dict.fromkeys(cell.name for cell in cells))
    found = {(cell.name, cell.rounds): cell for cell in cells}
    head = [f"{n:,} rounds" for n in counts]
    durable = [name for name in names if CONTESTANTS[name].durable]
    parts = [
        "### Microseconds a round\n",
        table(["", *head], [[name, *[found[name, n].cost() for n in counts]] for name in names]),
    ]
    parts += [
        "\n### Microseconds of processor a round\n",
        "All threads. Where it is far below the time above, the disk was waited for, or the machine was busy.\n",
        table(["", *head], [[name, *[found[name, n].work() for n in counts]] for name in names]),
    ]
    if durable:
        parts += [
            "\n### Bytes of database a round\n",
            table(["", *head], [[name, *[found[name, n].size() for n in counts]] for name in durable]),
        ]
    problems = [f"- {c.name}, {c.rounds:,} rounds: {c.problem}" for c in cells if c.problem]
    if problems:
        parts += ["\nNo result:\n", *problems]
    parts += ["\n### Aims\n", aims_table(aims(cells))]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of a round, wakeful beside its peers.")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS), metavar="NAME")
    parser.add_argument("--rounds", nargs="+", type=int, default=list(ROUNDS))
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds a turn may take")
    parser.add_argument("--profile", metavar="FILE", help="write a profile of wakeful on SQLite and measure nothing")
    parser.add_argument("--cell", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    parser.add_argument("--under-profiler", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cell:
        asyncio.run(_main_cell(args))
    elif args.profile:
        rounds = args.rounds[0] if len(args.rounds) == 1 else PROFILED_ROUNDS
        text = profile(rounds)
        Path(args.profile).write_text(text)
        print(text)
    else:
        print(markdown(run(args.only, args.rounds, args.limit)))


async def _main_cell(args: argparse.Namespace) -> None:
    contestant, rounds = CONTESTANTS[args.cell], args.rounds[0]
    if args.under_profiler:
        result = await _profiled(contestant, rounds, args.folder)
    else:
        result = await _cell(contestant, rounds, args.limit, args.folder)
    print(json.dumps(result), flush=True)
    if result.get("stopped_after") is not None:
        os._exit(0)  # a turn that was stopped is not waited for


if __name__ == "__main__":
    main()
