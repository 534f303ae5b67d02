"""Agents asleep, and what it takes to wake them.

    python benchmarks/waking.py                10,000 agents, 50 wakes a second, 1,000 at once; some minutes
    python benchmarks/waking.py 1000           the same with 1,000 agents asleep
    python benchmarks/waking.py --profile      where the processor's time of a turn goes, with 1,000 at once

Each part runs in a process of its own, on a store in a file. Asleep: resident memory of a runtime with so many agents,
each with a timer, over a runtime without any; how long it takes to open on a store that knows them; processor time of
ten seconds in which nothing is due. Wakes: from `rt.send` to the first request of the model. At once: messages for so
many agents, sent together; how many turns a second end, and how far the first message of each is from being answered
in order. That twice: with the collector of garbage as Python has it, and as `wakeful serve` sets it.
"""

import asyncio
import cProfile
import gc
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import profiling
from reporting import Aim, aims_table, measure, number

from wakeful import Agent, Runtime
from wakeful.surfaces.http.__main__ import COLLECT_AFTER
from wakeful.testing import scripted

AGENTS, RATE, SECONDS, CROWD = 10_000, 50, 10, 1_000
IDLE_SECONDS = 10.0
TEXT = """## Agents asleep

A runtime with {agents:,} agents, each with a timer, on SQLite: memory over an empty runtime, opening it on a store that
knows them, and processor time while nothing is due. Then the time from a message to the first request of the model at
{rate} messages a second, and {crowd:,} messages for {crowd:,} agents at once.
"""


def _kilobytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _agents(count: int, reply: Any = "done") -> list[Agent[None, str]]:
    model = scripted(reply) if callable(reply) else scripted([reply], leftover="ignore")
    wake = [{"cron": "0 7 1 1 *", "say": "A year is over."}]
    return [Agent(f"agent{place:05d}", model, wake=wake) for place in range(count)]


async def _asleep(home: Path, count: int) -> dict[str, float]:
    agents = _agents(count)
    before, began = _kilobytes(), time.perf_counter()
    async with Runtime(home, agents=agents) as rt:
        opened = time.perf_counter() - began
        await rt.settled()
        held = _kilobytes() - before
        spent = time.process_time()
        await asyncio.sleep(IDLE_SECONDS)
        return {"kilobytes": held, "opened": opened, "idle_ms": (time.process_time() - spent) * 1_000}


async def _wakes(home: Path) -> dict[str, float]:
    asked: dict[str, float] = {}

    def reply(request: Any) -> str:
        asked.setdefault(request.history[-1].text.rpartition("\n")[2], time.perf_counter())
        return "done"

    sent: dict[str, float] = {}
    async with Runtime(home, agents=_agents(RATE, reply)) as rt:
        await rt.settled()
        for place in range(RATE * SECONDS):
            name = f"message {place}"
            sent[name] = time.perf_counter()
            await rt.send(f"agent{place % RATE:05d}", name)
            await asyncio.sleep(max(0.0, 1 / RATE - (time.perf_counter() - sent[name])))
        await rt.settled()
    took = sorted((asked[name] - at) * 1_000 for name, at in sent.items())
    return {"p50": statistics.median(took), "p99": took[len(took) * 99 // 100], "asked": len(took)}


async def _at_once(home: Path, profile: cProfile.Profile | None = None) -> dict[str, float]:
    """Two messages for each of many agents: no agent has its second answer long before another has its first."""
    order: list[str] = []

    def reply(request: Any) -> str:
        order.append(request.history[-1].text.rpartition("\n")[2])
        return "done"

    async with Runtime(home, agents=_agents(CROWD, reply)) as rt:
        await rt.pause_all()
        for place in range(CROWD):
            await rt.send(f"agent{place:05d}", f"{place}", thread="main")
        began, spent = time.perf_counter(), time.process_time()
        if profile is not None:
            profile.enable()
        await rt.resume_all()
        await rt.settled()
        if profile is not None:
            profile.disable()
        took, spent = time.perf_counter() - began, time.process_time() - spent
    late = max(abs(order.index(str(place)) - place) for place in range(0, CROWD, 50))
    return {"a_second": CROWD / took, "processor_ms": spent * 1_000 / CROWD, "furthest": late}


def _profiled() -> str:
    profile = cProfile.Profile(time.thread_time)
    with TemporaryDirectory() as folder:
        asyncio.run(_at_once(Path(folder), profile))
    return profiling.text(profile, CROWD)


def _part(what: str, home: Path, count: int) -> dict[str, float]:
    run = {"empty": lambda: _asleep(home, 0), "asleep": lambda: _asleep(home, count)}
    if what == "served_at_once":
        gc.set_threshold(*COLLECT_AFTER)
        gc.freeze()
        return asyncio.run(_at_once(home))
    return asyncio.run({**run, "wakes": lambda: _wakes(home), "at_once": lambda: _at_once(home)}[what]())


def measured(count: int) -> str:
    """The parts, each in its own process, as Markdown."""
    found: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        for what in ("empty", "asleep", "again", "wakes", "at_once", "served_at_once"):
            part = "asleep" if what == "again" else what
            found[what] = measure("waking.py", ["--part", part, str(Path(folder) / part), str(count)], 1_800)
    again, over = found["again"], found["again"]["kilobytes"] - found["empty"]["kilobytes"]
    aims = [
        Aim(f"{count:,} agents asleep, over an empty runtime", over / 1_000, 60, "MB"),
        Aim("opening a runtime that knows them", again["opened"], 2, "s"),
        Aim("processor in 10 s while idle", again["idle_ms"], 50, "ms"),
        Aim(f"message to first request, p99 at {RATE} a second", found["wakes"]["p99"], 20, "ms"),
        Aim(f"{CROWD:,} at once, a turn", 1_000 / found["at_once"]["a_second"], 2, "ms"),
        Aim("the same, the collector as `wakeful serve` sets it", 1_000 / found["served_at_once"]["a_second"], 2, "ms"),
    ]
    first = f"Making the agents known the first time took {number(found['asleep']['opened'])} s."
    median = f"The median from a message to the first request was {number(found['wakes']['p50'])} ms."
    order = f"At once, no answer was further than {found['at_once']['furthest']} places from where its message stood."
    spent = f"A turn of those took {number(found['at_once']['processor_ms'])} ms of the processor, and "
    spent += f"{number(found['served_at_once']['processor_ms'])} ms with the collector as `wakeful serve` sets it."
    return (
        f"{TEXT.format(agents=count, rate=RATE, crowd=CROWD)}\n{aims_table(aims)}\n\n{first} {median} {order} {spent}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(_part(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
    elif sys.argv[1:] == ["--profile"]:
        print(_profiled())
    else:
        print(measured(int(sys.argv[1]) if len(sys.argv) > 1 else AGENTS))
