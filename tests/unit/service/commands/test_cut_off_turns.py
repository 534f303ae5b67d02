"""Turns that were cut off: closed before the next turn of their thread, and left alone by other threads."""

from contextlib import suppress
from typing import Any

from kit.runs.engine_runs import Died, Dying
from wakeful import Agent, run, tool
from wakeful.contracts.envelope import StoredFact
from wakeful.ports import Store
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


class Reading(WrappedStore):
    """Notes which threads are read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.threads: list[str | None] = []

    async def read(self, agent_id: str, **of: Any) -> list[StoredFact]:
        self.threads.append(of.get("thread_id"))
        return await super().read(agent_id, **of)


@tool(effect="irreversible")
async def send() -> str:
    """Send a letter."""
    return "sent"


def agent(*script: Any) -> Agent[Any, Any]:
    return Agent("post", scripted(list(script), leftover="ignore"), tools=[send])


async def left_behind(memory: Memory) -> str:
    """A turn whose process died after it had begun to send."""
    dying = Dying(memory, after=2)
    with suppress(Died):
        await run(agent({"calls": [{"name": "send", "arguments": {}}]}, "done"), "go", store=dying, thread="old")
    await dying.close()
    (row,) = await dying.turns(open_only=True)
    return row.turn_id


async def test_a_turn_that_nobody_takes_up_is_not_read_by_runs_of_other_threads() -> None:
    memory = Memory()
    turn_id = await left_behind(memory)
    store = Reading(MemoryStore(memory))
    await run(agent("done"), "go", store=store, thread="new")
    assert "old" not in store.threads and not await store.unknown()
    await run(agent("done", "done"), "go", store=store, thread="old")
    assert [(row.turn_id, row.tool) for row in await store.unknown()] == [(turn_id, "send")]
