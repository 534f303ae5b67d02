"""The hooks a host can count on: each name, its kind, and that it is called with the arguments it is promised."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, calling, search
from kit.hosts.loop_host import Host as LoopHost
from kit.hosts.task_host import MANAGER, TaskHost
from wakeful import Agent, run
from wakeful.hosts.abilities.registry import Abilities, Ability
from wakeful.hosts.dispatch.dispatch_request import DispatchRequest, ExecutorTarget
from wakeful.hosts.run_access import resolve_principal
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request
from wakeful.hosts.tools.runtime_policy import runtime_tool_policy
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.hooks import NAMES, HookRegistry, hooks
from wakeful.store.memory import MemoryStore
from wakeful.testing.waiting_stores import MemoryRuntimeToolStore

TABLE = """
import_runtime_bundle               resolver  result spec input index
runtime_package_run_handler         resolver  handler request raw_input
execution_targets                   value     targets
task_handler                        resolver  handler input target
loop_event                          observer  event_name payload
tool_audit_parameters               value     redacted raw tool_name declaration context
pre_tool_call_decision              value     decision context
tool_policy_providers               value     providers context
resolved_tools                      value     tools mode context
write_capable_categories            value     categories context
action_policy_providers             value     providers context
tool_action_policy                  value     policy tool_name mode context
runtime_tool_policy                 value     envelope tools context
execution_principal                 resolver  principal request_context
ability_invoked                     observer  ability_name raw_input ability
ability_executed                    observer  ability_name result input ability
ability_pre_execute_decision        value     decision ability_name input ability
pending_action_store                resolver  store
runtime_tool_request_created        observer  request context
runtime_tool_result_submitted       observer  request result context
runtime_tool_request_timed_out      observer  request result context
runtime_tool_request_resumed        observer  request result resume_result context
task_dispatch_failed                observer  code input
runtime_package_run_dispatch_failed observer  code input
provider_turn_retry                 observer  payload
tool_capability_denied              observer  payload
"""
ROWS = {row[0]: (row[1], row[2:]) for line in TABLE.split("\n") if (row := line.split())}


class Heard:
    """One hook of each name, with the parameters of the table, and the arguments each was called with last."""

    def __init__(self) -> None:
        self.last: dict[str, dict[str, Any]] = {}

    def on(self, registry: HookRegistry, *names: str) -> list[Callable[[], None]]:
        return [registry.register(name, self._hook(name), priority=99) for name in names or ROWS]

    def _hook(self, name: str) -> Callable[..., Any]:
        kind, parameters = ROWS[name]
        signature = inspect.Signature(
            [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in parameters]
        )

        def hook(*arguments: Any) -> Any:
            self.last[name] = dict(signature.bind(*arguments).arguments)
            return None if kind == "observer" else arguments[0]

        return hook


@pytest.mark.spec("API-HOOK-04")
async def test_every_hook_of_the_table_is_there_and_is_called_with_what_it_is_promised() -> None:
    assert {**{name: kind for name, (kind, _) in ROWS.items()}, "chat_handler": "resolver"} == NAMES
    heard = Heard()
    await _loop(heard)
    await _abilities_and_client_tools(heard)
    await _tasks_and_packages(heard)
    await _retries(heard)
    assert heard.last.keys() == ROWS.keys()
    last = heard.last

    assert (last["loop_event"]["event_name"], last["loop_event"]["payload"].keys() > set()) == ("completed", True)
    audited = last["tool_audit_parameters"]
    assert (audited["redacted"]["api_key"], audited["raw"]["api_key"]) == ("[redacted]", "k-1")
    assert (audited["tool_name"], audited["declaration"].name) == ("ability/search", "ability/search")
    assert last["pre_tool_call_decision"]["context"]["tool_name"] == "ability/search"
    for name in ("tool_policy_providers", "action_policy_providers"):
        assert (last[name]["providers"], isinstance(last[name]["context"], dict)) == ([], True)
    assert (last["resolved_tools"]["tools"].keys(), last["resolved_tools"]["mode"]) == ({"ability/search"}, "chat")
    assert isinstance(last["write_capable_categories"]["categories"], list)
    assert (last["tool_action_policy"]["policy"], last["tool_action_policy"]["tool_name"]) == (
        "direct",
        "ability/search",
    )
    assert last["tool_capability_denied"]["payload"]["required_capability"] == "edit"
    assert last["runtime_tool_policy"]["envelope"]["schema"] == "wakeful/runtime-tool-policy/v1"
    assert [tool.name for tool in last["runtime_tool_policy"]["tools"]] == ["ability/search"]
    assert last["execution_principal"] == {"principal": None, "request_context": {"surface": "test"}}

    for name in ("ability_invoked", "ability_executed", "ability_pre_execute_decision"):
        assert (last[name]["ability_name"], last[name]["ability"].name) == ("shop/greet", "shop/greet")
    assert last["ability_invoked"]["raw_input"] == {"a": 1} == last["ability_pre_execute_decision"]["input"]
    assert (last["ability_executed"]["result"], last["ability_executed"]["input"]) == ({"hello": 1}, {"a": 1})
    assert (last["ability_pre_execute_decision"]["decision"], last["pending_action_store"]["store"]) == (None, None)
    for name in ("created", "timed_out", "resumed"):
        assert last[f"runtime_tool_request_{name}"]["request"]["tool_name"] == "client/pick"
    assert last["runtime_tool_result_submitted"]["result"]["result"] == {"file": "a"}
    assert last["runtime_tool_request_resumed"]["resume_result"] == {"went": "on"}
    assert last["runtime_tool_request_timed_out"]["context"] == {"who": "me"}

    spec = {"bundle": {"kind": "other"}}
    assert last["import_runtime_bundle"] == {"result": None, "spec": spec, "input": {"a": 1}, "index": 1}
    assert [each["id"] for each in last["execution_targets"]["targets"]] == ["box"]
    task = last["task_handler"]
    assert (task["handler"], type(task["input"]), type(task["target"])) == (None, DispatchRequest, ExecutorTarget)
    package = last["runtime_package_run_handler"]
    assert (package["handler"], package["raw_input"]) == (None, {"package": {"id": "p"}, "workflow": {"id": "w"}})
    assert package["request"]["package"] == {"id": "p", "slug": "p"}
    assert (last["task_dispatch_failed"]["code"], last["task_dispatch_failed"]["input"]["task_id"]) == (
        "task_no_handler",
        "t",
    )
    failed = last["runtime_package_run_dispatch_failed"]
    assert (failed["code"], failed["input"]["workflow"]) == ("runtime_package_run_no_handler", {"id": "w"})
    assert last["provider_turn_retry"]["payload"] == {
        "provider_id": "scripted",
        "model_id": "inline",
        "attempt": 2,
        "max_attempts": 3,
        "delay_seconds": 0.0,
        "status": 429,
        "retry_after": 0.0,
        "message": "slow down",
    }


async def _loop(heard: Heard) -> None:
    """A conversation with a tool that its caller may use, and one with a tool that nobody may."""
    for more in ({"required_capability": "edit"}, {}):
        host = LoopHost(calling(search("x", api_key="k-1")), {"content": "done"})
        heard.on(host.hooks)
        await host.mediated(tool_declarations={"ability/search": {**SEARCH, **more}})
    await runtime_tool_policy([normalize_for_conversation_request(SEARCH)], {"a": 1}, hooks=host.hooks)
    assert await resolve_principal({"surface": "test"}, hooks=host.hooks) is None


async def _abilities_and_client_tools(heard: Heard) -> None:
    registry = HookRegistry(find=list)
    heard.on(registry)
    abilities = Abilities(registry)
    abilities.register(Ability("shop/greet", lambda given: {"hello": 1}, lambda given: True))
    action = {
        "action_id": "a1",
        "kind": "greet",
        "summary": "?",
        "preview": {},
        "apply_input": {},
        "created_at": "2026-01-01T00:00:00Z",
    }
    remove = registry.register("ability_pre_execute_decision", lambda *_: action, priority=100)
    assert (await abilities.call("shop/greet", {"a": 1}))["type"] == "approval_required"
    remove()
    await abilities.call("shop/greet", {"a": 1})
    store, lifecycle = MemoryRuntimeToolStore(), RuntimeToolLifecycle(registry)
    for call_id in ("c1", "c2"):
        asked = {"tool_name": "client/pick", "tool_call_id": call_id, "run_id": "r1"}
        request = await lifecycle.create_pending_request(store, asked, {"who": "me"})
        if call_id == "c1":
            answer = {"request_id": request.request_id, "result": {"file": "a"}}
            await lifecycle.submit_result(store, answer, lambda *_: {"went": "on"}, {"who": "me"})
        else:
            await lifecycle.timeout_request(store, request.request_id, None, {"who": "me"})


async def _tasks_and_packages(heard: Heard) -> None:
    host = TaskHost(MemoryStore())
    host.target("box")
    heard.on(host.hooks, *(name for name in ROWS if not name.startswith("ability_")))
    await host.host.bundles.import_all([{}, {"bundle": {"kind": "other"}}], {"a": 1})
    asked = {"package": {"id": "p"}, "workflow": {"id": "w"}}
    for name, given in (("run_task", {"task_id": "t"}), ("run_runtime_package", asked)):
        with pytest.raises(Exception, match="no_handler"):
            await host.call(name, given, MANAGER)


async def _retries(heard: Heard) -> None:
    (remove,) = heard.on(hooks, "provider_turn_retry")
    lost = {"kind": "rate_limited", "message": "slow down", "status": 429, "retry_after": 0}
    try:
        model = ScriptedModel([{"text": "hello", "fail": [lost]}])
        assert (await run(Agent("a", model), "hi", store=MemoryStore())).final_content == "hello"
    finally:
        remove()


async def test_a_run_without_a_lost_attempt_tells_of_no_retry() -> None:
    told: list[Any] = []
    remove = hooks.register("provider_turn_retry", told.append)
    try:
        await run(Agent("a", ScriptedModel(["at once"])), "hi", store=MemoryStore())
    finally:
        remove()
    assert told == []
