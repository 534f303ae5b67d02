"""One loop at every depth: what holds for the root holds for whatever is below it."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, child_ends, children, ends, finish, job, parallel, subtask
from wakeful import Agent, Budget, RunResult, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.events import AssistantRecorded, LimitChanged, Terminal, ToolFailed, ToolResult
from wakeful.contracts.models import TextDelta
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.decisions.delegation import Refusal, jobs_of
from wakeful.decisions.policy.permissions import default_policy
from wakeful.engine.run_request import RunRequest
from wakeful.engine.watchers import Glimpse, ModelGlimpsed
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import MemoryStore
from wakeful.tools.runtime_tools import runtime_tools


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@tool(effect="pure")
def fails() -> str:
    """Fail."""
    raise ValueError("it broke")


async def played(
    script: dict[str, Any], budget: Budget | None = None, **options: Any
) -> tuple[RunResult[str], LevelModel]:
    model = LevelModel(script)
    given = {name: options.pop(name) for name in ("max_steps", "policy") if name in options}
    agent = Agent("boss", model, tools=[look, fails], subtasks=True, **given)
    async with asyncio.timeout(60):
        return await run(agent, "go", budget=budget, **options), model


@pytest.mark.spec("LOOP-ACC-01")
async def test_a_reply_without_calls_is_one_text_and_nothing_nested() -> None:
    result, _ = await played({"go": ["hello"]})
    (said,) = of_kind(result, AssistantRecorded)
    assert said.item.text == result.output == "hello"
    assert {entry.fact.level for entry in result.facts()} == {None} and children(result) == []


@pytest.mark.spec("LOOP-ACC-02", "LOOP-ACC-03", "LOOP-ERR-01")
@pytest.mark.parametrize("task", ["go", "below"])
async def test_calls_are_run_and_the_loop_goes_on_at_any_depth(task: str) -> None:
    """Alone and side by side; one that raises is told to the model, and its siblings do not notice."""
    steps = [calls("look"), calls("look", "fails", "look"), lambda shown: f"{len(shown.texts)} items"]
    script = {"go": steps} if task == "go" else {"go": [calls(subtask("below")), "done"], "below": steps}
    result, model = await played(script)
    assert result.status == "completed"
    assert [len(shown.texts) for shown in model.of(task)] == [1, 3, 7]
    seen = ends(result, "look")
    assert [end.item.text for end in seen] == ["seen"] * 3
    (broken,) = ends(result, "fails")
    assert isinstance(broken, ToolFailed) and broken.item.is_error and "it broke" in broken.item.text
    assert "7 items" in (result.output, *(end.item.text for end in ends(result, "run_subtask")))


@pytest.mark.spec("LOOP-ACC-06")
async def test_one_round_too_many_is_said_at_the_root_and_below() -> None:
    again = calls("look")
    root, _ = await played({"go": [again]}, max_steps=2)
    (limit,) = of_kind(root, LimitChanged)
    assert (root.stop_reason, limit.limit, limit.observed) == ("max_steps", 2, 3)
    below, _ = await played({"go": [calls(subtask("dig")), "done"], "dig": [again]}, max_steps=2)
    (end,) = child_ends(below)
    assert end.error == "iteration_limit" and below.status == "completed"  # type: ignore[union-attr]


@pytest.mark.spec("LOOP-STEP-03")
async def test_words_of_a_level_carry_the_call_that_made_it_and_its_depth_while_they_come() -> None:
    seen: list[ModelGlimpsed] = []

    class Watching:
        def facts(self, recorded: Any) -> None: ...

        def glimpse(self, glimpse: Glimpse) -> None:
            if isinstance(glimpse, ModelGlimpsed):
                seen.append(glimpse)

    script = {
        "go": [calls(subtask("one")), "all done"],
        "one": [calls(subtask("two")), "one done"],
        "two": ["two done"],
    }
    agent = Agent("boss", LevelModel(script), tools=[look], subtasks=True)
    result = await run_turn(new_engine(MemoryStore()), RunRequest(agent, "go", watcher=Watching()))
    made = {
        entry.fact.event.level_id: entry.fact.call_id  # type: ignore[union-attr]
        for entry in result.facts()
        if entry.fact.event.kind == "subagent.started"
    }
    words: dict[Any, str] = {}
    for each in seen:
        if isinstance(each.piece, TextDelta):
            place = (each.level, each.depth, each.made_by)
            words[place] = words.get(place, "") + each.piece.text
    first, second = made
    assert words == {
        (None, 0, None): "all done",
        (first, 1, made[first]): "one done",
        (second, 2, made[second]): "two done",
    }


@pytest.mark.spec("LOOP-INV-07")
async def test_within_a_level_every_request_begins_like_the_one_before() -> None:
    script = {
        "go": [calls("look"), calls(subtask("dig", output_schema=SCHEMA), "look"), calls("look")],
        "dig": [calls("look"), "words", calls(finish(n="x")), calls("look"), calls(finish(n=1))],
    }
    result, model = await played(script, Budget(model_calls=9))
    assert result.stop_reason == "llm_calls"
    last = model.of("go")[-1]
    assert last.tool_choice == "none", "also the last one, which may call nothing, shows the same tools"
    for task in ("go", "dig"):
        requests = model.of(task)
        assert len(requests) > 3
        for before, after in itertools.pairwise(requests):
            assert (before.instructions, before.tools) == (after.instructions, after.tools)
            assert after.texts[: len(before.texts)] == before.texts and len(after.texts) > len(before.texts)


@pytest.mark.spec("LOOP-BUD-01")
async def test_one_budget_lives_for_one_turn_and_is_asked_before_models_tools_and_children(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for _ in range(2):
        model = LevelModel({"go": [calls("look"), "done"]})
        agent = Agent("boss", model, tools=[look], subtasks=True)
        result = await run(agent, "go", budget=Budget(model_calls=2, tool_calls=1), store=store, thread="t")
        assert (result.status, result.model_calls, result.tool_calls) == ("completed", 2, 1), "fresh in each turn"
    nested = {"go": [calls(subtask("a")), calls("look"), "done"], "a": [calls("look"), "A"]}
    for budget, reason in (
        (Budget(model_calls=3, final_answer_reserve=False), "llm_calls"),
        (Budget(tool_calls=2), "tool_calls"),
        (Budget(subtasks=0), "subtasks"),
    ):
        stopped, _ = await played(nested, budget)
        assert stopped.stop_reason == reason, "what its child took is gone for the root"
    assert (await played(nested, Budget(model_calls=5, tool_calls=3, subtasks=1)))[0].status == "completed"


async def test_a_child_goes_through_the_same_gate() -> None:
    """What the policy keeps from the root it keeps from a child; without that policy the same call runs."""
    script = {"go": [calls("look", subtask("dig")), "done"], "dig": [calls("look"), "dug"]}
    denied, _ = await played(
        script, policy=GatePolicy(tools=default_policy("library"), rules=(Rule(match="look", decision="deny"),))
    )
    assert [isinstance(end, ToolFailed) for end in ends(denied, "look")] == [True, True]
    free, _ = await played(script)
    assert [isinstance(end, ToolResult) for end in ends(free, "look")] == [True, True]


@pytest.mark.spec("LOOP-OUT-01")
def test_no_tool_hands_out_a_subtask_to_be_waited_for() -> None:
    tools = runtime_tools(subtasks=True, parallel=7, work_items=False)
    assert {each.name for each in tools} == {
        *("run_subtask", "spawn_self", "spawn_parallel", "scratch_list", "scratch_read", "scratch_write")
    }
    fields = {name for each in tools for name in each.declaration.input_schema["properties"]}
    assert not any("id" in name.split("_") or "wait" in name for name in fields)


@pytest.mark.parametrize(("said", "most"), [(3, 3), (7, 7), (99, 7)])
def test_however_many_jobs_a_configuration_says_a_call_has_seven_at_most(said: int, most: int) -> None:
    """The bound is looked at once more for each call: a configuration may have come from anywhere."""
    config = TurnConfig(agent_name="a", model_ref="m", max_parallel_subagents=said)
    _, fits = parallel(*(job(f"j{number}") for number in range(most)))
    assert len(jobs_of("spawn_parallel", fits, config)) == most
    _, many = parallel(*(job(f"j{number}") for number in range(most + 1)))
    assert isinstance(jobs_of("spawn_parallel", many, config), Refusal)


async def test_a_tree_ends_once_whatever_ends_it() -> None:
    gone = {"fail": [{"kind": "contract_error", "message": "wrong field", "status": 400}]}
    for steps in (["A"], [gone], [calls("look")], [calls("nowhere"), "A"]):
        result, _ = await played(
            {"go": [calls(subtask("a"), subtask("b")), "done"], "a": steps, "b": ["B"]}, max_steps=3
        )
        assert sum(isinstance(entry.fact.event, Terminal) for entry in result.facts()) == 1
        check_ends(result.facts())
