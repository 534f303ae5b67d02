"""The built-in target: a task as a turn of an agent of this host."""

import asyncio
from typing import Any

import pytest

from kit.hosts.task_host import MANAGER, OTHER, OWNER, TaskHost
from kit.runs.asked_runs import World
from kit.runs.engine_runs import calls
from wakeful import Agent, Retry, tool
from wakeful.contracts.approvals import Approve
from wakeful.contracts.events import MessageAdmitted
from wakeful.hosts.run_access import RunRefused
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.approvals import decide
from wakeful.store.memory import Memory, MemoryStore

AT = {"run_id": "r1", "session_id": "s1"}
TASK = {"task": {"id": "t", "instructions": "Add them.", "input": {"a": 1}, "attachments": [{"ref": "x"}]}, **AT}


@tool(effect="pure")
def add(a: int) -> int:
    return a + 1


def agent(*steps: Any, name: str = "worker", **more: Any) -> Agent[None, str]:
    return Agent(name, ScriptedModel(list(steps)), **more)


async def test_a_task_is_a_turn_whose_thread_is_the_session() -> None:
    store = MemoryStore()
    host = TaskHost(store, agents=[agent(calls(("add", {"a": 1})), "two", tools=[add])])
    (target,) = (await host.call("list_execution_targets"))["targets"]
    assert (target["id"], target["capabilities"], target["metadata"]) == (
        "local",
        ["tasks.run"],
        {"agents": ["worker"]},
    )
    done = await host.call("run_task", TASK)
    assert (done["status"], done["output"], done["executor_id"]) == ("succeeded", "two", "local")
    assert done["metadata"]["target_kind"] == "runtime"
    assert done["execution_metrics"]["tool_call_count"] == 1
    row = await store.turn(done["provenance"]["turn_id"])
    assert row is not None and (row.thread_id, row.agent_name, row.key) == ("s1", "worker", "task:r1")
    (asked,) = [
        entry.fact.event
        for entry in await store.read(row.agent_id, turn_id=row.turn_id)
        if isinstance(entry.fact.event, MessageAdmitted)
    ]
    assert asked.principal == "u1"
    prompt = str(asked.item)
    assert "Add them." in prompt and '"a": 1' in prompt and '"ref": "x"' in prompt


async def test_a_turn_that_fails_is_a_task_that_failed() -> None:
    host = TaskHost(MemoryStore(), agents=[agent({"fail": {"kind": "contract_error", "message": "no", "status": 400}})])
    done = await host.call("run_task", TASK)
    assert done["status"] == "failed"
    assert done["diagnostics"]["error_code"] and done["diagnostics"]["error_message"]
    assert done["output"] is None


async def test_which_agent_is_said_in_the_metadata_and_an_unknown_one_fails_the_run() -> None:
    host = TaskHost(MemoryStore(), agents=[agent("a", name="one"), agent("b", name="two")])
    named = {"task": {"id": "t", "metadata": {"agent": "two"}}}
    assert (await host.call("run_task", named))["output"] == "b"
    assert (await host.call("run_task", {"task_id": "t", "metadata": {"agent": "one"}}))["output"] == "a"
    for unnamed in ({"task_id": "t"}, {"task_id": "t", "metadata": {"agent": "three"}}):
        with pytest.raises(RunRefused, match="task_no_agent"):
            await host.call("run_task", unnamed)
    assert [code for code, _ in host.failures] == ["task_no_agent"] * 2


async def test_a_session_of_somebody_else_is_not_continued() -> None:
    store = MemoryStore()
    host = TaskHost(store, agents=[agent("mine", "theirs")])
    await host.call("run_task", TASK)
    with pytest.raises(RunRefused, match="does not belong to 'u2'"):
        await host.call("run_task", {**TASK, "run_id": "r2"}, OTHER)
    assert len(await store.turns()) == 1


async def test_a_task_that_rests_on_a_person_runs_until_somebody_decided_and_it_went_on() -> None:
    world = World()
    refund = world.tool(approval=True)
    host = TaskHost(MemoryStore(), agents=[agent(calls("refund"), "refunded", tools=[refund])])
    resting = await host.call("run_task", TASK)
    assert (resting["status"], resting["diagnostics"]["waiting_for"]) == ("running", "approval_required")
    assert (await host.call("get_task_run", AT))["status"] == "running"
    (action,) = await host.store.actions(pending_only=True)
    await decide(host.system, action.action_id, Approve(), by="boss")
    host.host.caller = OWNER
    done = await host.host.dispatcher.resume("s1", "r1", OWNER)
    assert (done.status, done.output, len(world.done)) == ("succeeded", "refunded", 1)
    assert done.diagnostics == {}, "what it waited for is no matter any more"
    assert (await host.call("get_task_run", AT))["status"] == "succeeded"


async def test_a_task_whose_provider_is_away_has_not_failed_and_ends_as_its_turn_does() -> None:
    said = iter([{"fail": [{"kind": "server_error", "status": 503}]}] * 3 + ["There you are."])
    away = Agent("worker", ScriptedModel(lambda: next(said)), retry=Retry(patience=0))
    host = TaskHost(MemoryStore(), agents=[away])
    resting = await host.call("run_task", TASK)
    assert (resting["status"], resting["diagnostics"]["waiting_for"]) == ("running", "provider")
    assert (await host.call("get_task_run", AT))["status"] == "running"
    host.host.caller = OWNER
    for _ in range(200):  # the provider is asked again after a second
        done = await host.host.dispatcher.resume("s1", "r1", OWNER)
        if done.status != "running":
            break
        await asyncio.sleep(0.1)
    assert (done.status, done.output, done.diagnostics) == ("succeeded", "There you are.", {})


async def test_a_run_at_rest_is_cancelled_with_its_turn() -> None:
    refund = World().tool(approval=True)
    host = TaskHost(MemoryStore(), agents=[agent(calls("refund"), "refunded", tools=[refund])])
    await host.call("run_task", TASK)
    asked = await host.call("cancel_task_run", AT)
    assert (asked["cancelled"], asked["run"]["status"]) == (True, "cancelling")
    assert (await host.call("get_task_run", AT))["status"] == "cancelled"
    assert (await host.call("cancel_task_run", AT))["cancelled"] is False
    assert await host.store.actions(pending_only=True) == []


async def test_a_run_under_way_is_cancelled_from_elsewhere() -> None:
    memory = Memory()
    begun = asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    host = TaskHost(MemoryStore(memory), agents=[agent(calls("wait"), "over", tools=[wait])])
    other = TaskHost(MemoryStore(memory))
    running = asyncio.ensure_future(host.call("run_task", TASK))
    await begun.wait()
    assert (await other.call("cancel_task_run", AT, MANAGER))["cancelled"] is True
    assert (await running)["status"] == "cancelled"
    assert (await other.call("get_task_run", AT, MANAGER))["status"] == "cancelled"


async def test_a_run_that_a_dead_process_left_is_gone_on_with_and_runs_nothing_twice() -> None:
    """The process dies inside the run: the record says running, and the turn is open."""
    memory = Memory()
    ran: list[int] = []
    blocked = asyncio.Event()

    @tool(effect="keyed")
    async def count() -> int:
        ran.append(1)
        return len(ran)

    @tool(effect="pure")
    async def pause() -> str:
        blocked.set()
        await asyncio.Event().wait()
        return "never"

    @tool(effect="pure", name="pause")
    async def no_pause() -> str:
        return "awake"

    steps = (calls("count"), calls("pause"), "counted")
    dead = MemoryStore(memory)
    host = TaskHost(dead, agents=[agent(*steps, tools=[count, pause])])
    running = asyncio.ensure_future(host.call("run_task", TASK))
    await blocked.wait()
    running.cancel()
    await asyncio.wait({running})
    await dead.close()

    again = TaskHost(MemoryStore(memory), agents=[agent(*steps, tools=[count, no_pause])])
    assert (await again.call("get_task_run", AT))["status"] == "running"
    with pytest.raises(RunRefused, match="task_run_already_started"):
        await again.call("run_task", TASK)
    done = await again.host.dispatcher.resume("s1", "r1", OWNER)
    assert (done.status, done.output, ran) == ("succeeded", "counted", [1])
    assert (await again.host.dispatcher.resume("s1", "r1", OWNER)).status == "succeeded"


async def test_a_run_that_another_process_has_is_not_taken_from_it_and_not_over() -> None:
    memory = Memory()
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        begun.set()
        await go_on.wait()
        return "waited"

    def worker() -> Agent[None, str]:
        return agent(calls("wait"), "over", tools=[wait])

    host, other = TaskHost(MemoryStore(memory), agents=[worker()]), TaskHost(MemoryStore(memory), agents=[worker()])
    running = asyncio.ensure_future(host.call("run_task", TASK))
    await begun.wait()
    tried = await other.host.dispatcher.resume("s1", "r1", OWNER)
    assert (tried.status, tried.diagnostics["waiting_for"]) == ("running", "resume")
    go_on.set()
    assert (await running)["status"] == "succeeded"
    stored = await other.call("get_task_run", AT)
    assert (stored["status"], stored["diagnostics"]) == ("succeeded", {})


async def test_a_run_that_was_cancelled_before_its_first_step_never_begins() -> None:
    """Its process died between the record and the turn; whoever takes it up finds that nobody wants it any more."""
    host = TaskHost(MemoryStore(), agents=[agent("never")])
    steps: list[str] = []

    async def die(given: Any, target: Any) -> Any:
        steps.append("died")
        raise asyncio.CancelledError

    remove = host.hooks.register("task_handler", lambda found, given, target: die)
    with pytest.raises(asyncio.CancelledError):
        await host.call("run_task", TASK)
    remove()
    assert (await host.call("cancel_task_run", AT))["run"]["status"] == "cancelling"
    assert (await host.host.dispatcher.resume("s1", "r1", OWNER)).status == "cancelled"
    assert (steps, await host.store.turns()) == (["died"], [])


async def test_only_this_runtime_s_own_runs_can_be_gone_on_with_here() -> None:
    host = TaskHost(MemoryStore())
    host.target("box", lambda given, target: {"status": "running"})
    await host.call("run_task", {"task_id": "t", **AT})
    with pytest.raises(RunRefused, match="task_run_not_resumable"):
        await host.host.dispatcher.resume("s1", "r1", OWNER)


async def test_a_host_may_take_the_built_in_target_away_or_handle_it_itself() -> None:
    host = TaskHost(MemoryStore(), agents=[agent("here")])
    host.hooks.register("task_handler", lambda found, given, target: lambda *_: {"status": "queued"})
    assert (await host.call("run_task", TASK))["status"] == "queued"
    host.hooks.register("execution_targets", lambda targets: [])
    assert (await host.call("list_execution_targets"))["targets"] == []
