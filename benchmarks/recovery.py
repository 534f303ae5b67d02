"""A runtime that begins again after a kill, on a store with a past.

    python benchmarks/recovery.py              10,000 agents, 1,000,000 events, 1,000 messages that wait; some minutes
    python benchmarks/recovery.py 1000         a tenth of everything

The store is made first: a runtime makes the agents known, one of them answers, and the facts of that turn are written
again for every agent under other ids, through `admit`, `claim_thread` and `append`. Then messages are admitted that no
turn has taken, and the process ends. What is measured is another process: from opening the runtime until a message that
is sent to it is safe, and until the model was asked about the last one that waited.
"""

import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reporting import Aim, aims_table, measure, number

from wakeful import Agent, Runtime
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import BriefCreated, MessageAdmitted, TurnStarted
from wakeful.testing import scripted

AGENTS, TURNS, SHARE, AT_ONCE = 10_000, 8, 10, 64
"""Turns of each agent; of so many agents one has a message that waits; agents that are written at the same time."""
TEXT = """## Beginning again

A process begins on a store with {agents:,} agents and {events:,} events, in which {due:,} messages wait. Serving: a
message that is sent to it is safe. Resumed: the model was asked about the last of those that waited.
"""


def _agents(count: int, reply: Any = None) -> list[Agent[None, str]]:
    model = scripted(reply or (lambda request: "done"))
    return [Agent(f"agent{place:05d}", model) for place in range(count)]


async def _make(home: Path, count: int) -> dict[str, float]:
    async with Runtime(home, agents=_agents(count)) as rt:
        answered = await rt.answer(await rt.send("agent00000", "What is new?", thread="first"))
    async with opened_store(home / "wakeful.db") as store:
        facts = [entry.fact for entry in await store.read("agent00000")]
        asked = next(fact for fact in facts if isinstance(fact.event, MessageAdmitted))
        turn = [fact for fact in facts if fact.turn_id == answered.turn_id]

        async def write(agent: str) -> None:
            for place in range(TURNS):
                name, thread = f"{agent}_{place}", f"thread-{place}"
                head = await store.head(agent)
                await store.admit(agent, [_again(asked, name, thread, None)])
                claim = await store.claim_thread(agent, thread, f"turn_{name}")
                written = [_again(fact, name, thread, f"turn_{name}", window_from=head + 1) for fact in turn]
                await store.append(claim, written, last=True)
            if int(agent[-5:]) % SHARE == 0:
                await store.admit(agent, [_again(asked, f"{agent}_due", "main", None)])

        names = [f"agent{place:05d}" for place in range(count)]
        for place in range(0, count, AT_ONCE):
            await asyncio.gather(*map(write, names[place : place + AT_ONCE]))
        events = sum([await store.head(name) for name in names])
    return {"events": events, "due": len(range(0, count, SHARE))}


def _again(fact: Fact, name: str, thread: str, turn: str | None, window_from: int = 1) -> Fact:
    event: Any = fact.event
    if isinstance(event, MessageAdmitted):
        event = event.model_copy(update={"message_id": f"msg_{name}"})
    elif isinstance(event, TurnStarted):
        event = event.model_copy(update={"message_ids": (f"msg_{name}",), "window_from": window_from})
    elif isinstance(event, BriefCreated):
        event = event.model_copy(update={"brief_id": f"brief_{name}", "related_message_id": f"msg_{name}"})
    return replace(fact, event=event, thread_id=thread, turn_id=turn)


async def _begin(home: Path, count: int) -> dict[str, float]:
    asked: list[float] = []
    spent: list[float] = []
    due, done = len(range(0, count, SHARE)), asyncio.Event()

    def reply(request: Any) -> str:
        asked.append(time.perf_counter())
        if len(asked) > due:
            spent.append(time.process_time())
            done.set()
        return "done"

    agents = _agents(count, reply)
    began, before = time.perf_counter(), time.process_time()
    async with Runtime(home, agents=agents) as rt:
        opened = time.perf_counter() - began
        await rt.send(f"agent{count - 1:05d}", "Are you there?")
        serving, serving_cpu = time.perf_counter() - began, time.process_time() - before
        await done.wait()
        resumed = max(asked) - began
        await rt.settled()
    cpu = {"serving_cpu": serving_cpu, "resumed_cpu": spent[0] - before}
    return {"opened": opened, "serving": serving, "resumed": resumed, **cpu}


def _part(what: str, home: Path, count: int) -> dict[str, float]:
    return asyncio.run(_make(home, count) if what == "make" else _begin(home, count))


def measured(count: int) -> str:
    """Both parts, each in its own process, as Markdown."""
    with TemporaryDirectory() as folder:
        given = [str(Path(folder) / "home"), str(count)]
        made = measure("recovery.py", ["--part", "make", *given], 3_600)
        found = measure("recovery.py", ["--part", "begin", *given], 600)
    aims = [
        Aim("serving", found["serving"], 2, "s"),
        Aim("serving, of the processor", found["serving_cpu"], 2, "s"),
        Aim(f"{made['due']:,} turns that were due, begun", found["resumed"], 10, "s"),
        Aim("the same, of the processor", found["resumed_cpu"], 10, "s"),
    ]
    text = TEXT.format(agents=count, events=made["events"], due=made["due"])
    return f"{text}\n{aims_table(aims)}\n\nThe runtime was open after {number(found['opened'])} s."


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(_part(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
    else:
        print(measured(int(sys.argv[1]) if len(sys.argv) > 1 else AGENTS))
