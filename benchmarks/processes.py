"""Several processes on one store: 1, 2 and 4 of them, each with threads of its own of one agent.

    python benchmarks/processes.py

Every process runs the same number of turns of a few rounds, several at once. All begin together, when each has opened
the store and run a turn. The writer of a SQLite file is one at a time, whoever it is: this says what that leaves.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from reporting import Broken, last_words, number, table

from wakeful import Agent, run, tool
from wakeful.ports import ModelRequest
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted

PROCESSES = (1, 2, 4)
TURNS, ROUNDS, AT_ONCE = 200, 5, 10
"""Of each process."""
LIMIT = 240.0
TEXT = f"""## Several processes on one store

One SQLite file, one agent. Each process runs {TURNS} turns of {ROUNDS} rounds in threads of its own, {AT_ONCE} at once;
all begin together. Processor is that of all processes, for a turn.
"""


class Speed(NamedTuple):
    processes: int
    turns_a_second: float
    rounds_a_second: float
    processor_ms: float
    """Of all processes, for a turn."""


@tool(effect="pure")
async def look(x: str) -> str:
    """Look."""
    return "seen"


def answer(request: ModelRequest) -> Any:
    return {"calls": [{"name": "look", "arguments": {"x": "1"}}]} if request.answered < ROUNDS - 1 else "done"


async def work(path: str, who: str) -> None:
    """One of the processes: it says when it is ready, and begins when it is told."""
    agent: Agent[None, str] = Agent("worker", scripted(answer), tools=[look])
    store = await SqliteStore.open(path)

    async def turns(lane: int, count: int) -> None:
        for _ in range(count):
            result = await run(agent, "look around", store=store, thread=f"{who}_{lane}")
            assert result.completed, result.message

    await turns(AT_ONCE, 1)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began, used = time.time(), time.process_time()
    await asyncio.gather(*(turns(lane, TURNS // AT_ONCE) for lane in range(AT_ONCE)))
    print(json.dumps({"began": began, "ended": time.time(), "used": time.process_time() - used}), flush=True)
    await store.close()


def measured(processes: int) -> Speed:
    with TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--work", str(Path(folder) / "runs.db")]
        pipe = subprocess.PIPE
        started = [
            subprocess.Popen([*command, f"p{place}"], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=os.environ)
            for place in range(processes)
        ]
        try:
            for each in started:
                assert each.stdout is not None
                if each.stdout.readline() != "ready\n":
                    raise Broken(last_words(each.communicate()[1]))
            for each in started:
                assert each.stdin is not None
                each.stdin.write("go\n")
                each.stdin.flush()
            said = [each.communicate(timeout=LIMIT) for each in started]
            if any(each.returncode for each in started):
                raise Broken(last_words("".join(err for _, err in said)))
        finally:
            for each in started:
                each.kill()
                each.wait()
        found = [json.loads(out) for out, _ in said]
    seconds = max(each["ended"] for each in found) - min(each["began"] for each in found)
    turns = processes * TURNS
    used = sum(each["used"] for each in found) * 1000 / turns
    return Speed(processes, turns / seconds, turns * ROUNDS / seconds, used)


def run_all() -> list[Speed]:
    return [measured(processes) for processes in PROCESSES]


def markdown(found: list[Speed]) -> str:
    rows = [
        (
            str(each.processes),
            number(each.turns_a_second),
            number(each.rounds_a_second),
            number(each.processor_ms),
            number(each.turns_a_second / found[0].turns_a_second),
        )
        for each in found
    ]
    head = ["processes", "turns a second", "rounds a second", "processor, ms a turn", "times one process"]
    return f"{TEXT}\n{table(head, rows)}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", nargs=2, metavar=("STORE", "NAME"), help="be one of the processes")
    args = parser.parse_args()
    if args.work:
        asyncio.run(work(*args.work))
    else:
        print(markdown(run_all()))
