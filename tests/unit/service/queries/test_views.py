"""Views of a store: the tree of a turn, what a client missed, a thread after a reload."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, facts_of
from wakeful import Agent, Budget, RunResult, cancel, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import MAIN_THREAD, StoredFact
from wakeful.contracts.errors import TurnNotFound
from wakeful.service.queries.history import messages
from wakeful.service.queries.views import execution_tree, wire_messages
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.views.cost import CostSummary
from wakeful.views.wire_messages import Chunk, TurnTerminal


@tool(effect="pure")
def price(order: str, password: str = "") -> str:
    return f"{order} costs 42 ({password})"


@tool(effect="pure")
def broken() -> str:
    raise ValueError("it does not work")


ASKS = calls(("price", {"order": "A17", "password": "correct-horse"}), "broken")


def clerk(*script: Any) -> Agent[None, str]:
    return Agent("clerk", scripted([*script], leftover="ignore"), tools=[price, broken])


@pytest.mark.spec("LOOP-TREE-01")
async def test_an_answer_has_its_tree_also_after_a_reload(tmp_path: Path) -> None:
    """The log is where it is stored: nothing but the file is left between the run and the reload."""
    place = tmp_path / "store.db"
    done = await run(clerk(ASKS, "It costs 42."), "What does A17 cost?", store=place, thread="till")
    plain = await run(clerk("Yes."), "Sure?", store=place, thread="till")
    async with opened_store(place) as store:
        row = await store.turn(done.turn_id)
        assert row is not None
        shown = await messages(store, row.thread_id, row.agent_id, 100, None, keys=frozenset())
        tree = await execution_tree(store, done.turn_id)
    assert [(one.role, one.content, one.status) for one in shown] == [
        ("user", "What does A17 cost?", None),
        ("assistant", "It costs 42.", "completed"),
        ("user", "Sure?", None),
        ("assistant", "Yes.", "completed"),
    ]
    assert shown[1].execution_tree == tree == done.execution_tree
    assert [(node.name, node.is_error) for node in tree.nodes] == [("price", False), ("broken", True)]
    assert shown[3].execution_tree is None
    assert plain.execution_tree.nodes == ()
    assert "correct-horse" not in tree.model_dump_json()
    # It goes with the result wherever that goes.
    assert RunResult.from_json(done.to_json()).execution_tree == tree


async def test_a_turn_that_a_budget_ended_keeps_its_tree_and_its_words() -> None:
    store = MemoryStore()
    script = [{"text": "First I look.", **ASKS}, {"text": "Once more.", **ASKS}, "never"]
    done = await run(clerk(*script), "go", store=store, budget=Budget(model_calls=1))
    assert (done.status, done.final_content) == ("incomplete", "First I look.")
    row = await store.turn(done.turn_id)
    assert row is not None
    answer = (await messages(store, row.thread_id, row.agent_id, 100, None, keys=frozenset()))[-1]
    assert (answer.content, answer.status) == ("First I look.", "incomplete")
    assert answer.execution_tree is not None
    assert [node.name for node in answer.execution_tree.nodes] == ["price", "broken"]


async def test_a_turn_that_was_cancelled_keeps_its_tree_and_what_was_under_way_is_an_error() -> None:
    store, begun = MemoryStore(), asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent("clerk", scripted([calls("broken"), calls("wait")], leftover="ignore"), tools=[broken, wait])
    running = asyncio.create_task(run(agent, "go", store=store))
    await begun.wait()
    turn = (await store.turns())[0]
    watch = store.watch(turn.agent_id)
    while len((under_way := await execution_tree(store, turn.turn_id)).nodes) < 2:  # its intent may follow it
        await watch.wait()
    watch.close()
    assert {node.name: node.is_error for node in under_way.nodes} == {"broken": True, "wait": None}
    await cancel(store, turn.turn_id)
    done = await running
    assert done.status == "cancelled"
    assert {node.name: node.is_error for node in done.execution_tree.nodes} == {"broken": True, "wait": True}


class Forgetful(WrappedStore):
    """A store whose oldest events are gone."""

    kept_from = 0

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        return [entry for entry in await super().read(agent_id, **options) if entry.seq >= self.kept_from]


@pytest.mark.spec("LOOP-WIRE-09")
async def test_a_client_that_returns_gets_what_it_missed_and_is_told_when_some_of_it_is_gone() -> None:
    store = Forgetful(MemoryStore())
    done = await run(clerk(ASKS, "It costs 42."), "What does A17 cost?", store=store)
    whole = await wire_messages(store, done.turn_id)
    assert not whole.replay_incomplete
    assert whole.ended
    assert [one.type for one in whole.messages] == [
        *("tool_call_update", "tool_call_update", "tool_call_update", "tool_call_update"),
        *("chunk", "cost_summary", "turn_terminal"),
    ]
    facts = {entry.seq: entry.fact.event.kind for entry in await facts_of(store, done.turn_id)}
    for one in whole.messages:
        assert (one.thread_id, one.turn_id) == (MAIN_THREAD, done.turn_id)
        if not isinstance(one, CostSummary):  # a sum, which is not logged
            assert one.event_seq in facts
    seen = [one.event_seq for one in whole.messages if not isinstance(one, CostSummary)]
    assert seen == sorted(seen, key=lambda seq: seq or 0)
    assert whole.last_event_seq == seen[-1] == max(facts)
    for place, last in enumerate(seen):
        missed = await wire_messages(store, done.turn_id, last or 0)
        rest = whole.messages[place + 1 :] if place < 5 else ()
        assert (missed.messages, missed.replay_incomplete) == (rest, False), "what comes after it, and nothing twice"
    # The log does not reach back as far any more.
    third = seen[2] or 0
    store.kept_from = third
    gone = await wire_messages(store, done.turn_id, 0)
    assert gone.replay_incomplete
    assert gone.messages[-1] == whole.messages[-1]
    assert not (await wire_messages(store, done.turn_id, third - 1)).replay_incomplete, (
        "nothing that was missed is gone"
    )
    store.kept_from = 10_000
    nothing = await wire_messages(store, done.turn_id, 0)
    assert (nothing.messages, nothing.replay_incomplete, nothing.ended) == ((), True, True)


async def test_what_was_streamed_and_what_is_replayed_are_the_same_answer() -> None:
    store = MemoryStore()
    done = await run(clerk("It costs 42."), "What?", store=store)
    (chunk, _, end) = (await wire_messages(store, None)).messages
    assert isinstance(chunk, Chunk)
    assert isinstance(end, TurnTerminal)
    assert (chunk.content, chunk.done, end.status) == (done.final_content, True, "completed")


async def test_a_turn_that_is_not_there_is_named() -> None:
    for query in (execution_tree, wire_messages):
        with pytest.raises(TurnNotFound, match="turn_9"):
            await query(MemoryStore(), "turn_9")
