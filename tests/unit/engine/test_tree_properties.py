"""Any tree under any budget, through the engine: it ends once, exceeds nothing, adds up, and replays the same."""

import asyncio
import os
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.runs.engine_runs import cut, facts_of, folded
from kit.runs.trees import Node, ProcessEnd, check_tree, nodes, tree_agent
from unit.engine.test_runner_properties import Committing
from wakeful import Budget, resume, run
from wakeful.contracts.events import ModelCompleted, ToolResult
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore

TIMES = int(os.environ.get("WAKEFUL_TREES", "1"))
"""How often each number of trees is grown; more of them find rarer things and take longer."""
ENDINGS: tuple[ProcessEnd, ...] = ("text", "text", "text", "long", "refused", "never")
budgets = st.builds(
    Budget,
    model_calls=st.none() | st.integers(1, 12),
    tool_calls=st.none() | st.integers(0, 12),
    subtasks=st.none() | st.integers(0, 6),
    depth=st.none() | st.integers(0, 3),
    per_tool=st.none() | st.just({"look": 2, "run_subtask": 3}),
    tokens=st.none() | st.integers(1, 6_000),
    usd=st.none() | st.sampled_from(["0.001", "0.005", "0.02"]),
    unpriced_token_ceiling=st.none() | st.integers(1, 6_000),
    final_answer_reserve=st.booleans(),
)


async def played(store: Any, root: Node, budget: Budget, priced: bool, **more: Any) -> str:
    agent = tree_agent(root, priced=priced, max_steps=6, **more)
    async with asyncio.timeout(60):
        result = await run(agent, "go", store=store, budget=budget)
    await checked(store, result.turn_id)
    assert result.stop_reason == ("natural" if result.status == "completed" else result.stop_reason)
    return result.turn_id


async def checked(store: Any, turn_id: str) -> None:
    row = await store.turn(turn_id)
    assert row is not None
    state = await folded(store, row)
    check_tree(await facts_of(store, turn_id), state, state.limits)
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence


def _child(*rounds: Any, ending: ProcessEnd = "text") -> Node:
    return Node(rounds=list(rounds), ending=ending, schema=False, misfits=0)


def test_long_results_that_are_on_their_way_when_the_turn_stops_replay_the_same() -> None:
    stops = _child([("run", _child())])  # one child too many
    root = _child([("run", _child(ending="long")), ("run", stops), ("many", [_child(ending="long")])])

    asyncio.run(
        played(MemoryStore(), root, Budget(final_answer_reserve=False, subtasks=3), False, planning_enabled=False)
    )


@settings(max_examples=150 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes(3, endings=ENDINGS), budgets, st.booleans(), st.booleans())
def test_any_tree_under_any_budget_ends_once_and_exceeds_nothing(
    root: Node, budget: Budget, priced: bool, planned: bool
) -> None:
    asyncio.run(played(MemoryStore(), root, budget, priced, planning_enabled=planned))


@settings(max_examples=40 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes(2), budgets, st.data())
def test_a_tree_that_was_cut_off_anywhere_goes_on_and_does_nothing_again(
    root: Node, budget: Budget, data: st.DataObject
) -> None:
    async def cut_off() -> None:
        memory = Memory()
        store = Committing(memory)
        turn_id = await played(store, root, budget, priced=True)
        (agent_id,) = memory.agents
        upto = data.draw(st.sampled_from(sorted(store.commits)))
        asked: Counter[Any] = Counter()
        paid: Counter[str] = Counter()
        cut_store = MemoryStore(cut(memory, agent_id, upto))
        before = await facts_of(cut_store, turn_id)
        if not before or (await cut_store.turn(turn_id)).state == "ended":  # type: ignore[union-attr]
            return
        async with asyncio.timeout(60):
            await resume(cut_store, turn_id, [tree_agent(root, asked=asked, max_steps=6)], deps=paid)
        await checked(cut_store, turn_id)
        answered = Counter(
            (entry.fact.level, entry.fact.step) for entry in before if isinstance(entry.fact.event, ModelCompleted)
        )
        after = await facts_of(cut_store, turn_id)
        again = Counter(
            (entry.fact.level, entry.fact.step) for entry in after if isinstance(entry.fact.event, ModelCompleted)
        )
        assert set(answered.values()) <= {1} and set(again.values()) <= {1}, "an answered round was asked for again"
        finished = {entry.fact.call_id for entry in before if isinstance(entry.fact.event, ToolResult)}
        repeated = [
            entry.fact.call_id
            for entry in after[len(before) :]
            if isinstance(entry.fact.event, ToolResult) and entry.fact.call_id in finished
        ]
        assert not repeated

    asyncio.run(cut_off())
