"""What a turn costs in an old thread, and what a turn writes.

    python benchmarks/thread_age.py              up to 5,000 turns; some minutes
    python benchmarks/thread_age.py 400          up to 400 turns

One thread with one-word answers, on a store in a file, processor time. `warm`: the process that ran the turns before.
`restarted`: the first turn of a process, with the store open and everything imported, so that what is counted is the
turn. The model says itself how many tokens it took, so it never looks at the conversation: the request grows with what
is sent and is measured apart, as chat completions in a process that has just begun. Nothing is folded: the conversation
has every item from the first turn on.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from reporting import Aim, aims_table, measure, number, table
from wires.formats import FORMATS

from wakeful import Agent, run, tool
from wakeful.ports import ModelRequest
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted

TURNS = 5_000
MARKS = (50, 200, 1_000, 5_000)
SAMPLES, RESTARTS, ROUNDS = 15, 5, 50
FIRST, LIMIT = 50, 1.2
TURN_BYTES, ROUND_BYTES = 3_000, 1_500
ANSWER = {"text": "yes", "usage": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}}
TEXT = """## Old threads

One thread, one-word answers, SQLite, processor time. Warm is the process that ran the turns before; restarted is the
first turn of a process in that thread. The model looks at no item, so this is everything around the request. The
request itself grows with what is sent: it is encoded as chat completions, once, in a process that has just begun.
Nothing is folded. Bytes are what the database file grows by for a turn, and for one more round of a turn.
"""


class Age(NamedTuple):
    """What a turn costs at an age of its thread, in milliseconds."""

    turn: int
    warm: float
    restarted: float
    request: float
    request_bytes: int


class Costs(NamedTuple):
    ages: list[Age]
    turn_bytes: float
    round_bytes: float


def talker(answer: Any = (ANSWER,)) -> Agent[None, str]:
    return Agent("talker", scripted(answer if callable(answer) else list(answer)))


async def turn(store: SqliteStore, agent: Agent[None, str]) -> float:
    """Milliseconds of processor time."""
    began = time.process_time()
    await run(agent, "hello", store=store, thread="main")
    return (time.process_time() - began) * 1000


async def first_turn(path: str, what: str) -> dict[str, float]:
    """Of this process, in the old thread: the turn, or the request alone."""
    sent: list[tuple[float, int]] = []
    encoder = FORMATS["chat"].encoder(())

    def encode(request: ModelRequest) -> Any:
        began = time.process_time()
        size = sum(map(len, encoder.body(request)))
        sent.append(((time.process_time() - began) * 1000, size))
        return ANSWER

    answer: Callable[[ModelRequest], Any] | tuple[Any] = encode if what == "request" else (ANSWER,)
    store = await SqliteStore.open(path)
    try:
        for place in range(20):  # what is loaded late is loaded
            await turn(store, Agent(f"other_{place}", talker(answer).model))
        took = await turn(store, talker(answer))
    finally:
        await store.close()
    return {"ms": sent[-1][0], "bytes": sent[-1][1]} if sent else {"ms": took}


def restarted(path: Path, what: str) -> dict[str, Any]:
    found = [measure("thread_age.py", ["--first", str(path), what], 120) for _ in range(RESTARTS)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


async def ages(path: Path, turns: int) -> list[Age]:
    store, found, took = await SqliteStore.open(path), [], list[float]()
    for place in range(1, turns + 1):
        took.append(await turn(store, talker()))
        if place in MARKS:
            await store.close()
            cold, sent = restarted(path, "turn"), restarted(path, "request")
            found.append(Age(place, statistics.median(took[-SAMPLES:]), cold["ms"], sent["ms"], int(sent["bytes"])))
            store = await SqliteStore.open(path)
    await store.close()
    return found


@tool(effect="pure")
async def look(x: str) -> str:
    """Look."""
    return "seen"


async def written(path: Path, turns: int, rounds: int) -> int:
    """Bytes of a database after so many turns, each with so many rounds before its answer."""

    def answer(request: ModelRequest) -> Any:
        if request.answered < rounds:
            return {"calls": [{"name": "look", "arguments": {"x": "1"}}], "usage": ANSWER["usage"]}
        return ANSWER

    agent: Agent[None, str] = Agent("talker", scripted(answer), tools=[look])
    store = await SqliteStore.open(path)
    for _ in range(turns):
        await run(agent, "hello", store=store, thread="main")
    await store.close()
    return await asyncio.to_thread(lambda: path.stat().st_size)


async def costs(turns: int) -> Costs:
    with TemporaryDirectory() as folder:
        here = Path(folder)
        few, many = await written(here / "few.db", 20, 0), await written(here / "many.db", 320, 0)
        short, long = await written(here / "short.db", 4, 10), await written(here / "long.db", 4, 10 + ROUNDS)
        found = await ages(here / "runs.db", turns)
    return Costs(found, (many - few) / 300, (long - short) / (4 * ROUNDS))


def run_parts(turns: int = TURNS) -> Costs:
    return asyncio.run(costs(turns))


def aims(found: Costs) -> list[Aim]:
    at = {age.turn: age for age in found.ages}
    first, last = at[FIRST], found.ages[-1]
    return [
        Aim(f"turn {last.turn:,} against turn {FIRST}, warm", last.warm / first.warm, LIMIT, "times"),
        Aim(f"turn {last.turn:,} against turn {FIRST}, restarted", last.restarted / first.restarted, LIMIT, "times"),
        Aim("database, a turn in which nothing changed", found.turn_bytes, TURN_BYTES, "bytes"),
        Aim("database, a round", found.round_bytes, ROUND_BYTES, "bytes"),
    ]


def markdown(found: Costs) -> str:
    rows = [
        (
            f"{age.turn:,}",
            number(age.warm),
            number(age.restarted),
            number(age.request),
            f"{age.request_bytes:,}",
        )
        for age in found.ages
    ]
    head = ["turn", "warm, ms", "restarted, ms", "the request after a restart, ms", "bytes sent"]
    return f"{TEXT}\n{table(head, rows)}\n\n{aims_table(aims(found))}\n"


def main() -> None:
    if sys.argv[1:2] == ["--first"]:
        print(json.dumps(asyncio.run(first_turn(*sys.argv[2:]))))
        return
    print(markdown(run_parts(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS)))


if __name__ == "__main__":
    main()
