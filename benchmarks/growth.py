"""What asking costs on a store that has grown: one agent, many threads, a long log.

    python benchmarks/growth.py                          a tenth: 100,000 events, 1,000 turns, 100 threads
    python benchmarks/growth.py --full                   1,000,000 events, 10,000 turns, 1,000 threads
    python benchmarks/growth.py --full --store OLD.db    the same on a store that was made before, or is kept there

The log is made of one real turn, run once and written again under other names through the store's own interface:
turns of several threads run side by side, as they do in a busy program, so that their events interleave. Each of them
puts its thread's conversation into pages at its end, as a real one with so many events does. `--without-pages` makes a
store as it was before there were any: the first turn of such a thread reads all of it, once.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from reporting import number, table

from wakeful import Agent, resume_all, run, tool
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AssistantRecorded,
    MessageAdmitted,
    SessionStarted,
    ThreadCheckpointed,
    TurnStarted,
)
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.state import TurnState, after
from wakeful.decisions.thread_pages import CallIds, PageMark, next_page
from wakeful.engine.state_loader import load_config, told_after
from wakeful.engine.turn_facts import call_ids_of
from wakeful.ports import Claim, Store
from wakeful.service.queries.costs import costs_of
from wakeful.service.queries.status import agents_status
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted

AGENT = "assistant"
ROUNDS = 13
"""Of the turn that is copied: 100 events."""
SIDE_BY_SIDE = 10
SAMPLES = 9


@tool(effect="pure")
async def look(x: str) -> str:
    """Look."""
    return "seen"


USAGE = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
"""Said by the model, so that it does not count the words of the conversation: no request is encoded here."""


def _answer(request: Any) -> Any:
    if request.answered < ROUNDS:
        return {"calls": [{"name": "look", "arguments": {"x": "1"}}], "usage": USAGE}
    return {"text": "done", "usage": USAGE}


def _agent(answer: Any = ({"text": "done", "usage": USAGE},), name: str = AGENT) -> Agent:
    return Agent(name, scripted(answer if callable(answer) else list(answer)), tools=[look])


async def fill(store: Store, turns: int, threads: int, *, paged: bool = True) -> int:
    """Write so many turns; how many events that made."""
    source = MemoryStore()
    await run(_agent(_answer), "look around", store=source, thread="source")
    facts = [entry.fact for entry in await source.read(AGENT)][1:]
    for fact in facts:
        for ref in (getattr(fact.event, name, None) for name in ("config_ref", "catalog_ref")):
            if ref is not None:
                await store.put_blob(await source.get_blob(ref.digest), ref.media_type)
    await store.admit(AGENT, [Fact(SessionStarted(agent_name=AGENT, temporary=False), facts[0].at)])
    firsts: dict[str, int] = {}
    pages = {f"t{number}": _Pages(source) for number in range(threads)} if paged else {}
    for first in range(0, turns, SIDE_BY_SIDE):
        group = range(first, min(first + SIDE_BY_SIDE, turns))
        await asyncio.gather(
            *(_turn(store, facts, each, f"t{each % threads}", firsts, threads, pages) for each in group)
        )
    return 1 + turns * (len(facts) + paged)


class _Pages:
    """A thread's conversation, put into pages turn by turn."""

    def __init__(self, source: Store) -> None:
        self._source = source
        self._state = TurnState()
        self._call_ids = CallIds()
        self._configs: dict[str, TurnConfig] = {}
        self._row: tuple[PageMark, ...] = ()
        self.from_seq = 0
        """Where the next turn begins to read."""

    async def add(self, store: Store, facts: list[Fact]) -> Fact:
        """The turn's facts, and the fact that names the page with them."""
        state = after(self._state, self._configs)
        for fact in facts:
            event = fact.event
            if isinstance(event, TurnStarted) and event.config_ref.digest not in self._configs:
                self._configs[event.config_ref.digest] = await load_config(self._source, event.config_ref.digest)
            elif isinstance(event, AssistantRecorded):
                self._call_ids.update(call_ids_of(event))
            evolve(state, fact)
        self._state = state
        page = next_page(after(state, {}), self._call_ids.order, self._row, told_after(state, ()))
        ref = await store.put_blob(page.data, "application/octet-stream")
        self._row = page.kept_as(ref.digest)
        return replace(
            facts[-1],
            event=ThreadCheckpointed(conversation_ref=ref, items=len(state.conversation.items), with_turn=True),
        )


async def _turn(
    store: Store,
    facts: list[Fact],
    place: int,
    thread: str,
    firsts: dict[str, int],
    threads: int,
    pages: dict[str, _Pages],
) -> None:
    turn_id = f"turn_{place:08}"
    shift = place * 10_000_000
    copied = [replace(fact, at=fact.at + shift, thread_id=thread, turn_id=turn_id) for fact in facts]
    message, *rest = copied
    assert isinstance(message.event, MessageAdmitted)
    name = f"msg_{place:08}"  # a message is taken once
    message = replace(message, event=message.event.model_copy(update={"message_id": name}))
    admitted = await store.admit(AGENT, [message])
    assert admitted is not None
    own = pages.get(thread)
    first = own.from_seq if own is not None and own.from_seq else firsts.setdefault(thread, admitted.turn.first_seq)
    started = rest[0].event
    assert isinstance(started, TurnStarted)
    took = (name,) if started.message_ids else ()
    begun = started.model_copy(update={"window_from": first, "turn_index": place // threads + 1, "message_ids": took})
    rest[0] = replace(rest[0], event=begun)
    if own is not None:
        rest.insert(-1, await own.add(store, [message, *rest]))
    claim: Claim = await store.claim(turn_id)
    claim.seen = admitted.turn.first_seq  # its own message is known
    # As a run commits: the beginning, then what a model said with what follows, then what came of it.
    await store.append(claim, rest[:7])
    rest = rest[7:]
    while rest:
        size = 5 if len(rest) > 6 else len(rest)
        await store.append(claim, rest[:size])
        rest = rest[size:]
        if rest:
            await store.append(claim, rest[:2])
            rest = rest[2:]
    if own is not None:
        own.from_seq = claim.seen - 1
    await store.release(claim)


class Took(NamedTuple):
    """Milliseconds, medians: by the clock, and of the processor. A busy machine shows in the first alone."""

    wall: float
    processor: float


async def _timed(ask: Callable[[], Awaitable[Any]], samples: int = SAMPLES) -> Took:
    took = []
    for _ in range(samples):
        began, used = time.perf_counter(), time.process_time()
        await ask()
        took.append(Took((time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000))
        if took[-1].wall > 3000:
            break
    return Took(*(statistics.median(values) for values in zip(*took, strict=True)))


async def measure(path: Path, threads: int) -> list[tuple[str, Took]]:
    """What each question costs, in milliseconds."""
    found: list[tuple[str, Took]] = []

    async def opened() -> None:
        await (await SqliteStore.open(path)).close()

    found.append(("open and close", await _timed(opened)))
    store = await SqliteStore.open(path)
    places, names = iter(range(threads)), iter(range(1000))

    async def on(name: str, thread: str) -> None:
        result = await run(_agent(name=name), "again", store=store, thread=thread)
        assert result.status == "completed"

    await on("warm", "up")
    found += [
        ("`run` on a new agent", await _timed(lambda: on(f"new{next(names)}_{os.getpid()}", "main"))),
        ("`run` on an old thread", await _timed(lambda: on(AGENT, f"t{next(places)}"))),
        ("`cost`", await _timed(lambda: costs_of(store, "model", day=str))),
        ("`status`", await _timed(lambda: agents_status(store))),
        ("`approvals`", await _timed(lambda: store.actions(pending_only=True))),
        ("`turns`, the newest 20", await _timed(lambda: store.turns(limit=20))),
        ("events of an old turn", await _timed(lambda: store.read(AGENT, turn_id="turn_00000500"))),
        ("events of an old thread", await _timed(lambda: store.read(AGENT, thread_id="t7"))),
        ("the first event", await _timed(lambda: store.read(AGENT, limit=1))),
        ("open turns", await _timed(lambda: store.turns(open_only=True))),
        ("`resume_all` with nothing open", await _timed(lambda: resume_all(store, [_agent()]))),
    ]
    await store.close()
    return found


async def main(turns: int, threads: int, kept: Path | None, *, paged: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = kept or Path(folder) / "grown.db"
        if not path.exists():
            store = await SqliteStore.open(path)
            began = time.perf_counter()
            events = await fill(store, turns, threads, paged=paged)
            await store.close()
            took = time.perf_counter() - began
            size = path.stat().st_size
            print(f"{events:,} events in {took:.0f} s, {size / 1e6:.0f} MB, {size / events:.0f} bytes an event")
        found = [(name, number(took.wall), number(took.processor)) for name, took in await measure(path, threads)]
        print(table(["ms, median", "clock", "processor"], found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a million events")
    parser.add_argument("--store", type=Path, help="the database to measure; made when it is not there")
    parser.add_argument("--without-pages", action="store_true", help="make a store of before there were pages")
    args = parser.parse_args()
    scale = 10 if args.full else 1
    asyncio.run(main(1_000 * scale, 100 * scale, args.store, paged=not args.without_pages))
