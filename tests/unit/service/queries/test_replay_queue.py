"""Many who read what is stored: each pass of the event loop has one turn of one of them, and room for everybody else.

A pass is counted by a callback that asks for the next one. Nothing here depends on how long anything takes.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.contracts.envelope import StoredFact
from wakeful.service.queries.operator_feed import AgentEvents, FeedReader
from wakeful.service.queries.replay_queue import ReplayQueue
from wakeful.service.queries.shared_tails import PIECE
from wakeful.service.serving.options import ServeOptions
from wakeful.surfaces.http.server import UNSENT_BYTES, network_socket
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.views.presentation.replayed_events import ReplayedEvent

FOLLOWERS = 40
MESSAGES = 300


class Passes:
    """Counts the passes of the loop."""

    def __init__(self) -> None:
        self.number = 0
        self.is_over = False

    def count(self) -> None:
        self.number += 1
        if not self.is_over:
            asyncio.get_running_loop().call_soon(self.count)


@contextmanager
def passes() -> Iterator[Passes]:
    found = Passes()
    found.count()
    try:
        yield found
    finally:
        found.is_over = True


class CountedReads(WrappedStore):
    """Knows in which pass of the loop its log was read."""

    counted: Passes
    reads: list[int]

    async def read(self, agent_id: str, **which: Any) -> list[StoredFact]:
        self.reads.append(self.counted.number)
        return await self.inner.read(agent_id, **which)


class OneEventATurn(ReplayQueue):
    """As if each event took all the time of a turn."""

    async def turn(self, until: float = 0.0) -> float:
        return await super().turn()


class NoTurns(ReplayQueue):
    """Everybody reads whenever they are ready."""

    async def turn(self, until: float = 0.0) -> float:
        return until


async def paused(rt: Runtime, *agents: str, messages: int = MESSAGES) -> CountedReads:
    """The store of a runtime whose agents have messages that nobody takes."""
    for agent in agents:
        await rt.pause(agent)
        await asyncio.gather(*(rt.send(agent, f"message {number}") for number in range(messages)))
    store = CountedReads(rt._here.engine.store)
    store.reads = []
    return store


async def numbers(events: AsyncIterator[ReplayedEvent], upto: int) -> list[int]:
    found = []
    async with aclosing(events):  # type: ignore[type-var]
        async for event in events:
            found.append(event.envelope.event_seq)
            if found[-1] == upto:
                break
    return found


async def test_one_turn_in_a_pass_in_the_order_in_which_they_were_asked_for() -> None:
    queue, given = ReplayQueue(), []

    async def read(name: int, counted: Passes) -> None:
        for _ in range(3):
            await queue.turn()
            given.append((name, counted.number))

    with passes() as counted:
        readers = [asyncio.create_task(read(name, counted)) for name in range(5)]
        gone = asyncio.create_task(read(9, counted))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(*readers)
    assert [name for name, _ in given] == [*range(5)] * 3, "one that went away is passed over"
    assert len({when for _, when in given}) == len(given)


async def test_a_turn_that_is_not_over_goes_on_at_once() -> None:
    queue = ReplayQueue()
    with passes() as counted:
        until = await queue.turn()
        later, before = until + 1_000, counted.number
        assert await queue.turn(later) == later
        assert counted.number == before
        assert await queue.turn(until - 1_000) > until - 1_000
        assert counted.number > before


async def test_followers_of_many_logs_read_one_after_the_other(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(FOLLOWERS)]
    async with Runtime(tmp_path, agents=[Agent(name, scripted(["ok"])) for name in names]) as rt:
        store, queue = await paused(rt, *names, messages=20), ReplayQueue()
        heads = [await store.head(name) for name in names]
        with passes() as store.counted:
            logs = [AgentEvents(store, name, replays=queue).follow(0) for name in names]
            found = await asyncio.gather(*(numbers(log, head) for log, head in zip(logs, heads, strict=True)))
        assert found == [[*range(1, head + 1)] for head in heads]
        assert max(Counter(store.reads).values()) == 1, "of all logs together"


async def test_those_who_read_the_same_read_it_once_and_each_gets_all_of_it(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Agent("ops", scripted(["ok"]))]) as rt:
        store = await paused(rt, "ops")
        head = await store.head("ops")
        log = AgentEvents(store, "ops", replays=OneEventATurn())
        with passes() as store.counted:
            found = await asyncio.gather(*(numbers(log.follow(first), head) for first in range(FOLLOWERS)))
        assert found == [[*range(first + 1, head + 1)] for first in range(FOLLOWERS)]
        ends = 2 * FOLLOWERS  # each begins and ends with a piece of its own
        assert len(store.reads) <= head / PIECE + ends, "and not once in sixteen events for each of them"


async def test_a_message_is_accepted_while_followers_have_most_of_their_log_before_them(tmp_path: Path) -> None:
    shown, counted = await shown_until_accepted(tmp_path, OneEventATurn())
    assert shown <= counted, "one event in a pass, for all followers together"


async def test_inversion_without_turns_a_message_waits_for_each_of_them(tmp_path: Path) -> None:
    shown, counted = await shown_until_accepted(tmp_path, NoTurns())
    assert shown > FOLLOWERS > counted, "in every pass, something of everybody"


async def shown_until_accepted(folder: Path, queue: ReplayQueue) -> tuple[int, int]:
    """How many events followers were shown while one message was accepted, and in how many passes."""
    async with Runtime(folder, agents=[Agent("ops", scripted(["ok"]))]) as rt:
        store = await paused(rt, "ops")
        head, shown = await store.head("ops"), 0
        log = AgentEvents(store, "ops", replays=queue)

        async def follow() -> None:
            nonlocal shown
            async with aclosing(log.follow(0)) as events:  # type: ignore[type-var]
                async for event in events:
                    shown += 1
                    if event.envelope.event_seq == head:
                        return

        with passes() as store.counted:
            following = [asyncio.create_task(follow()) for _ in range(FOLLOWERS)]
            await rt.send("ops", "accepted")
            found = shown, store.counted.number
            await asyncio.gather(*following)
        assert shown == FOLLOWERS * head
        return found


async def test_nothing_is_read_for_followers_that_stopped_reading(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Agent("ops", scripted(["ok"]))]) as rt:
        store = await paused(rt, "ops")
        head = await store.head("ops")
        log, feed = AgentEvents(store, "ops"), FeedReader(store)
        with passes() as store.counted:
            deaf = [log.follow(0) for _ in range(FOLLOWERS)]
            seen = [(await anext(each)).envelope.event_seq for each in deaf]
            entries = feed.follow()
            await anext(entries)
            before = len(store.reads)
            for number in range(20):
                await rt.send("ops", f"later {number}")
            assert len(store.reads) == before
            assert seen == [1] * FOLLOWERS
            rest = await numbers(deaf[0], head + 20)
            assert rest == [*range(2, head + 21)], "one that reads again misses nothing"
            for each in (*deaf, entries):
                await each.aclose()  # type: ignore[attr-defined]


async def test_a_client_that_does_not_read_is_given_little_and_one_that_reads_gets_it_at_once() -> None:
    with network_socket(ServeOptions(port=0)) as listening, socket.create_connection(listening.getsockname()[:2]):
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == UNSENT_BYTES
            assert accepted.proto == socket.IPPROTO_TCP, "asyncio turns Nagle's algorithm off for those alone"
