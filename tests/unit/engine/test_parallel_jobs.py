"""`spawn_self` and `spawn_parallel`: one child, or several in one call, with one structured result each."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import SCHEMA, LevelModel, child_ends, children, ends, finish, job, parallel, subtask, told
from wakeful import Agent, RunResult, cancel, run, tool
from wakeful.contracts.envelope import published
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import SubagentFailed, ToolFailed
from wakeful.decisions.delegation import MAX_PARALLEL_JOBS
from wakeful.store.memory import MemoryStore


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@tool(effect="pure", child_safe=False)
def own() -> str:
    """For the parent alone."""
    return "mine"


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "runs.db" if request.param == "file" else None


def boss(model: Any, **options: Any) -> Agent[None, str]:
    given = {"allow_parallel_subagents": True, "subtasks": True, **options}
    return Agent("boss", model, tools=given.pop("tools", [look, own]), **given)


async def played(script: dict[str, Any], store: Any = None, **options: Any) -> tuple[RunResult[str], LevelModel]:
    model = LevelModel(script, spends=options.pop("spends", 0))
    async with asyncio.timeout(60):
        return await run(boss(model, **options), "go", store=store), model


def entries(result: RunResult[Any]) -> list[dict[str, Any]]:
    (end,) = ends(result, "spawn_parallel")
    listed: list[dict[str, Any]] = json.loads(end.item.text)
    return listed


@pytest.mark.spec("CTL-SUB-10", "CTL-SUB-11", "CTL-SUB-14", "CTL-SUB-09")
async def test_one_call_gives_one_structured_entry_for_each_job_in_their_order(place: Any) -> None:
    gone = {"fail": [{"kind": "content_filtered", "message": "no such thing", "status": 400}]}
    script = {
        "go": [calls(parallel(job("a"), job("b"), job("c", output_schema=SCHEMA))), "done"],
        "a": [calls("look"), calls("look"), "A"],
        "b": [gone],
        "c": [calls(finish(n="x")), calls(finish(n=3))],
    }
    result, _ = await played(script, place, spends=2)
    assert result.output == "done"
    first, second, third = entries(result)
    assert [each["index"] for each in (first, second, third)] == [0, 1, 2]
    assert [each["status"] for each in (first, second, third)] == ["success", "error", "success"]
    assert (first["output"], second["output"], third["output"]) == ("A", None, {"n": 3})
    assert second["error"]["kind"] == "run_failed" and "no such thing" in second["error"]["message"]
    assert (first["error"], first["task"], third["task"]) == (None, "a", "c")
    by_task = {child.task.text: child.level_id for child in children(result)}
    assert [each["child_run_id"] for each in (first, second, third)] == [by_task[task] for task in "abc"]
    assert first["usage"]["output_tokens"] == 6 and second["usage"] == {}
    assert all(each["completed_at"] >= each["started_at"] > 1_000_000_000 for each in (first, second, third))
    assert set(first) == {
        *("index", "task", "status", "output", "error", "child_run_id", "started_at", "completed_at", "usage")
    }


@pytest.mark.spec("CTL-SUB-01", "CTL-SUB-04", "CTL-SUB-05")
async def test_a_child_is_given_its_task_what_it_has_to_know_and_how_it_is_to_see_itself(place: Any) -> None:
    one = job("dig", additional_context="It is cold.", tool_names=["look"], output_schema=SCHEMA)
    script = {
        "go": [
            calls(("spawn_self", one)),
            calls(parallel({**one, "task": "climb", "system_prompt": "You are a goat."}, job("rest"))),
            calls(("spawn_self", {**one, "system_prompt": "You are a goat."})),
            "done",
        ],
        "dig\n\nContext:\nIt is cold.": [calls(finish(n=1))],
        "climb\n\nContext:\nIt is cold.": [calls(finish(n=2))],
        "rest": ["rested"],
    }
    result, model = await played(script, place)
    dig, climb, rest = (model.of(task)[0] for task in list(script)[1:])
    assert {"look", "finish_subtask"} <= set(dig.tools) and not {"own", "run_subtask"} & set(dig.tools)
    assert "You are a goat." in climb.instructions and "goat" not in dig.instructions + rest.instructions
    alone, refused = ends(result, "spawn_self")
    assert json.loads(alone.item.text)["output"] == {"n": 1}
    assert isinstance(refused, ToolFailed) and "system_prompt" in refused.item.text
    assert [each["output"] for each in entries(result)] == [{"n": 2}, "rested"]


@pytest.mark.spec("CTL-SUB-02", "CTL-CFG-10", "CTL-CFG-18")
async def test_without_permission_there_is_no_such_tool_whatever_the_number_says() -> None:
    script = {"go": [calls(parallel(job("a"))), "done"], "a": ["A"]}
    allowed, model = await played(script, max_parallel_subagents=5)
    assert "spawn_parallel" in model.of("go")[0].tools and entries(allowed)[0]["output"] == "A"
    refused, model = await played(script, allow_parallel_subagents=False, max_parallel_subagents=5)
    assert "spawn_parallel" not in model.of("go")[0].tools
    (end,) = ends(refused, "spawn_parallel")
    assert isinstance(end, ToolFailed) and end.tool_error.kind == "tool_not_found" and children(refused) == []
    kept = boss(LevelModel(script), allow_parallel_subagents=False, max_parallel_subagents=5)
    assert kept.max_parallel_subagents == 5


@pytest.mark.spec("CTL-SUB-03", "CTL-CFG-11")
@pytest.mark.parametrize("most", [1, 3, 7])
async def test_a_call_with_more_jobs_than_are_allowed_starts_none_of_them(most: int) -> None:
    jobs = [job(f"j{number}") for number in range(most + 1)]
    script = {each["task"]: ["fine"] for each in jobs}
    result, _ = await played({"go": [calls(parallel(*jobs)), "done"], **script}, max_parallel_subagents=most)
    assert children(result) == []
    said = told(result, "spawn_parallel")[0]
    assert (said["error"], said["jobs"], said["max_parallel_subagents"]) == ("invalid_input", most + 1, most)
    fits, _ = await played({"go": [calls(parallel(*jobs[:most])), "done"], **script}, max_parallel_subagents=most)
    assert len(children(fits)) == most and len(entries(fits)) == most
    assert MAX_PARALLEL_JOBS == 7
    for number in (0, 8):
        with pytest.raises(InvalidConfig, match="max_parallel_subagents"):
            boss(LevelModel({}), max_parallel_subagents=number)


@pytest.mark.spec("CTL-SUB-06", "CTL-SUB-15")
async def test_a_child_gets_what_is_safe_for_children_and_no_more() -> None:
    refused = ["own", "nowhere", "spawn_self", "spawn_parallel", "finish_subtask"]
    steps = [calls(parallel(job("a", tool_names=["look", name]))) for name in refused]
    script = {"go": [*steps, calls(parallel(job("a")), subtask("b"), ("spawn_self", job("c"))), "done"]}
    result, model = await played({**script, "a": ["A"], "b": ["B"], "c": ["C"]})
    said = told(result, "spawn_parallel")
    assert [each["error"] for each in said[:-1]] == ["unknown_tools"] * 5
    assert [each["unknown"] for each in said[:-1]] == [[name] for name in refused]
    assert len(children(result)) == 3, "none of those was started"
    for task in "abc":
        assert not {"own", "spawn_self", "spawn_parallel"} & set(model.of(task)[0].tools)
    assert {"own", "spawn_self", "spawn_parallel"} <= set(model.of("go")[0].tools)


@pytest.mark.spec("CTL-SUB-16", "CTL-SUB-08")
@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [job("a"), job("  ")],
        [job("a"), job("b", output_schema={"type": "nonsense"})],
        [job("a"), job("b", output_schema="package.module:Answer")],
        [job("a"), job("b", output_schema={"properties": 5})],
    ],
)
async def test_jobs_that_cannot_be_done_are_refused_before_any_child_starts(jobs: list[dict[str, Any]]) -> None:
    result, _ = await played({"go": [calls(("spawn_parallel", {"jobs": jobs})), "done"], "a": ["A"], "b": ["B"]})
    (end,) = ends(result, "spawn_parallel")
    assert isinstance(end, ToolFailed) and json.loads(end.item.text)["error"] == "invalid_input"
    assert children(result) == [] and result.output == "done"


@pytest.mark.spec("CTL-SUB-17")
async def test_a_job_may_correct_itself_three_times() -> None:
    wrong = calls(finish(n="x"))
    script = {
        "go": [calls(parallel(job("a", output_schema=SCHEMA), job("b", output_schema=SCHEMA))), "done"],
        "a": [wrong, wrong, wrong, calls(finish(n=1))],
        "b": [wrong, wrong, wrong, wrong, calls(finish(n=1))],
    }
    result, model = await played(script)
    good, bad = entries(result)
    assert good["output"] == {"n": 1} and bad["status"] == "error"
    assert bad["error"]["kind"] == "schema_not_satisfied" and len(model.of("b")) == 4
    assert "n" in model.of("b")[1].texts[-1], "it was told what does not fit"


@pytest.mark.spec("CTL-SUB-07", "CTL-SUB-12")
async def test_what_a_child_is_given_changes_nothing_of_its_parent() -> None:
    jobs = [job("a", tool_names=["look"], system_prompt="Other.", output_schema=SCHEMA)]
    script = {"go": [calls(parallel(*jobs)), "done"], "a": [calls(finish(n=1))]}
    model = LevelModel(script)
    agent = boss(model, instructions="Be the boss.")
    before = (agent.instructions, [each.name for each in agent.tools], agent.max_steps)
    result = await run(agent, "go")
    first, after = model.of("go")
    assert (first.instructions, first.tools) == (after.instructions, after.tools)
    assert after.texts[: len(first.texts)] == first.texts
    assert before == (agent.instructions, [each.name for each in agent.tools], agent.max_steps)
    assert [item.role for item in result.history()] == ["user", "assistant", "tool", "assistant"]
    written = Agent("plain", "openai:gpt-5", allow_parallel_subagents=True).to_dict()
    assert not {"tool_names", "output_schema"} & set(written)
    assert {"allow_parallel_subagents", "max_parallel_subagents"} <= set(written)


@pytest.mark.spec("CTL-SUB-13")
async def test_when_the_call_is_over_or_cancelled_no_child_runs_any_more() -> None:
    store = MemoryStore()
    inside = 0
    both = asyncio.Event()

    @tool(effect="pure")
    async def linger() -> str:
        nonlocal inside
        inside += 1
        if inside == 2:
            both.set()
        try:
            await asyncio.sleep(600)
        finally:
            inside -= 1
        return "never"

    script = {"go": [calls(parallel(job("a"), job("b"))), "done"], "a": [calls("linger")], "b": [calls("linger")]}
    running = asyncio.ensure_future(run(boss(LevelModel(script), tools=[linger]), "go", store=store))
    async with asyncio.timeout(60):
        await both.wait()
        (row,) = await store.turns()
        await cancel(store, row.turn_id)
        result = await running
    assert result.status == "cancelled" and inside == 0
    assert [type(end) for end in child_ends(result)] == [SubagentFailed, SubagentFailed]
    assert [each["error"]["kind"] for each in entries(result)] == ["cancelled", "cancelled"]


@pytest.mark.spec("CTL-SUB-18", "CTL-INV-07")
async def test_what_children_and_planner_use_is_the_runs_own() -> None:
    script = {
        "go": [calls(parallel(job("a"), job("b"))), "done"],
        "a": [calls("look"), "A"],
        "b": ["B"],
        "~plan": ["1. Go."],
    }
    result, model = await played(script, spends=5, planning_enabled=True)
    assert len(model.seen) == 6 and result.usage.output_tokens == 30
    assert (result.model_calls, result.tool_calls, result.turn_count) == (6, 2, 2)
    call_id = next(entry.fact.call_id for entry in result.facts() if entry.fact.event.kind == "subagent.started")
    envelopes = [published(entry, "rt") for entry in result.facts() if (entry.fact.level or "~") != "~plan"]
    below = [each for each in envelopes if each.depth]
    assert below and {each.parent_tool_call_id for each in below} == {call_id}
    assert {each.turn_id for each in below} == {result.turn_id}
    assert result.history()[0].text == "go" and len(result.history()) == 4
