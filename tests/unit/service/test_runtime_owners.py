"""What a runtime began is its own: neither its parent's nor another runtime's conversations can be had with it."""

from typing import Any

import pytest

from kit.hosts.client_tools import PICK, agent
from kit.hosts.task_host import OWNER, TaskHost, user
from kit.runs.engine_runs import calls
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.hosts.abilities.registry import AbilityRefused
from wakeful.hosts.run_access import RunRefused, known_as, owner_of, principal_id
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.memory import MemoryStore


def box(runtime_id: str, **more: Any) -> ExecutionPrincipal:
    """A runtime that works for the parent's agent, and in its name."""
    return ExecutionPrincipal.runtime(runtime_id, "support", acting_user_id="u1", **more)


OWNERS = {"parent": OWNER, "runtime": box("r1"), "another": box("r2"), "same name": user("runtime:r1")}
ONE = ("get_runtime_tool_request", "submit_runtime_tool_result", "timeout_runtime_tool_request")
REACH = {
    *("chat", "run_task", "get_task_run", "cancel_task_run", "list_runtime_tool_requests", *ONE),
    *("cancel_runtime_tool_request", "list_execution_targets"),
    *("get_runtime_package_run", "cancel_runtime_package_run", "list_runtime_package_run_events"),
}
"""Every ability that this test knows to be held to its caller."""


async def began(host: TaskHost, name: str, caller: ExecutionPrincipal) -> dict[str, Any]:
    """A conversation that waits for its client, and a task, of this caller."""
    session = {"agent": "support", "session_id": f"talk of {name}"}
    await host.call("chat", {**session, "message": "go"}, caller)
    run = {"run_id": f"run of {name}", "session_id": f"session of {name}"}
    await host.call("run_task", {"task_id": "t", **run}, caller)
    waiting = await requests(host, caller)
    assert len(waiting) == 2
    return {"chat": {**session, "message": "more"}, "task": run, "requests": waiting}


async def requests(host: TaskHost, caller: ExecutionPrincipal) -> set[str]:
    listed = await host.call("list_runtime_tool_requests", caller=caller)
    return {request["request_id"] for request in listed["requests"]}


@pytest.mark.spec("API-PRI-04")
async def test_a_runtime_reaches_its_own_conversations_and_decisions_and_nobody_elses() -> None:
    model = ScriptedModel(lambda request: "done" if request.answered else calls(PICK))
    host = TaskHost(MemoryStore(), agents=[agent().changed(model=model)])
    offered = {name.removeprefix("agents/") for name in host.host.abilities.names}
    assert {name for name in offered if not name.startswith("run_runtime_package")} <= REACH, "look at the new one"
    theirs = {name: await began(host, name, caller) for name, caller in OWNERS.items()}
    for caller_name, caller in OWNERS.items():
        for name, what in theirs.items():
            if name == caller_name:
                assert (await host.call("get_task_run", what["task"], caller))["run_id"] == what["task"]["run_id"]
                assert await requests(host, caller) == what["requests"]
                continue
            with pytest.raises(RunRefused, match="does not belong"):
                await host.call("chat", what["chat"], caller)
            for ability in ("get_task_run", "cancel_task_run"):
                with pytest.raises(RunRefused, match="task_run_not_found"):
                    await host.call(ability, what["task"], caller)
            for ability in (*ONE, "cancel_runtime_tool_request"):
                for request_id in what["requests"]:
                    with pytest.raises(AbilityRefused, match="ability_permission_denied"):
                        await host.call(ability, {"request_id": request_id}, caller)
        for ability in ("get_runtime_package_run", "cancel_runtime_package_run", "list_runtime_package_run_events"):
            with pytest.raises(AbilityRefused, match="ability_permission_denied"):
                await host.call(ability, {"run_id": "any"}, caller)


def test_no_two_owners_are_known_by_one_name() -> None:
    names = [principal_id(owner_of(caller)) for caller in OWNERS.values()]
    assert names == ["u1", "runtime:r1", "runtime:r2", "user:runtime:r1"]
    assert known_as("a:b", "c") != known_as("a", "b:c")
    assert principal_id(None) is None
