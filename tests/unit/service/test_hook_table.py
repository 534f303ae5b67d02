"""The hooks a host can count on: each name, its kind, and that it is called with the arguments it is promised."""

import pytest

from task_host import MANAGER, TaskHost
from wakeful import Agent, run
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.hooks import NAMES, hooks
from wakeful.store.memory import MemoryStore

TABLE = """
import_runtime_bundle               resolver
runtime_package_run_handler         resolver
execution_targets                   value
task_handler                        resolver
loop_event                          observer
tool_audit_parameters               value
pre_tool_call_decision              value
tool_policy_providers               value
resolved_tools                      value
write_capable_categories            value
action_policy_providers             value
tool_action_policy                  value
runtime_tool_policy                 value
execution_principal                 resolver
ability_invoked                     observer
ability_executed                    observer
ability_pre_execute_decision        value
pending_action_store                resolver
runtime_tool_request_created        observer
runtime_tool_result_submitted       observer
runtime_tool_request_timed_out      observer
runtime_tool_request_resumed        observer
task_dispatch_failed                observer
runtime_package_run_dispatch_failed observer
provider_turn_retry                 observer
tool_capability_denied              observer
"""


def test_every_name_of_the_table_is_there_with_its_kind() -> None:
    table = dict(line.split() for line in TABLE.split("\n") if line)
    assert {**table, "chat_handler": "resolver"} == NAMES


async def test_the_hooks_of_tasks_and_packages_are_called_as_they_are_promised() -> None:
    host = TaskHost(MemoryStore())
    told: dict[str, list[tuple[object, ...]]] = {}

    def note(name: str, answer: object = None, *, first: bool = False) -> None:
        def hook(*arguments: object) -> object:
            told.setdefault(name, []).append(arguments)
            return arguments[0] if first else answer

        host.hooks.register(name, hook, priority=99)

    for name in ("import_runtime_bundle", "runtime_package_run_handler", "task_handler"):
        note(name)
    for name in ("task_dispatch_failed", "runtime_package_run_dispatch_failed"):
        note(name)
    note("execution_targets", first=True)
    host.target("box")
    spec = {"bundle": {"kind": "other"}}
    await host.host.bundles.import_all([{}, spec], {"a": 1})
    for name, given in (
        ("run_task", {"task_id": "t"}),
        ("run_runtime_package", {"package": {"slug": "p"}, "workflow": {"id": "w"}}),
    ):
        with pytest.raises(Exception, match="no_handler"):
            await host.call(name, given, MANAGER)
    assert told["import_runtime_bundle"] == [(None, spec, {"a": 1}, 1)]
    assert [len(each[0]) for each in told["execution_targets"]] == [1]  # type: ignore[arg-type]
    ((found, given, target),) = told["task_handler"]
    assert (found, given.task_id, target.id) == (None, "t", "box")  # type: ignore[attr-defined]
    ((found, request, raw),) = told["runtime_package_run_handler"]
    assert (found, request["package"], raw["package"]) == (None, {"slug": "p"}, {"slug": "p"})  # type: ignore[index]
    ((code, task),) = told["task_dispatch_failed"]
    assert (code, task["task_id"]) == ("task_no_handler", "t")  # type: ignore[index]
    ((code, package),) = told["runtime_package_run_dispatch_failed"]
    assert (code, package["workflow"]) == ("runtime_package_run_no_handler", {"id": "w"})  # type: ignore[index]


async def test_a_host_is_told_of_every_attempt_that_followed_a_lost_one() -> None:
    told: list[object] = []
    remove = hooks.register("provider_turn_retry", told.append)
    lost = {"fail": {"kind": "rate_limited", "message": "slow down", "status": 429, "retry_after": 0}}
    try:
        model = ScriptedModel([lost, "hello"])
        assert (await run(Agent("a", model), "hi", store=MemoryStore())).final_content == "hello"
        await run(Agent("b", ScriptedModel(["at once"])), "hi", store=MemoryStore())
    finally:
        remove()
    assert told == [
        {
            "provider_id": "scripted",
            "model_id": "inline",
            "attempt": 2,
            "max_attempts": 3,
            "delay_seconds": 0.0,
            "status": 429,
            "retry_after": 0.0,
            "message": "slow down",
        }
    ]
