"""One end for every turn, also after a crash: what was cut off goes on, and what cannot be loaded any more fails."""

from typing import Any

import pytest

from kit.runs.asked_runs import REFUND, World
from kit.runs.engine_runs import Died, Dying, calls, check_ends, cut, facts_of, folded
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, RunResult, resume_all, run
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import StoreDamaged, StoreProblem, TurnUnreadable
from wakeful.contracts.events import Terminal, TurnStarted
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.engine.run_request import RunRequest
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.ports import Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.workflows.runs import run_workflow
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing.wrapped_store import WrappedStore

SCRIPT = {
    "go": [calls("look", REFUND), calls(subtask("dig"), ("ship", {"order": "B"})), "done"],
    "dig": [calls("look"), "dug"],
}


class Shop:
    """An agent with a child, a read, an effect and a call that waits for a person."""

    def __init__(self) -> None:
        self.world = World()
        tools = [self.world.tool(), self.world.tool("ship", approval=True), self.world.reading()]
        self.agent: Agent[Any, str] = Agent("shop", LevelModel(SCRIPT), tools=tools, subtasks=True)

    async def go(self, store: Store, prompt: Any = "go", **options: Any) -> RunResult[str]:
        return await run(self.agent, prompt, store=store, key="k", **options)


async def approve(approval: Any) -> bool:
    return True


def ends(facts: list[StoredFact]) -> list[Terminal]:
    return [entry.fact.event for entry in facts if isinstance(entry.fact.event, Terminal)]


async def died(at: int) -> tuple[Memory, Shop] | None:
    """A run whose process ends at its append of this number; None when it ends before."""
    memory, shop = Memory(), Shop()
    try:
        await shop.go(Dying(memory, after=at), approver=approve)
    except Died:
        return memory, shop
    return None


async def config_of(store: Store, turn_id: str) -> str:
    (started,) = [e.fact.event for e in await facts_of(store, turn_id) if isinstance(e.fact.event, TurnStarted)]
    return started.config_ref.digest


@pytest.mark.spec("LOOP-INV-05")
async def test_every_turn_has_one_end_wherever_its_process_died_also_when_it_cannot_be_loaded_any_more() -> None:
    at, unreadable = 0, 0
    while (left := await died(at := at + 1)) is not None:
        memory, shop = left
        store = MemoryStore(memory)
        (row,) = await store.turns()
        if not row.is_open:
            continue
        if any(isinstance(entry.fact.event, TurnStarted) for entry in await facts_of(store, row.turn_id)):
            await check_unreadable(cut(memory, row.agent_id, len(await store.read(row.agent_id))), shop)
            unreadable += 1
        # Cut off and whole, it goes on, and ends once.
        resumed = await shop.go(store, approver=approve)
        facts = await facts_of(store, row.turn_id)
        check_ends(facts, once=False)
        (end,) = ends(facts)
        assert (resumed.status, end.status) == ("completed", "completed")
    assert unreadable


async def check_unreadable(memory: Memory, shop: Shop) -> None:
    """The same log, of which the configuration is gone: it fails, once, and nothing of it is run for that."""
    store, done = MemoryStore(memory), list(shop.world.done)
    (row,) = await store.turns()
    del memory.blobs[await config_of(store, row.turn_id)]
    with pytest.raises(TurnUnreadable):
        await folded(store, row)  # the inversion: nobody could ever go on with it
    (failed,) = await resume_all(store, [shop.agent])
    facts = await facts_of(store, row.turn_id)
    check_ends(facts, once=False)
    (end,) = ends(facts)
    assert (end.status, end.stop_reason, end.retryable) == ("failed", "runtime_error", True)
    assert (failed.status, failed.retryable) == ("failed", True) and "could not be loaded" in failed.message
    assert shop.world.done == done and await store.actions(pending_only=True) == []
    assert await resume_all(store, [shop.agent]) == []
    assert (await shop.go(store)).status == "failed", "recalled, from the log alone"


class Failing(WrappedStore):
    """A disk that does not answer just now."""

    async def get_blob(self, digest: str) -> bytes:
        raise StoreProblem("the disk does not answer")


async def test_a_store_that_only_fails_just_now_ends_no_turn() -> None:
    left = await died(3)
    assert left is not None
    memory, shop = left
    with pytest.raises(StoreProblem, match="does not answer"):
        await shop.go(Failing(MemoryStore(memory)))
    (row,) = await MemoryStore(memory).turns()
    assert row.is_open
    assert (await shop.go(MemoryStore(memory), approver=approve)).status == "completed"


async def test_one_that_cannot_be_loaded_keeps_no_other_from_going_on() -> None:
    left = await died(3)
    assert left is not None
    memory, shop = left
    store = MemoryStore(memory)
    (row,) = await store.turns()
    lost = await config_of(store, row.turn_id)
    memory.blobs[lost] = b"{}"  # what another program might have left there
    other = Agent("other", ScriptedModel(["fine"]))
    with pytest.raises(Died):
        await run(other, "go", store=Dying(memory, after=1))
    results = {each.agent: each.status for each in await resume_all(store, [shop.agent, other])}
    assert results == {"shop": "failed", "other": "completed"} and not await store.turns(open_only=True)


async def test_a_run_of_a_workflow_that_is_gone_before_it_began_fails() -> None:
    store = MemoryStore()
    agent = Agent("shop", ScriptedModel(["x"]), tools=[World().tool()])
    nodes = [{"id": "pay", "kind": "tool", "ref": "refund", "inputs": REFUND[1]}]
    graph = WorkflowGraph.model_validate({"name": "g", "nodes": nodes})
    system = new_engine(Forgetful(store))
    registry = await workflow_registry(system, agent)
    with pytest.raises(StoreDamaged):  # there is no graph to tell the run by
        await run_workflow(system, registry, graph, RunRequest(agent, ""), {})
    (row,) = await store.turns()
    (end,) = ends(await facts_of(store, row.turn_id))
    assert (row.is_open, end.status, end.stop_reason, end.retryable) == (False, "failed", "runtime_error", True)


class Forgetful(WrappedStore):
    """Keeps nothing beside the log."""

    async def get_blob(self, digest: str) -> bytes:
        raise StoreDamaged(f"there is no blob {digest} in this store")
