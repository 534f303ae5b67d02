"""Child agents of agents that live: spawned, supervised, spoken to and stopped."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import (
    calls,
    family,
    heard,
    name_of,
    of_kind,
    on_task,
    only_task,
    results,
    spawning,
    tool_results,
    until_over,
)
from wakeful import Agent, Runtime, interrupt, tool
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentCreated, MessageAdmitted, TaskStatusChanged
from wakeful.errors import InvalidRequest, StoreProblem
from wakeful.ports import ModelRequest
from wakeful.ports.tasks import TaskRow
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


@pytest.mark.spec("HOL-DELEG-01", "HOL-DELEG-02", "HOL-DELEG-04", "HOL-DELEG-05")
async def test_a_child_gets_the_message_and_its_end_wakes_its_parent_once() -> None:
    store, seen = MemoryStore(), []

    def child(request: ModelRequest) -> Any:
        seen.append(heard(request))
        return "A hole."

    async with Runtime(store=store, agents=[family(spawning("It digs."), child)]) as rt:
        first = await rt.answer(await rt.send("ops", "Have a hole dug.", thread="bob"))
        assert first.output == "It digs."
        await rt.settled()
        row = await only_task(store)
        assert (row.kind, row.status, row.summary) == ("child_agent_task", "completed", "Dig a hole.")
        ((words,),) = seen
        assert words.splitlines()[1:] == ["Dig a hole.", "In the garden."]
        (told,) = [each for each in await of_kind(store, "ops", MessageAdmitted) if each.message_kind == "task_result"]
        assert (await rt.answer(told.message_id)).thread == "bob", "the conversation that asked for it is told"
    assert told.item.text.startswith(f"Task {row.task_id} is completed after ")
    assert "hole." not in told.item.text.splitlines()[1], "it quotes nothing that the child said"


@pytest.mark.spec("HOL-DELEG-06", "HOL-DELEG-07", "HOL-DELEG-16", "HOL-DELEG-17")
async def test_a_private_child_is_its_parents_and_is_told_by_its_handle() -> None:
    store = MemoryStore()
    async with Runtime(store=store, agents=[family(spawning("It digs."))]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        row = await only_task(store)
        child = name_of(row)
        (told,) = await tool_results(store)
        assert told == {
            "agent_id": child,
            "task_handle": {"task_id": row.task_id, "task_kind": "child_agent_task", "status": "queued"},
            "child_agent_id": child,
            "supervision_task_id": row.task_id,
            "child_supervision": supervision(row),
        }
    (made,) = await of_kind(store, child, AgentCreated)
    assert (made.agent_kind, made.visibility, made.ownership) == ("child", "private", "parent_supervised")
    assert (made.profile_preset, made.lineage_parent_agent_id, made.created_by) == ("private_child", "ops", "ops")


def supervision(row: TaskRow) -> dict[str, Any]:
    return {
        "parent_agent_id": "ops",
        "child_agent_id": name_of(row),
        "supervision_task_id": row.task_id,
        "workspace_mode": "inherit",
        "worktree": None,
        "cleanup_owner": "supervision_task",
        "followup_target": "parent_supervisor",
    }


@pytest.mark.spec("HOL-CMD-23", "HOL-CMD-32", "HOL-CMD-47", "HOL-AGET-07")
async def test_status_and_output_of_a_child_have_one_shape() -> None:
    store = MemoryStore()
    parent = spawning(on_task("task_output"), on_task("task_status"), "done")
    async with Runtime(store=store, agents=[family(parent)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
    row = await only_task(store)
    _, output, status = await tool_results(store)
    assert output == {
        "retrieval_status": "success",
        "task": {
            "task_id": row.task_id,
            "kind": "child_agent_task",
            "status": "completed",
            "summary": "Dig a hole.",
            "output_preview": "A hole.",
            "output_truncated": False,
            "output_expired": False,
            "artifacts": [],
            "output_artifact": None,
            "result_summary": "it has done what it was asked for",
            "exit_status": None,
            "failure_artifact": None,
            "child_supervision": supervision(row),
        },
    }
    task = status["task"]
    assert task["child_supervision"] == supervision(row)
    assert (task["child_agent_id"], task["workspace_mode"]) == (name_of(row), "inherit")
    assert task["child_observability"]["phase"] == "terminal"
    assert task["child_observability"]["last_result_brief"] == "A hole."


@pytest.mark.spec("HOL-DELEG-08", "HOL-DELEG-18", "HOL-CMD-24", "HOL-CMD-26")
async def test_a_child_that_waits_is_not_over_until_its_parent_has_answered_it() -> None:
    store = MemoryStore()
    waits = calls("wait_for", reason="How deep?", wake="operator_input")

    def child(request: ModelRequest) -> Any:
        return waits if len(heard(request)) == 1 else f"A hole: {heard(request)[-1].splitlines()[-1]}"

    def parent(request: ModelRequest) -> Any:
        if "Task task_" in heard(request)[-1]:
            return "told"
        if heard(request)[-1] == "How is it?":
            return on_task("task_status")(request) if not request.answered else "It waits."
        if heard(request)[-1] == "Three feet.":
            return on_task("task_input", input="Three feet.")(request) if not request.answered else "Said."
        return spawning("It digs.")(request)

    async with Runtime(store=store, agents=[family(parent, child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        assert (await only_task(store)).status == "running", "in the background, until the child is done"
        assert (await rt.closure("ops")).outcome == "completed", "and the parent is not held up by it"
        await rt.answer(await rt.send("ops", "How is it?"))
        seen = (await tool_results(store))[-1]["task"]["child_observability"]
        assert (seen["phase"], seen["waiting_reason"]) == ("waiting", "awaiting_operator_input")
        await rt.answer(await rt.send("ops", "Three feet."))
        said = (await tool_results(store))[-1]
        assert (said["accepted_input"], said["input_target"]) == (True, "child_agent")
        await rt.settled()
        row = await only_task(store)
        assert (row.status, row.output_summary) == ("completed", "A hole: Three feet.")


async def test_a_message_to_a_child_that_is_over_is_refused() -> None:
    store = MemoryStore()
    parent = spawning(on_task("task_output"), on_task("task_input", input="Deeper."), "done")
    async with Runtime(store=store, agents=[family(parent)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
    said = (await tool_results(store))[-1]
    assert (said["accepted_input"], said["summary_text"]) == (False, "the task is completed")


@pytest.mark.parametrize("name", ["supervision_task_id", "child_agent_id"])
async def test_a_child_is_waited_for_by_its_task_or_by_its_name(name: str) -> None:
    store, go = MemoryStore(), asyncio.Event()

    async def child(request: ModelRequest) -> Any:
        await go.wait()
        return "A hole."

    def waits(request: ModelRequest) -> Any:
        spawned = json.loads(next(item.text for item in request.history if item.role == "tool"))
        return calls("wait_for", reason="the hole", wake="task_result", resource=spawned[name])

    async with Runtime(store=store, agents=[family(spawning(waits, "done"), child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        (wait,) = await store.open_waits("ops")
        row = await only_task(store)
        assert wait.resource in (row.task_id, name_of(row))
        go.set()
        await rt.settled()
        assert await store.open_waits("ops") == []


@pytest.mark.spec("HOL-CMD-49")
async def test_stopping_a_task_stops_its_child_with_all_that_it_has_begun() -> None:
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        if "Dig a hole" in heard(request)[0]:
            deeper = calls("spawn_agent", initial_message="Dig deeper.")
            return deeper if not request.answered else calls("wait_for", reason="deeper", wake="task_result")
        return calls("wait_for", reason="rain", wake="external")

    def parent(request: ModelRequest) -> Any:
        if heard(request)[-1] == "Stop.":
            return on_task("task_stop")(request) if not request.answered else "Stopped."
        return spawning("It digs.")(request)

    async with Runtime(store=store, agents=[family(parent, child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        outer = await only_task(store)
        inner = await only_task(store, name_of(outer))
        assert (outer.status, inner.status) == ("running", "running")
        await rt.answer(await rt.send("ops", "Stop."))
        await rt.settled()
        assert (await only_task(store)).status == "cancelled"
        assert (await only_task(store, name_of(outer))).status == "cancelled"
        rows = {row.agent_id: row.control for row in await store.runtime_agents()}
        assert rows == {"ops": "running", name_of(outer): "stopped", name_of(inner): "stopped"}


async def test_a_child_that_is_stopped_while_its_model_answers_is_over_after_that() -> None:
    store, asked, go = MemoryStore(), asyncio.Event(), asyncio.Event()

    async def child(request: ModelRequest) -> Any:
        asked.set()
        await go.wait()
        return "A hole."

    def reply(request: ModelRequest) -> Any:
        if "Dig" in heard(request)[0]:
            return child(request)
        if heard(request)[-1] == "Stop.":
            return on_task("task_stop")(request) if not request.answered else "Stopped."
        return spawning("It digs.")(request)

    async with Runtime(store=store, agents=[Agent("ops", scripted(reply), spawn=True)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await asked.wait()
        await rt.answer(await rt.send("ops", "Stop."))
        await rt.settled()
        assert (await only_task(store)).status == "cancelled"


@pytest.mark.spec("HOL-CMD-27", "HOL-CMD-28", "HOL-CMD-30", "HOL-AGET-06")
async def test_a_parent_is_shown_its_children_at_work() -> None:
    store, asked, go = MemoryStore(), asyncio.Event(), asyncio.Event()

    async def child(request: ModelRequest) -> Any:
        if request.answered == 0:
            return calls("create_work_item", objective="A hole in the garden")
        if request.answered == 1:
            return calls("list_work_items")
        if request.answered == 2:
            made = [item.text for item in request.history if "wi_" in str(item.text)][-1]
            return calls("pick_work_item", work_item_id=made[made.index("wi_") :][:19])
        if request.answered == 3:
            return calls("notify_operator", text="There is a pipe.")
        asked.set()
        await go.wait()
        done = [item.text for item in request.history if "wi_" in str(item.text)][-1]
        made = done[done.index("wi_") :][:19]
        return calls("complete_work_item", work_item_id=made) if request.answered == 4 else "A hole."

    def reply(request: ModelRequest) -> Any:
        return child(request) if "Dig" in heard(request)[0] else spawning("It digs.")(request)

    agent: Agent[None, str] = Agent("ops", scripted(reply), spawn=True, work_items=True)
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await asked.wait()
        row = await only_task(store)
        (shown,) = await rt.children("ops")
        assert (shown.agent_id, shown.lineage_parent_agent_id) == (name_of(row), "ops")
        assert (shown.visibility, shown.ownership) == ("private", "parent_supervised")
        assert (shown.supervision_task_id, shown.task_status, shown.label) == (row.task_id, "running", "Dig a hole.")
        seen = shown.child_observability
        assert (seen.phase, seen.work_summary) == ("running", "A hole in the garden")
        assert seen.active_work_item_id is not None
        assert seen.last_progress_brief == "There is a pipe."
        go.set()
        await rt.settled()
        assert await rt.children("ops") == []


@pytest.mark.spec("HOL-CMD-25")
async def test_a_child_that_waits_for_a_task_of_its_own_is_blocked_and_says_by_what() -> None:
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        if "Dig deeper" in heard(request)[0]:
            return calls("wait_for", reason="rain", wake="external")
        deeper = calls("spawn_agent", initial_message="Dig deeper.")
        return deeper if not request.answered else calls("wait_for", reason="deeper", wake="task_result")

    async with Runtime(store=store, agents=[family(spawning("It digs."), child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        (shown,) = await rt.children("ops")
        inner = await only_task(store, shown.agent_id)
        assert shown.child_observability.phase == "blocked"
        assert shown.child_observability.blocked_reason == f"task {inner.task_id} is running: Dig deeper."


@pytest.mark.spec("HOL-CMD-34", "HOL-CMD-29")
async def test_what_a_child_would_tell_its_operator_goes_to_its_parent() -> None:
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        if request.answered == 0 and len(heard(request)) == 1:
            return calls("notify_operator", text="There is a pipe.")
        return calls("wait_for", reason="What now?", wake="operator_input")

    agent = family(spawning("It digs."), child, work_items=True)
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        row = await only_task(store)
        told = [each for each in await of_kind(store, "ops", MessageAdmitted) if each.task_id == row.task_id]
        assert [each.message_kind for each in told] == ["internal_followup"] * 2
        first, second = (each.item.text for each in told)
        assert first.startswith(f"Task {row.task_id} reports: Dig a hole.")
        assert second.startswith(f"Task {row.task_id} waits for your answer: Dig a hole.")
        assert "pipe" not in first + second and "What now" not in first + second, "it quotes nobody"
        assert [brief.kind for brief in await rt.briefs("ops")] == ["result", "result"], "nobody else was told"
        (shown,) = await rt.children("ops")
        assert shown.child_observability.last_progress_brief == "There is a pipe."
        assert shown.child_observability.last_result_brief is None
        assert shown.child_observability.waits_for == "What now?"
        await rt._here.tasks.children.look_at_all()
        assert len([each for each in await of_kind(store, "ops", MessageAdmitted) if each.task_id]) == 2, "once each"


async def test_a_parent_is_told_that_the_work_of_its_child_needs_input_and_can_give_it() -> None:
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        if heard(request)[-1].endswith("Three feet.") and not request.answered:
            return calls("complete_work_item", work_item_id=results(request)[0]["work_item_id"])
        if request.answered == 0:
            return calls("create_work_item", objective="A hole.", plan_status="needs_input")
        return "How deep?" if len(heard(request)) == 1 else "Dug."

    def parent(request: ModelRequest) -> Any:
        if heard(request)[-1].endswith("(last_progress_brief)."):
            return on_task("task_input", input="Three feet.")(request) if not request.answered else "Said."
        return spawning("It digs.")(request)

    async with Runtime(store=store, agents=[family(parent, child, work_items=True)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        assert (await only_task(store)).status == "completed"
        assert await rt.notices() == [], "people are told nothing: its parent is there"


async def test_nobody_but_its_parent_speaks_to_a_private_child() -> None:
    store = MemoryStore()
    waits = calls("wait_for", reason="rain", wake="external")
    async with Runtime(store=store, agents=[family(spawning("It digs."), lambda request: waits)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        name = name_of(await only_task(store))
        with pytest.raises(InvalidRequest, match="private child of ops"):
            await rt.send(name, "Faster!")
        with pytest.raises(InvalidRequest, match="private child of ops"):
            await rt.receive(name, "Faster!", channel="chat")
        with pytest.raises(InvalidRequest, match="private child of ops"):
            await rt.wake(name, "rain")


async def test_a_person_can_stop_a_child() -> None:
    store = MemoryStore()
    waits = calls("wait_for", reason="rain", wake="external")
    async with Runtime(store=store, agents=[family(spawning("It digs."), lambda request: waits)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        row = await only_task(store)
        assert await rt.stop_task(row.task_id) == "cancelled"
        assert await rt.stop_task(row.task_id) == "cancelled", "one that is over stays as it is"
        with pytest.raises(InvalidRequest, match="no task"):
            await rt.stop_task("task_0")
        await rt.settled()


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_a_parent_that_waits_for_a_child_that_dies_is_woken() -> None:
    """The field failure: a parent waited for ever for a child that was gone."""
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        raise RuntimeError("the model is gone")

    def parent(request: ModelRequest) -> Any:
        if "Task task_" in heard(request)[-1]:
            return "told"
        waits = lambda request: calls(  # noqa: E731
            "wait_for",
            reason="the hole",
            wake="task_result",
            resource=_first(request),
        )
        return spawning(waits)(request)

    async with Runtime(store=store, agents=[family(parent, child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        row = await until_over(store)
        await rt.settled()
        assert row.status == "failed"
        assert (await store.turns_of_thread("ops", "main"))[-1].prompt_preview.startswith(f"Task {row.task_id}")
        assert await store.open_waits("ops") == []


def _first(request: ModelRequest) -> str:
    from kit.runs.child_agents import results

    return str(results(request)[0]["supervision_task_id"])


async def test_a_child_that_the_operator_stops_is_told_as_cancelled() -> None:
    store = MemoryStore()
    waits = calls("wait_for", reason="rain", wake="external")
    async with Runtime(store=store, agents=[family(spawning("It digs."), lambda request: waits)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        await rt.stop(name_of(await only_task(store)), reason="enough")
        row = await until_over(store)
        assert (row.status, row.result_summary) == ("cancelled", "it was stopped: enough")
        await rt.settled()


@pytest.mark.spec("HOL-DELEG-19", "HOL-DELEG-20", "HOL-CMD-31", "HOL-TASK-03")
async def test_a_child_survives_a_restart_and_is_interrupted_while_nobody_supervises_it(tmp_path: Path) -> None:
    from wakeful.store.sqlite import SqliteStore

    waits = calls("wait_for", reason="How deep?", wake="operator_input")

    def child(request: ModelRequest) -> Any:
        return waits if len(heard(request)) == 1 else "A hole."

    def parent(request: ModelRequest) -> Any:
        if heard(request)[-1] == "Three feet.":
            return on_task("task_input", input="Three feet.")(request) if not request.answered else "Said."
        return spawning("It digs.")(request)

    agent = family(parent, child)
    async with Runtime(tmp_path, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
    other: Agent[None, str] = Agent("other", scripted(lambda request: "hi"))
    store = await SqliteStore.open(str(tmp_path / "wakeful.db"))
    async with Runtime(tmp_path, agents=[other]) as rt:
        assert (await only_task(store)).status == "interrupted"
        (shown,) = await rt.children("ops")
        assert (shown.task_status, shown.child_observability.phase) == ("interrupted", "waiting")
        assert shown.control == "running", "its handle is not over, so it is neither stopped nor archived"
    async with Runtime(tmp_path, agents=[agent]) as rt:
        row = await only_task(store)
        assert row.status == "running"
        await rt.answer(await rt.send("ops", "Three feet."))
        assert (await until_over(store)).status == "completed"
        await rt.settled()
    changes = [each.status for each in await of_kind(store, "ops", TaskStatusChanged)]
    await store.close()
    assert changes == ["running", "interrupted", "running"]


async def test_an_interrupted_handle_can_be_stopped(tmp_path: Path) -> None:
    from wakeful.store.sqlite import SqliteStore

    waits = calls("wait_for", reason="rain", wake="external")
    async with Runtime(tmp_path, agents=[family(spawning("It digs."), lambda request: waits)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
    other: Agent[None, str] = Agent("other", scripted(lambda request: "hi"))
    store = await SqliteStore.open(str(tmp_path / "wakeful.db"))
    async with Runtime(tmp_path, agents=[other]) as rt:
        row = await only_task(store)
        assert row.status == "interrupted"
        assert await rt.stop_task(row.task_id) == "cancelled"
    await store.close()


async def test_a_child_has_its_parents_tools_and_no_others() -> None:
    store, offered = MemoryStore(), {}

    @tool(effect="pure")
    def measure() -> str:
        """Measure the hole."""
        return "three feet"

    def note(who: str, reply: Any) -> Any:
        def noted(request: ModelRequest) -> Any:
            offered[who] = {each.name for each in request.tools}
            return reply(request) if callable(reply) else reply

        return noted

    agent = family(note("parent", spawning("It digs.")), note("child", "A hole."), tools=[measure])
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
    assert "measure" in offered["child"]
    assert offered["child"] == offered["parent"]


async def test_the_end_of_a_child_is_told_at_once_though_the_clock_was_set_back() -> None:
    """The parent's last turn ended in the future, by such a clock: nothing is put off because of that."""
    store, clock, asked, late = MemoryStore(), FixedClock(), asyncio.Event(), asyncio.Event()

    async def child(request: ModelRequest) -> Any:
        asked.set()
        await late.wait()
        return "A hole."

    async with Runtime(store=store, agents=[family(spawning("It digs."), child)], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await asked.wait()
        clock.skip(-7_200)
        late.set()
        await rt.settled()
        (told,) = [each for each in await of_kind(store, "ops", MessageAdmitted) if each.message_kind == "task_result"]
        assert (await rt.answer(told.message_id)).output == "told"


class FullFor(WrappedStore):
    """Has no room for the first stream of a child, once."""

    refused = False

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> Any:
        if ".c" in agent_id and not self.refused:
            self.refused = True
            raise StoreProblem("the disk is full", "Make room.")
        return await self.inner.admit(agent_id, facts, **options)


async def test_a_child_that_could_not_be_made_is_made_once_that_is_possible() -> None:
    clock, store = FixedClock(), FullFor(MemoryStore())
    async with Runtime(store=store, agents=[family(spawning("It digs."))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        assert ((await only_task(store)).status, store.refused) == ("queued", True)
        clock.advance(61)
        assert (await until_over(store)).status == "completed"
        await rt.settled()


@pytest.mark.parametrize("how", ["paused, then its task", "itself"])
async def test_a_stopped_child_asks_nobody_for_a_decision_any_more(how: str) -> None:
    store = MemoryStore()

    @tool(effect="irreversible", approval=True)
    def blast(sticks: int) -> str:
        """Blow it up."""
        raise AssertionError("nobody allowed it")

    agent = family(spawning("It digs."), lambda request: calls("blast", sticks=3), tools=[blast])
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        row = await only_task(store)
        child = name_of(row)
        assert [action.agent_id for action in await store.actions(pending_only=True)] == [child]
        if how == "itself":
            await rt.stop(child)
        else:
            await rt.pause(child)
            await rt.stop_task(row.task_id)
        assert (await until_over(store)).status == "cancelled"
        assert await store.actions(pending_only=True) == []
        assert [turn.state for turn in await store.turns_of_thread(child, "main")] == ["cancelled"]
        await rt.settled()


async def test_a_child_whose_message_was_taken_out_of_its_queue_is_over_before_it_began() -> None:
    clock, store = FixedClock(), FullFor(MemoryStore())
    async with Runtime(store=store, agents=[family(spawning("It digs."))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        await rt.pause_all()
        clock.advance(61)  # the child is made, and held
        child = name_of(await only_task(store))
        while not await store.queued(child, "main"):  # noqa: ASYNC110 - the watchdog looks
            await asyncio.sleep(0.01)
        await interrupt(store, agent=child, thread="main", queue="clear")
        await rt.resume_all()
        clock.advance(61)
        row = await until_over(store)
        words = "the message that it was made for was taken out of its queue before it began"
        assert (row.status, row.result_summary) == ("cancelled", words)
        await rt.settled()
