"""Who is told about a private child: its parent of all it says and of its end, people of what only they can do."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import calls, family, heard, name_of, of_kind, only_task, spawning
from wakeful import Agent, Runtime, tool
from wakeful.contracts.events import MessageAdmitted
from wakeful.ports import ModelRequest, Store
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

BROKEN = {"fail": [{"kind": "contract_error", "message": "no such parameter"}]}


@tool(effect="irreversible", approval=True)
def pay(to: str) -> str:
    """Pay somebody."""
    raise AssertionError("nobody decided")


def parent(request: ModelRequest) -> Any:
    return "told" if "Task task_" in heard(request)[-1] else spawning("It digs.")(request)


def tells(request: ModelRequest) -> Any:
    return calls("notify_operator", text="There is a pipe.") if not request.answered else "A hole."


def asks(request: ModelRequest) -> Any:
    return calls("wait_for", reason="How deep?", wake="operator_input")


def fails(request: ModelRequest) -> Any:
    return BROKEN


def pays(request: ModelRequest) -> Any:
    return calls("pay", to="the digger") if not request.answered else "A hole."


async def begun(rt: Runtime) -> Store:
    await rt.answer(await rt.send("ops", "Have a hole dug."))
    await rt.settled()
    return rt._here.engine.store


@pytest.mark.spec("HOL-CMD-34")
@pytest.mark.parametrize("child", [tells, asks, fails])
async def test_what_a_child_says_asks_or_fails_at_is_its_parents_to_hear_and_no_notice_to_people(child: Any) -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(parent, child, work_items=True)]) as rt:
        await begun(rt)
        row = await only_task(store)
        told = [each.message_kind for each in await of_kind(store, "ops", MessageAdmitted) if each.task_id is not None]
        ends = {"tells": ["task_result"], "asks": ["internal_followup"], "fails": ["task_result"]}
        assert told == ends[child.__name__]
        assert await rt.notices(name_of(row)) == []
        assert await rt.notices() == []
    if child is fails:
        assert (row.status, (row.failure or {})["category"]) == ("failed", "task")


@pytest.mark.parametrize("child", [tells, fails])
async def test_inversion_the_same_of_an_agent_that_is_nobodys_child_is_told_to_people(child: Any) -> None:
    agent: Agent[None, str] = Agent("ops", scripted(child), work_items=True)
    async with Runtime(store=MemoryStore(), agents=[agent]) as rt:
        await begun(rt)
        assert [notice.kind for notice in await rt.notices()] == [
            {"tells": "progress", "fails": "failure"}[child.__name__]
        ]


async def test_people_are_told_where_a_child_needs_a_decision_at_the_address_of_its_parent(tmp_path: Path) -> None:
    mark = tmp_path / "told.json"
    to = {"to": ["sh", "-c", f"cat > {mark}"]}
    agent = family(parent, pays, tools=[pay], notify=to)
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        store = await begun(rt)
        name = name_of(await only_task(store))
        (notice,) = await rt.notices()
        assert (notice.agent, notice.kind, notice.state) == (name, "action_required", "delivered")
        (shown,) = await rt.children("ops")
        assert shown.child_observability.phase == "blocked", "and its parent sees that it is blocked"
    assert name in mark.read_text()
