"""Nothing that passes between levels is too large for the log: it is bounded, kept elsewhere, or refused in words."""

import json
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, Shown, child_ends, children, ends, finish, job, parallel, subtask, told
from wakeful import Agent, RunResult, run
from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.events import LimitChanged, PlanningCompleted, SubagentCompleted, ToolFailed
from wakeful.decisions.planner import MAX_PLAN_STEPS, plan_section
from wakeful.engine.children import MAX_CHILD_BYTES
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore

WIDE = ["x", "中", "\x01", "😀"]
"""One, three, six (as JSON writes it) and four bytes."""


async def played(model: LevelModel, **options: Any) -> RunResult[str]:
    store = MemoryStore()
    agent = Agent("boss", model, subtasks=True, allow_parallel_subagents=True, **options)
    result = await run(agent, "go", store=store)
    row = await store.turn(result.turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence
    await store.close()
    return result


async def test_a_task_that_is_too_large_is_refused_and_the_turn_goes_on() -> None:
    huge = "x" * (MAX_CHILD_BYTES + 1)
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": huge}}}
    script = {
        "go": [
            calls(subtask(huge)),
            calls(subtask("dig", output_schema=schema)),
            calls(parallel(job("dig"), job("more", system_prompt=huge))),
            calls(subtask("dig", tools=[])),
            "done",
        ],
        "dig": ["gold"],
    }
    result = await played(LevelModel(script))
    assert result.output == "done"
    kinds = [event.tool_error.kind for event in ends(result, "run_subtask") if isinstance(event, ToolFailed)]
    assert kinds == ["invalid_input"] * 2
    assert told(result, "spawn_parallel")[0]["index"] == 1
    assert [child.title for child in children(result)] == ["do dig"], "of the parallel jobs none was started"


@pytest.mark.parametrize("character", WIDE)
@pytest.mark.parametrize("length", [9_000, 15_900, 47_000, 100_000])
async def test_a_long_result_of_a_child_is_given_and_can_be_read_again(character: str, length: int) -> None:
    def read(shown: Shown) -> Any:
        return calls(("scratch_read", {"key": json.loads(shown.texts[-1])["keys"][0]}))

    script = {"go": [calls(subtask("dig")), calls("scratch_list"), read, "done"], "dig": [character * length]}
    result = await played(LevelModel(script))
    assert result.output == "done" and not ends(result, "run_subtask")[0].item.is_error


async def test_the_largest_payload_there_may_be_is_kept_as_it_is() -> None:
    schema = {"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]}
    fits = "中" * ((MAX_TOOL_RESULT_BYTES - 20) // 3)
    model = LevelModel({"go": [calls(subtask("dig", output_schema=schema)), "done"], "dig": [calls(finish(t=fits))]})
    result = await played(model)
    (end,) = child_ends(result)
    assert result.output == "done" and isinstance(end, SubagentCompleted) and end.output == {"t": fits}


async def test_a_payload_that_no_fact_can_hold_is_refused_whatever_an_owner_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAKEFUL_MAX_TOOL_RESULT_BYTES", "200000")
    schema = {"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]}
    huge = calls(finish(t="x" * 100_000))
    result = await played(LevelModel({"go": [calls(subtask("dig", output_schema=schema)), "done"], "dig": [huge]}))
    (limit,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, LimitChanged)]
    assert (result.status, limit.limit_name, limit.limit) == ("incomplete", "bytes", MAX_TOOL_RESULT_BYTES)


@pytest.mark.parametrize("character", WIDE)
@pytest.mark.parametrize("line", ["1. {}", "- a\n" * 6_000 + "{}"])
async def test_any_plan_can_be_kept(character: str, line: str) -> None:
    model = LevelModel({"go": ["done"], "~plan": [line.format(character * 20_000)]})
    result = await played(model, planning_enabled=True)
    assert result.output == "done"
    (plan,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, PlanningCompleted)]
    assert 1 <= len(plan.plan.steps) <= MAX_PLAN_STEPS
    assert plan_section(plan.plan) in model.of("go")[0].instructions


@pytest.mark.parametrize("length", [30_000, 100_000])
async def test_an_answer_too_long_for_the_log_is_given_whole(length: int) -> None:
    """In the state there is only its beginning."""
    result = await played(LevelModel({"go": ["中" * length]}))
    assert result.output == result.final_content == "中" * length
