"""Turns that are stopped, cancelled at rest or taken up again while something is at work below their root."""

import asyncio
from typing import Any

import pytest

from kit.runs.engine_runs import calls, cut, facts_of, of_kind
from kit.runs.level_scripts import job, parallel, subtask
from unit.engine.test_runner_properties import Committing
from wakeful import Agent, CompactionPolicy, RunResult, cancel, resume, run, tool
from wakeful.contracts.events import (
    AssistantRecorded,
    CompactionFailed,
    PlanningFailed,
    SubagentFailed,
    ToolResult,
)
from wakeful.ports import ModelRequest
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted


@tool(effect="pure")
def look() -> str:
    """Look at something long."""
    return "a long story " * 300


@tool(effect="irreversible")
def act() -> str:
    """Do something that a person has to allow."""
    return "done"


async def identical(store: Any, turn_id: str) -> None:
    row = await store.turn(turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence


# --- a summary of a level below ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["child", "planner"])
async def test_a_cancel_while_the_conversation_of_a_level_below_is_folded_ends_the_turn(where: str) -> None:
    folding = asyncio.Event()

    async def answer(request: ModelRequest) -> Any:
        if "~compaction" in (request.level or ""):
            folding.set()
            await asyncio.Event().wait()
        if where == "child" and request.level is None:
            return calls(subtask("dig"))
        return calls("look")

    agent = Agent(
        "boss",
        scripted(answer, context_window=4_000),
        tools=[look],
        subtasks=True,
        planning_enabled=where == "planner",
        compaction=CompactionPolicy(threshold=0.5),
    )
    store = MemoryStore()
    running = asyncio.create_task(run(agent, "go", store=store))
    async with asyncio.timeout(30):
        await folding.wait()
        (row,) = await store.turns(open_only=True)
        await cancel(store, row.turn_id)
        result = await running
    assert result.status == "cancelled"
    (failed,) = of_kind(result, CompactionFailed)
    assert failed.error_category == "cancelled"
    assert len(of_kind(result, SubagentFailed if where == "child" else PlanningFailed)) == 1
    await identical(store, result.turn_id)
    await store.close()


# --- at rest ----------------------------------------------------------------------------------------------------------


async def test_a_turn_that_waits_for_a_person_in_its_planner_can_be_cancelled(tmp_path: Any) -> None:
    agent = Agent(
        "boss", scripted(lambda request: calls("act")), tools=[act], hitl_tools=["act"], planning_enabled=True
    )
    path = tmp_path / "runs.db"
    result = await run(agent, "go", store=path)
    assert result.status == "approval_required"
    assert await cancel(path, result.turn_id) is True
    after = await resume(path, result.turn_id, [agent])
    assert (after.status, len(of_kind(after, PlanningFailed))) == ("cancelled", 1)


async def test_a_turn_that_waits_beside_a_child_with_a_long_result_can_be_cancelled(tmp_path: Any) -> None:
    def answer(request: ModelRequest) -> Any:
        if request.level is None:
            return calls(parallel(job("talk"), job("ask")))
        return "word " * 6_000 if request.level.endswith("#0") else calls("act")

    options: Any = {"hitl_tools": ["act"], "subtasks": True, "allow_parallel_subagents": True}
    agent = Agent("boss", scripted(answer), tools=[act], **options)
    path = tmp_path / "runs.db"
    result = await run(agent, "go", store=path)
    assert result.status == "approval_required"
    assert await cancel(path, result.turn_id) is True
    after = await resume(path, result.turn_id, [agent])
    assert after.status == "cancelled"
    (given,) = [event for event in of_kind(after, ToolResult) if event.tool_name == "spawn_parallel"]
    assert given.result_ref is not None, "what the first child came to is kept whole"


# --- names ------------------------------------------------------------------------------------------------------------


async def test_a_call_id_is_not_used_twice_in_a_turn_whose_beginning_was_folded() -> None:
    """Two calls of one id would have one idempotency key: the second effect would be taken for the first."""
    rounds = 9

    def answer(request: ModelRequest) -> Any:
        if "~compaction" in (request.level or ""):
            return "They looked."
        named = {"id": "same", "name": "look", "arguments": {}}
        return {"calls": [named]} if request.answered < rounds else "done"

    def agent() -> Agent[Any, str]:
        model = scripted(answer, context_window=4_000)
        return Agent("boss", model, tools=[look], compaction=CompactionPolicy(threshold=0.5))

    memory = Memory()
    store = Committing(memory)
    result: RunResult[str] = await run(agent(), "go", store=store)
    assert result.output == "done"
    (agent_id,) = memory.agents
    for upto in sorted(store.commits):
        cut_store = MemoryStore(cut(memory, agent_id, upto))
        row = await cut_store.turn(result.turn_id)
        if row is None or not row.is_open:
            continue
        await resume(cut_store, result.turn_id, [agent()])
        spoken = [
            part.call_id
            for entry in await facts_of(cut_store, result.turn_id)
            if isinstance(entry.fact.event, AssistantRecorded)
            for part in entry.fact.event.item.calls
        ]
        assert len(spoken) == len(set(spoken)), f"cut after {upto}"
