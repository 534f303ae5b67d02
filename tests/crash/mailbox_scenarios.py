"""Mailboxes to be killed: callers that queue behind one another, and messages that nobody waits for."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from crash.scenarios import model
from wakeful import Agent, run
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy
from wakeful.contracts.events import MessageAdmitted, SessionStarted, TurnStarted
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Store
from wakeful.runtime.inbox import defer_message
from wakeful.service.commands.thread_queue import take_next
from wakeful.service.queries.replay import replay_turn
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger


async def a_queue_in_one_thread(store: Store, ledger: Ledger) -> None:
    """Each message is answered once, by its own caller; at the end nothing is queued and nobody is to be woken."""
    agent = Agent("post", model(ledger, ["answered"]))
    said = [("first", "main"), ("second", "main"), ("third", "side")]
    async with asyncio.TaskGroup() as together:
        runs = [together.create_task(run(agent, key, key=key, thread=at, store=store)) for key, at in said]
    assert [one.result().output for one in runs] == ["answered"] * 3
    for key, _ in said:
        turn = await store.turn_of_key(key)
        assert turn is not None and turn.state == "completed"
    assert await store.busy_threads() == []
    assert await store.queued("post", "main") == []
    assert await store.wakes_of("post") == []


async def messages_without_a_turn(store: Store, ledger: Ledger) -> None:
    """Two that are alike are taken together, one of another band and one with a key alone; a caller comes between."""
    agent = Agent("post", model(ledger, ["answered"]))
    await _queue(store, "low", priority="background")
    await _queue(store, "one")
    await _queue(store, "two")
    await _queue(store, "keyed", key="k")
    await _take_all(store, agent)
    await run(agent, "a caller asks", key="c", thread="main", store=store)
    await _take_all(store, agent)
    taken = await _taken(store)
    assert taken[:3] == [("one", "two"), ("keyed",), ("low",)], taken
    await _check_end(store, {"low": "processed", "one": "processed", "two": "processed", "keyed": "processed"})


async def messages_that_are_set_aside(store: Store, ledger: Ledger) -> None:
    """One is deferred and shown with a caller's turn, one starts a turn at its deadline, two expire."""
    agent = Agent("post", model(ledger, ["answered"]))
    await _queue(store, "over", expires_at=1)
    await _queue(store, "aside")
    await _defer(store, "aside", within=3_600_000_000)
    await _queue(store, "aside and over", expires_at=1)
    await _defer(store, "aside and over", within=3_600_000_000)
    await _take_all(store, agent)
    await run(agent, "a caller asks", key="c", thread="main", store=store)
    await _queue(store, "due")
    await _defer(store, "due", within=0)
    await _take_all(store, agent)
    turn = await store.turn_of_key("c")
    assert turn is not None
    taken = await _taken(store)
    assert [names[1:] for names in taken] == [("aside",), ()] and taken[1] == ("due",), taken
    await _check_end(store, {"over": "expired", "aside": "processed", "aside and over": "expired", "due": "processed"})


async def two_owners_of_one_queue(store: Store, ledger: Ledger) -> None:
    """Two owners look at the same threads at once: each message is taken by one of them, in its thread's order."""
    agent = Agent("post", model(ledger, ["answered"]))
    names = {thread: [f"{thread} {number}" for number in range(3)] for thread in ("main", "side")}
    for thread, several in names.items():
        for name in several:
            await _queue(store, name, thread, key=name)
    other = await SqliteStore.open(Path(store.location))
    try:
        async with asyncio.TaskGroup() as together:
            for owner in (store, other):
                for thread in names:
                    together.create_task(_take_all(owner, agent, thread))
    finally:
        await other.close()
    taken = [name for (name,) in await _taken(store)]
    for several in names.values():
        assert [name for name in taken if name in several] == several, taken
    await _check_end(store, {name: "processed" for several in names.values() for name in several})


async def _queue(store: Store, name: str, thread: str = "main", **envelope: Any) -> None:
    """Admit a message under a name of its own: the program that runs again admits nothing twice."""
    now = new_engine(store).clock.now()
    event = MessageAdmitted(message_id=name, item=UserItem(parts=(Text(name),)), prompt_preview=name, **envelope)
    facts = [Fact(event, now, thread)]
    if not await store.read("post", limit=1):
        facts.insert(0, Fact(SessionStarted(agent_name="post"), now))
    await store.admit("post", facts)


async def _defer(store: Store, name: str, *, within: int) -> None:
    row = await store.message(name)
    if row is not None and row.state == "queued":
        await defer_message(new_engine(store), name, within=within)


async def _take_all(store: Store, agent: Agent[Any, Any], thread: str = "main") -> None:
    """Look until nothing is due; while somebody else is at the thread, wait until they let go of it."""
    watch = store.watch("post", thread_id=thread, feed="lease")
    try:
        while True:
            try:
                if await take_next(new_engine(store), RunRequest(agent, "", thread=thread)) is None:
                    return
            except AgentBusy:
                await watch.wait(timeout=1)
    finally:
        watch.close()


async def _taken(store: Store) -> list[tuple[str, ...]]:
    """The messages of each turn, in the order of the log."""
    events = [entry.fact.event for entry in await store.read("post")]
    return [event.message_ids for event in events if isinstance(event, TurnStarted)]


async def _check_end(store: Store, states: dict[str, str]) -> None:
    found = {name: await store.message(name) for name in states}
    assert {name: row.state for name, row in found.items() if row is not None} == states
    counted = Counter(name for names in await _taken(store) for name in names)
    assert all(count == 1 for count in counted.values()), counted
    assert (await store.busy_threads(), await store.wakes_of("post")) == ([], [])
    for turn in await store.turns():
        assert turn.state == "completed"
        assert (await replay_turn(store, turn)).divergence is None
