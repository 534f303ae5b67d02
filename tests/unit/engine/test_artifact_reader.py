"""`read_artifact`: offered where output was spilled, through the gate, in pages, and nowhere else."""

import re
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, Shown, subtask
from wakeful import Agent, HookInput, HookVerdict, RunResult, hook, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.service.queries.replay import replay_turn

NAME = re.compile(r'read_artifact\(artifact="([0-9a-f]{12})"\)')
WHOLE = "".join(f"line {number}\n" for number in range(60_000))


@tool(effect="pure")
def report() -> str:
    """A long report."""
    return WHOLE


@tool(effect="pure")
def short() -> str:
    """A short one."""
    return "short"


def named(shown: Shown) -> str:
    """The artifact that the notice at the end of a cut result names."""
    (found,) = [found for text in shown.texts for found in NAME.findall(text)]
    return str(found)


def reads(**more: Any) -> Any:
    return lambda shown: calls(("read_artifact", {"artifact": named(shown), **more}))


async def played(model: LevelModel, **options: Any) -> RunResult[str]:
    agent_options = {name: options.pop(name) for name in ("hooks", "subtasks") if name in options}
    return await run(Agent("any", model, tools=[report, short], **agent_options), "go", **options)


async def test_a_model_reads_what_was_cut_in_pages_to_its_end() -> None:
    last = len(WHOLE) - 10
    model = LevelModel({"go": [calls("report"), reads(offset=20, limit=30), reads(offset=last), "done"]})
    result = await played(model)
    first, second = (call.result for call in result.calls("read_artifact"))
    assert first == f"{WHOLE[20:50]}\n[characters 20 to 50 of {len(WHOLE):,}; continue with offset=50]"
    assert second == f"{WHOLE[last:]}\n[characters {last:,} to {len(WHOLE):,} of {len(WHOLE):,}; this is the end]"
    assert result.output == "done"


async def test_it_is_offered_where_output_was_spilled_and_nowhere_else() -> None:
    model = LevelModel({"go": [calls("short"), calls("report"), "done"]})
    await played(model)
    offered = [shown.tools for shown in model.seen]
    assert offered == [["report", "short"], ["report", "short"], ["report", "short", "read_artifact"]]


async def test_a_call_of_it_where_nothing_was_spilled_is_refused_like_any_unknown_tool() -> None:
    model = LevelModel({"go": [calls(("read_artifact", {"artifact": "abcdef123456"})), "done"]})
    (call,) = (await played(model)).calls()
    assert call.status == "error" and "read_artifact" in str(call.error)


async def test_a_subtask_reads_its_own_artifacts_and_not_those_of_its_caller() -> None:
    model = LevelModel({"go": [calls("report"), calls(subtask("dig")), "done"], "dig": ["gold"]})
    await played(model, subtasks=True)
    child = next(shown for shown in model.seen if shown.task == "dig")
    assert "read_artifact" not in child.tools


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"artifact": "000000000000"}, "there is no artifact"), ({"offset": -1}, "offset must be at least 0")],
)
async def test_a_wrong_request_is_told_to_the_model(arguments: dict[str, Any], words: str) -> None:
    model = LevelModel({"go": [calls("report"), reads(**arguments), "done"]})
    (call,) = (await played(model)).calls("read_artifact")
    assert call.status == "error" and words in str(call.error)


async def test_it_passes_the_gate_like_any_tool() -> None:
    @hook("pre_tool_use", match="read_artifact")
    def no(call: HookInput) -> HookVerdict:
        return HookVerdict.deny("not today")

    model = LevelModel({"go": [calls("report"), reads(), "done"]})
    (call,) = (await played(model, hooks=[no])).calls("read_artifact")
    assert call.status == "rejected" and "not today" in str(call.error)


async def test_such_a_turn_is_replayed_and_the_next_turn_of_the_thread_can_still_read(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first = await played(LevelModel({"go": [calls("report"), reads(limit=5), "done"]}), store=store, thread="t")
    second = await played(LevelModel({"go": [reads(limit=5), "done"]}), store=store, thread="t")
    assert second.calls("read_artifact")[0].result.startswith("line \n")
    async with opened_store(store) as opened:
        for turn_id in (first.turn_id, second.turn_id):
            row = await opened.turn(turn_id)
            assert row is not None
            assert (await replay_turn(opened, row)).identical


async def test_a_tool_of_that_name_is_left_alone() -> None:
    @tool(effect="pure")
    def read_artifact(artifact: str) -> str:
        """Mine."""
        return f"mine: {artifact}"

    model = LevelModel({"go": [calls("report"), reads(), "done"]})
    result = await run(Agent("any", model, tools=[report, read_artifact]), "go")
    assert result.calls("read_artifact")[0].result.startswith("mine: ")
