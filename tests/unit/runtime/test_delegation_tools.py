"""How an agent of a runtime rests and begins work beside its turn: `sleep`, and no tool but `exec_command`."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import calls, heard, of_kind, until_over
from wakeful import Agent, Runtime
from wakeful.contracts.events import TaskCreated, ToolFailed, WaitCreated
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted

LONG = "sleep 600"


def agent(workspace: Path, *replies: Any, **options: Any) -> Agent[None, str]:
    def reply(request: ModelRequest) -> Any:
        is_asked = "Go." in heard(request)[-1]
        return replies[request.answered] if is_asked and request.answered < len(replies) else "done"

    return Agent("ops", scripted(reply), workspace=workspace, **options)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.spec("HOL-DELEG-13")
@pytest.mark.parametrize("duration", [-1, 3_600_001, 0.5, "soon"])
async def test_sleep_takes_a_positive_short_time_in_milliseconds_or_none(
    tmp_path: Path, work: Path, duration: Any
) -> None:
    steps = [calls("sleep", reason="rest", duration_ms=duration), calls("sleep", reason="rest", duration_ms=1_000)]
    async with Runtime(tmp_path / "home", agents=[agent(work, *steps)], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        store = rt._here.engine.store
        (refused,) = await of_kind(store, "ops", ToolFailed)
        assert "duration_ms" in refused.item.text
        (wait,) = await of_kind(store, "ops", WaitCreated)
        assert wait.reason == "rest"


@pytest.mark.spec("HOL-DELEG-14", "HOL-DELEG-15")
async def test_only_exec_command_makes_a_task_of_a_command_and_no_tool_is_there_to_create_one(
    tmp_path: Path, work: Path
) -> None:
    names: set[str] = set()

    def reply(request: ModelRequest) -> Any:
        names.update(each.name.rpartition("/")[2] for each in request.tools)
        batch = calls("exec_command_batch", items=[{"cmd": LONG, "yield_time_ms": 1_000}])
        steps = [batch, calls("exec_command", cmd=LONG, yield_time_ms=1), "done"]
        return steps[min(request.answered, 2)] if "Go." in heard(request)[-1] else "done"

    ops = Agent("ops", scripted(reply), workspace=work, spawn="public_named", work_items=True, memory=True)
    async with Runtime(tmp_path / "home", agents=[ops]) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        store = rt._here.engine.store
        (made,) = await of_kind(store, "ops", TaskCreated)
        assert (made.task_kind, made.recovery.spec.cmd) == ("command_task", LONG)
        await rt.stop_task(made.task_id)
        await until_over(store)
    assert "create_task" not in names
    assert {name for name in names if "task" in name} == {
        "task_status",
        "task_output",
        "task_input",
        "task_stop",
        "run_subtask",
    } & names
    assert "exec_command" in names
