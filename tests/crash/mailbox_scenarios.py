"""A mailbox to be killed: two messages for one thread, the second queued behind the first, and a third elsewhere."""

import asyncio

from crash.scenarios import model
from wakeful import Agent, run
from wakeful.ports import Store
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
    assert await store.next_wake() is None
