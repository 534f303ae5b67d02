"""A year of one busy agent on a virtual clock, with retention on: what its database takes, and what a turn costs.

    python -m benchmarks.year                 # 365 days of 200 turns
    python -m benchmarks.year --days 30       # less

Turns and passes of retention are measured apart: passes run between turns, five a day. Times are the processor's, of
all threads: the median turn of a day, and all passes of a day together. Calls of Python and steps of SQLite are counts,
the same on a busy machine.
"""

import argparse
import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.work_counts import counted_steps

from wakeful import Agent, Retention, Runtime, tool
from wakeful.runtime.retention import RetentionPass
from wakeful.testing import FixedClock, scripted

TURNS_A_DAY = 200
DAY = 86_400.0
THREADS = 10
PASSES_A_DAY = 5
COUNTED = 10
"""Turns at the end of a day that are counted; the others are timed."""


class DayFigures(NamedTuple):
    """What was seen on one day."""

    day: int
    turns: int
    """Since the first day."""
    turn_ms: float
    calls: float
    """Of Python, a turn."""
    steps: float
    """Of SQLite, a turn."""
    passes_ms: float
    """All passes of the day."""
    store_mb: float
    process_mb: float


@tool(effect="pure")
def look_up(order: str) -> str:
    """State of an order."""
    return f"Order {order} was shipped on Monday, and should arrive within three working days. " * 4


def reply(request: Any) -> object:
    if request.answered == 0:
        return {"calls": [{"name": "look_up", "arguments": {"order": str(request.history[-1].text)[-6:]}}]}
    return "It is on its way, and should be there in three days."


async def live(
    folder: Path,
    days: int,
    turns_a_day: int = TURNS_A_DAY,
    *,
    retention: Retention | None = None,
    seen: Callable[[DayFigures], None],
) -> None:
    """Let the agent live. `seen` is given the figures of the first day, of every tenth, and of the last."""
    clock = FixedClock()
    ops = Agent("ops", scripted(reply), instructions="Answer questions about orders.", tools=[look_up])
    with counted_steps() as counts:
        async with Runtime(folder, agents=[ops], clock=clock, retention=retention) as rt:
            store = rt._here.engine.store
            for day in range(1, days + 1):
                took: list[float] = []
                passes = calls = steps = 0.0
                for number in range(turns_a_day):
                    # Conversations of an hour or two, as customers have them: a thread ends, and another begins.
                    thread, words = f"day-{day}-{number % THREADS}", f"Where is order {day:03d}{number:03d}"
                    if number >= turns_a_day - COUNTED:
                        with counts.counting():
                            await rt.answer(await rt.send("ops", words, thread=thread))
                        calls, steps = calls + counts.calls / COUNTED, steps + counts.steps / COUNTED
                    else:
                        began = time.process_time()
                        await rt.answer(await rt.send("ops", words, thread=thread))
                        took.append(time.process_time() - began)
                    clock.advance(DAY / turns_a_day)
                    if number % (turns_a_day // PASSES_A_DAY) == 0:  # sooner than the runtime would begin one itself
                        began = time.process_time()
                        await RetentionPass(store, clock, retention or Retention()).run()
                        passes += time.process_time() - began
                if day in (1, days) or day % 10 == 0:
                    turn, sizes = statistics.median(took) * 1000, (_size_of(folder), _resident())
                    megabytes = [size / 1_000_000 for size in sizes]
                    seen(DayFigures(day, day * turns_a_day, turn, calls, steps, passes * 1000, *megabytes))


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Print a table."""
    terms = argparse.ArgumentParser(description=__doc__)
    terms.add_argument("--days", type=int, default=365)
    terms.add_argument("--keep", action="store_true", help="without retention, for comparison")
    given = terms.parse_args()
    for_ever = Retention(turns=0, temporary_agents=0, task_output=0, spilled_output=0, blobs=0)
    heads = ("day", "turns", "median turn, ms", "calls a turn", "steps a turn", "passes of the day, ms", "store, MB")
    print(f"| {' | '.join(heads)} | process, MB |")
    print("|---" * 8 + "|")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder), given.days, retention=for_ever if given.keep else None, seen=_tell))
        print(f"\nclosed: {_size_of(Path(folder)) / 1_000_000:.1f} MB")


def _tell(seen: DayFigures) -> None:
    counts = f"{seen.calls:,.0f} | {seen.steps:,.0f} | {seen.passes_ms:,.0f}"
    sizes = f"{seen.store_mb:.1f} | {seen.process_mb:.0f}"
    print(f"| {seen.day} | {seen.turns:,} | {seen.turn_ms:.2f} | {counts} | {sizes} |", flush=True)


if __name__ == "__main__":
    main()
