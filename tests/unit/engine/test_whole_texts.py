"""Replies that are too long for the log are whole where somebody has to read all of one: on disk, and after a kill."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from wakeful import Agent, resume, run
from wakeful.ports import ModelRequest
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

LONG = "字" * 20_000
"""60,000 bytes: more than stands in a fact."""


class Report(BaseModel):
    words: str


def splitting(name: str, arguments: dict[str, object], results: list[str]) -> object:
    def model(request: ModelRequest) -> object:
        if request.level is not None:
            return LONG + request.history[0].text
        if request.answered == 0:
            return {"calls": [{"name": name, "arguments": arguments}]}
        results.append(request.history[-1].text)
        return "done"

    return model


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run_subtask", {"title": "t", "instructions": "one"}),
        ("spawn_parallel", {"jobs": [{"task": "one"}, {"task": "two"}]}),
    ],
)
async def test_a_parent_is_given_all_that_a_child_said(name: str, arguments: dict[str, object]) -> None:
    shown: list[str] = []
    agent = Agent("any", scripted(splitting(name, arguments, shown)), subtasks=True, allow_parallel_subagents=True)  # type: ignore[arg-type]
    store = MemoryStore()
    result = await run(agent, "go", store=store, key="k")
    assert result.completed
    ended = next(entry.fact.event for entry in result.facts() if entry.fact.event.kind == "tool.result")
    whole = (await store.get_blob(ended.result_ref.digest)).decode()  # type: ignore[union-attr]
    assert whole.count("字") == 20_000 * (2 if name == "spawn_parallel" else 1)
    assert shown[0].count("字") > 1_000, "the model is shown as much as of any result, and where the rest is"
    row = await store.turn_of_key("k")
    assert row is not None
    assert (await replay_turn(store, row)).divergence is None


async def test_a_long_answer_that_has_to_fit_a_type_is_read_as_a_whole(tmp_path: Path) -> None:
    answer = json.dumps({"words": LONG}, ensure_ascii=False)
    agent = Agent("any", scripted([answer]), output_type=Report)
    result = await run(agent, "go", store=tmp_path / "runs.db", key="k")
    assert result.output.words == LONG
    again = await resume(tmp_path / "runs.db", result.turn_id, [agent])
    assert again.output.words == LONG


async def test_a_long_plan_is_read_as_a_whole() -> None:
    def model(request: ModelRequest) -> object:
        return f"1. look\n2. {LONG}" if request.level is not None else "done"

    agent = Agent("any", scripted(model), planning_enabled=True)
    result = await run(agent, "go")
    plan = next(entry.fact.event for entry in result.facts() if entry.fact.event.kind == "planning.completed")
    assert [step.number for step in plan.plan.steps] == [1, 2]  # type: ignore[union-attr]
