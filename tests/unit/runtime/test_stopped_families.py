"""An agent is stopped with its private children, whoever asks for it and whatever happens in between."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import calls, family, heard, name_of, of_kind, only_task, spawning, until_over
from wakeful import Agent, Runtime, tool
from wakeful.bootstrap.store_operations import perform
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted, TaskEnded, TaskStatusChanged
from wakeful.errors import AgentStopped
from wakeful.ports import ModelRequest, Store
from wakeful.service.operations.runtime import STOP_AGENT, AgentControlRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted


def digger(request: ModelRequest) -> Any:
    """Has somebody dig deeper, and waits; the one who digs deeper waits for rain."""
    if "Dig a hole" in heard(request)[0]:
        deeper = calls("spawn_agent", initial_message="Dig deeper.")
        return deeper if not request.answered else calls("wait_for", reason="deeper", wake="task_result")
    return calls("wait_for", reason="rain", wake="external")


def parent(request: ModelRequest) -> Any:
    return "told" if "Task task_" in heard(request)[-1] else spawning("It digs.")(request)


async def begun(rt: Runtime) -> None:
    await rt.answer(await rt.send("ops", "Have a hole dug."))
    await rt.settled()


async def controls(store: Store) -> dict[str, str]:
    return {row.agent_id: row.control for row in await store.runtime_agents()}


async def told_of(store: Store) -> list[MessageAdmitted]:
    return [each for each in await of_kind(store, "ops", MessageAdmitted) if each.message_kind == "task_result"]


async def test_children_and_their_children_end_with_an_agent_that_is_stopped_and_it_hears_of_it_when_it_runs() -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(parent, digger)]) as rt:
        await begun(rt)
        outer = await only_task(store)
        inner = await only_task(store, name_of(outer))
        await rt.stop("ops", reason="enough")
        await rt.settled()
        assert [(await only_task(store, name)).status for name in ("ops", name_of(outer))] == ["cancelled"] * 2
        assert await controls(store) == {"ops": "stopped", name_of(outer): "stopped", name_of(inner): "stopped"}
        assert (await only_task(store)).result_summary == "it was stopped because its parent was stopped"
        assert await store.open_waits() == [], "who is over waits for nothing"
        (told,) = await told_of(store)
        kept = await store.message(told.message_id)
        assert kept is not None
        assert kept.state == "queued", "it is kept, and costs nothing"
        assert len(await store.turns_of_thread("ops", "main")) == 1
        await rt.resume("ops")
        assert (await rt.answer(told.message_id)).output == "told"
        await rt.settled()
        assert len(await store.turns_of_thread("ops", "main")) == 2
        assert await controls(store) == {"ops": "running", name_of(outer): "stopped", name_of(inner): "stopped"}


async def test_the_stop_of_an_agent_and_of_its_children_is_one_commit() -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(parent, digger)]) as rt:
        await begun(rt)
        before = (await store.read("ops"))[-1].seq
        await rt.stop("ops")
        await rt.settled()
        facts = await store.read("ops", after=before)
    assert [entry.fact.event.kind for entry in facts][:2] == ["agent.state_changed", "task.status_changed"]
    assert facts[0].fact.at == facts[1].fact.at


async def test_a_stop_from_another_process_reaches_the_children_without_a_watch(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with Runtime(store=path, agents=[family(parent, digger)]) as rt:
        await begun(rt)
        store = rt._here.engine.store
        await perform(STOP_AGENT, AgentControlRequest("ops"), str(path))
        row = await until_over(store)
        assert row.status == "cancelled"
        assert set((await controls(store)).values()) == {"stopped"}


async def test_a_child_that_works_with_its_parents_code_is_shown_as_what_it_does() -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(parent, digger)]) as rt:
        await begun(rt)
        outer = await only_task(store)
        inner = await only_task(store, name_of(outer))
        made = await store.runtime_agent(name_of(outer))
        assert made is not None
        assert made.revision == "", "it has its parent's definition of the moment"
        assert (await rt.agent(name_of(outer))).status == "awaiting_task"
        assert (await rt.agent(name_of(inner))).status == "asleep"


async def test_a_child_that_is_stopped_from_another_process_is_over_for_its_task_at_once(tmp_path: Path) -> None:
    """The clock stands still: no watch of a minute is needed."""
    path = tmp_path / "runs.db"
    async with Runtime(store=path, agents=[family(parent, digger)], clock=FixedClock()) as rt:
        await begun(rt)
        store = rt._here.engine.store
        outer = await only_task(store)
        await perform(STOP_AGENT, AgentControlRequest(name_of(outer)), str(path))
        row = await until_over(store)
        assert row.status == "cancelled"
        assert (await controls(store))["ops"] == "running"


@pytest.mark.parametrize("is_paused", [False, True])
async def test_what_a_child_asked_is_withdrawn_when_the_child_is_stopped(is_paused: bool) -> None:
    """Nobody is asked to decide about a call that no turn makes any more."""

    @tool(effect="irreversible", approval=True)
    def dig() -> str:
        """Dig."""
        return "dug"

    store = MemoryStore()
    asking = family(parent, lambda request: calls("dig"), tools=[dig])
    async with Runtime(store=store, agents=[asking], clock=FixedClock()) as rt:
        await begun(rt)
        child = name_of(await only_task(store))
        assert len(await store.actions(pending_only=True)) == 1
        if is_paused:
            await rt.pause(child)
        await rt.stop(child)
        await rt.settled()
        assert (await only_task(store)).status == "cancelled"
        assert await store.actions(pending_only=True) == []
        assert [turn async for turn in store.open_turns()] == []


async def test_a_child_that_is_asked_for_while_its_parent_is_stopped_is_never_made() -> None:
    store, at_work = MemoryStore(), asyncio.Event()

    async def stopping(request: ModelRequest) -> Any:
        if request.answered:
            return "It digs."
        reply = spawning("It digs.")(request)
        return {"calls": [{"name": "halt", "arguments": {}}, *reply["calls"]]}

    @tool(effect="pure")
    async def halt() -> str:
        """Wait for the stop."""
        at_work.set()
        await asyncio.Event().wait()
        return "stopped"

    async with Runtime(store=store, agents=[family(stopping, digger, tools=[halt])]) as rt:
        await rt.send("ops", "Have a hole dug.")
        await at_work.wait()
        await rt.stop("ops")
        await rt.settled()
        if await store.tasks_of("ops"):  # the call was under way already
            assert (await until_over(store)).status == "cancelled"
        assert all(control == "stopped" for control in (await controls(store)).values())


async def test_a_public_agent_is_nobodys_and_goes_on_when_its_maker_is_stopped() -> None:
    store = MemoryStore()

    def maker(request: ModelRequest) -> Any:
        made = calls("spawn_agent", preset="public_named", agent_id="digger", initial_message="Dig a hole.")
        return made if not request.answered else "done"

    async with Runtime(store=store, agents=[family(maker, spawn="public_named")]) as rt:
        await begun(rt)
        await rt.stop("ops")
        await rt.settled()
        assert await controls(store) == {"ops": "stopped", "digger": "running"}
        assert (await rt.answer(await rt.send("digger", "Dig again."))).output == "A hole."
        with pytest.raises(AgentStopped):
            await rt.send("ops", "And you?")


async def test_a_child_that_ended_in_the_moment_of_the_stop_is_told_as_it_ended() -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(parent)]) as rt:
        await begun(rt)
        await rt.stop("ops")
        await rt.settled()
        (ended,) = await of_kind(store, "ops", TaskEnded)
    assert ended.status == "completed"


async def test_a_pause_leaves_children_at_work() -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(parent, digger)]) as rt:
        await begun(rt)
        await rt.pause("ops")
        await rt.settled()
        assert (await only_task(store)).status == "running"
        assert "cancelling" not in [each.status for each in await of_kind(store, "ops", TaskStatusChanged)]


async def test_a_command_that_was_to_end_when_its_runtime_was_killed_is_ended_by_the_next(tmp_path: Path) -> None:
    path, work = tmp_path / "runs.db", tmp_path / "work"
    work.mkdir()
    script = calls("exec_command", cmd="echo on; sleep 600", yield_time_ms=1)
    agent = Agent("ops", _once(script), workspace=work)
    async with Runtime(store=path, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        row = await only_task(rt._here.engine.store)
    async with opened_store(path) as other:  # the fact, and no process that acts on it
        asked = TaskStatusChanged(task_id=row.task_id, status="cancelling", reason="asked for")
        await other.admit("ops", [Fact(asked, row.updated_at + 1, row.thread_id)])
    async with Runtime(store=path, agents=[agent]) as rt:
        store = rt._here.engine.store
        row = await until_over(store)
        assert row.status == "cancelled"
        assert [wake.subject for wake in await store.wakes_of("ops") if wake.cause == "stop"] == []


def _once(call: dict[str, Any]) -> Any:
    return scripted(lambda request: call if not request.answered and "Go." in heard(request)[-1] else "done")
