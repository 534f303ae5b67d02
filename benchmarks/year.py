"""A year of one busy agent on a virtual clock, with retention on: what its database takes, and what a turn costs.

    python -m benchmarks.year                 # 365 days of 200 turns
    python -m benchmarks.year --days 30       # less

Times are the processor's, and the median of a day's turns: day 1 against the last day. On a virtual clock
the passes of retention of a day run beside a few seconds of turns: the turn's own thread says what the turn costs.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from wakeful import Agent, Retention, Runtime, tool
from wakeful.testing import FixedClock, scripted

TURNS_A_DAY = 200
DAY = 86_400.0
THREADS = 10


class DayFigures(NamedTuple):
    """What was seen on one day."""

    day: int
    turn_ms: float
    """Processor time of the median turn, of the thread that runs it."""
    all_ms: float
    """The same of all threads: passes of retention beside it are in it."""
    store_mb: float
    turns: int


@tool(effect="pure")
def look_up(order: str) -> str:
    """State of an order."""
    return f"Order {order} was shipped on Monday, and should arrive within three working days. " * 4


def reply(request: Any) -> object:
    if request.answered == 0:
        return {"calls": [{"name": "look_up", "arguments": {"order": str(request.history[-1].text)[-6:]}}]}
    return "It is on its way, and should be there in three days."


async def live(
    folder: Path, days: int, turns_a_day: int = TURNS_A_DAY, *, retention: Retention | None = None
) -> list[DayFigures]:
    """Let the agent live; the figures of the first day, of every tenth, and of the last."""
    clock = FixedClock()
    ops = Agent("ops", scripted(reply), instructions="Answer questions about orders.", tools=[look_up])
    found: list[DayFigures] = []
    async with Runtime(folder, agents=[ops], clock=clock, retention=retention) as rt:
        for day in range(1, days + 1):
            took: list[float] = []
            beside: list[float] = []
            for number in range(turns_a_day):
                began, beside_began = time.thread_time(), time.process_time()
                # Conversations of an hour or two, as customers have them: a thread ends, and another begins.
                thread = f"day-{day}-{number % THREADS}"
                await rt.answer(await rt.send("ops", f"Where is order {day:03d}{number:03d}", thread=thread))
                took.append(time.thread_time() - began)
                beside.append(time.process_time() - beside_began)
                clock.advance(DAY / turns_a_day)
            if day in (1, days) or day % 10 == 0:
                await rt.compact()
                size = _size_of(folder) / 1_000_000
                medians = (statistics.median(each) * 1000 for each in (took, beside))
                found.append(DayFigures(day, *medians, size, day * turns_a_day))
    return found


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Print a table."""
    terms = argparse.ArgumentParser(description=__doc__)
    terms.add_argument("--days", type=int, default=365)
    terms.add_argument("--keep", action="store_true", help="without retention, for comparison")
    given = terms.parse_args()
    for_ever = Retention(turns=0, temporary_agents=0, task_output=0, spilled_output=0, blobs=0)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(live(Path(folder), given.days, retention=for_ever if given.keep else None))
    print("| day | turns | median turn, ms of its thread | of all threads | store, MB |\n|---|---|---|---|---|")
    for each in figures:
        print(f"| {each.day} | {each.turns:,} | {each.turn_ms:.2f} | {each.all_ms:.2f} | {each.store_mb:.1f} |")
    print(f"\nthe last day costs {figures[-1].turn_ms / figures[0].turn_ms:.2f} times the first")


if __name__ == "__main__":
    main()
