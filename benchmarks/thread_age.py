"""What a turn costs in an old thread: `python -m benchmarks.thread_age [TURNS]`. Processor time, never asserted.

One thread with one-word answers, on a store in a file. `warm`: the process that ran the turns before. `restarted`: the
first turn of a process, with the store open and everything imported, so that what is counted is the turn.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from wakeful import Agent, run
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted

TURNS = 5_000
MARKS = (25, 50, 100, 200, 400, 1_000, 2_000, 5_000)
SAMPLES = 15
TALKER: Agent[None, str] = Agent("talker", scripted(["yes"]))


async def turn(store: SqliteStore, agent: Agent[None, str]) -> float:
    """Milliseconds of processor time."""
    began = time.process_time()
    await run(agent, "hello", store=store, thread="main")
    return (time.process_time() - began) * 1000


async def first_turn(path: str) -> float:
    """Of this process, in the old thread."""
    store = await SqliteStore.open(path)
    try:
        for number in range(20):  # what is loaded late is loaded
            await turn(store, Agent(f"other_{number}", scripted(["yes"])))
        return await turn(store, TALKER)
    finally:
        await store.close()


def restarted(path: Path) -> float:
    program = [sys.executable, "-m", "benchmarks.thread_age", "--first", str(path)]
    return statistics.median(
        float(subprocess.run(program, capture_output=True, text=True, check=True).stdout) for _ in range(3)
    )


async def grow(folder: Path, turns: int) -> None:
    path = folder / "runs.db"
    store = await SqliteStore.open(str(path))
    took: list[float] = []
    print("turn   warm ms   restarted ms", flush=True)
    for number in range(1, turns + 1):
        took.append(await turn(store, TALKER))
        if number in MARKS:
            await store.close()
            print(f"{number:5} {statistics.median(took[-SAMPLES:]):9.1f} {restarted(path):14.1f}", flush=True)
            store = await SqliteStore.open(str(path))
    await store.close()


def main() -> None:
    if sys.argv[1:2] == ["--first"]:
        print(asyncio.run(first_turn(sys.argv[2])))
        return
    with TemporaryDirectory() as folder:
        asyncio.run(grow(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else TURNS))


if __name__ == "__main__":
    main()
