"""Runs of packages, through the abilities: request, record, result, events, and who may."""

import asyncio
from typing import Any

import pytest

from kit.hosts.task_host import AUDITOR, MANAGER, OTHER, OWNER, TaskHost
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.hosts import (
    Abilities,
    Ability,
    AbilityRefused,
    RunRefused,
    dispatch_ability,
    hooks,
    import_runtime_bundles,
    register_ability,
    run_runtime_package,
)
from wakeful.hosts.abilities.packages import PackageAbilities
from wakeful.store.memory import MemoryStore

ASKED = {"package": {"slug": "p"}, "workflow": {"id": "w"}, "run_id": "r1"}
AT = {"run_id": "r1"}


@pytest.fixture
async def host() -> TaskHost:
    return TaskHost(MemoryStore())


def handled(host: TaskHost, answer: Any) -> list[Any]:
    """Have packages handled with this answer; what the handler was given."""
    got: list[Any] = []

    async def handler(request: dict[str, Any]) -> Any:
        got.append(request)
        if isinstance(answer, Exception):
            raise answer
        return await answer(request) if callable(answer) else answer

    host.hooks.register("runtime_package_run_handler", lambda found, request, raw: handler)
    return got


async def refused(awaiting: Any, code: str) -> None:
    with pytest.raises((RunRefused, InvalidValue, AbilityRefused)) as caught:
        await awaiting
    assert caught.value.code == code


@pytest.mark.spec("API-PKG-09")
async def test_a_request_has_six_objects_and_perhaps_an_id(host: TaskHost) -> None:
    got = handled(host, {"status": "succeeded"})
    whole = {
        "package": {"source": "x.zip"},
        "workflow": {"spec": {"steps": []}},
        "input": {"a": 1},
        "options": {"fast": True},
        "metadata": {"m": 1},
        "replay": {"of": "r0"},
        "run_id": "r1",
    }
    seen: list[Any] = []
    host.hooks.register("ability_invoked", lambda name, given, ability: seen.append((name, given)))
    await host.call("run_runtime_package", whole, MANAGER)
    assert seen == [("agents/run_runtime_package", whole)]
    assert got == [{**whole, "options": {"fast": True, "run_id": "r1"}}]
    await host.call("run_runtime_package", {"package": {"id": "p"}, "workflow": {"id": "w"}}, MANAGER)
    assert got[1]["package"] == {"id": "p", "slug": "p"}
    assert [got[1][name] for name in ("input", "metadata", "replay")] == [{}, {}, {}]
    for name in ("package", "workflow", "input", "options", "metadata", "replay"):
        await refused(host.call("run_runtime_package", {**ASKED, name: "text"}, MANAGER), "ability_invalid_input")
    assert len(got) == 2


@pytest.mark.spec("API-PKG-10")
async def test_a_package_and_a_workflow_have_to_be_named(host: TaskHost) -> None:
    got = handled(host, {"status": "succeeded"})
    for package in ({}, {"source": ""}, {"slug": " "}, {"version": "1"}):
        await refused(
            host.call("run_runtime_package", {**ASKED, "package": package}, MANAGER),
            "runtime_package_run_missing_package",
        )
    for workflow in ({}, {"id": ""}, {"spec": {}}):
        await refused(
            host.call("run_runtime_package", {**ASKED, "workflow": workflow}, MANAGER),
            "runtime_package_run_missing_workflow",
        )
    await refused(
        host.call("run_runtime_package", {"workflow": {"id": "w"}}, MANAGER), "runtime_package_run_missing_package"
    )
    assert got == [] and await host.store.dispatches.all("package") == []
    for number, package in enumerate(({"source": "x"}, {"slug": "x"}, {"id": "x"})):
        asked = {**ASKED, "package": package, "run_id": f"ok{number}"}
        assert (await host.call("run_runtime_package", asked, MANAGER))["status"] == "succeeded"
    spec = {**ASKED, "workflow": {"spec": {"steps": [1]}}}
    assert (await host.call("run_runtime_package", spec, MANAGER))["status"] == "succeeded"


@pytest.mark.spec("API-PKG-11")
async def test_a_run_has_an_id_and_is_on_record_before_its_handler_is_called(host: TaskHost) -> None:
    seen: list[Any] = []

    async def look(request: dict[str, Any]) -> Any:
        assert request["options"]["run_id"] == request["run_id"]
        seen.append(await host.call("get_runtime_package_run", {"run_id": request["run_id"]}, MANAGER))
        return {"status": "succeeded", "run_id": "forged"}

    handled(host, look)
    asked = {"package": {"slug": "p"}, "workflow": {"id": "w"}}
    done = await host.call("run_runtime_package", asked, MANAGER)
    assert done["run_id"].startswith("runtime_run_")
    assert [(run["run_id"], run["status"]) for run in seen] == [(done["run_id"], "running")]
    again = {**asked, "run_id": done["run_id"]}
    await refused(host.call("run_runtime_package", again, MANAGER), "runtime_package_run_already_started")
    assert len(seen) == 1


@pytest.mark.spec("API-PKG-12")
@pytest.mark.parametrize("status", ["pending", "running", "succeeded", "failed", "cancelled", "skipped"])
async def test_a_result_is_an_envelope_of_eight_fields(host: TaskHost, status: str) -> None:
    handled(host, {"status": status})
    assert await host.call("run_runtime_package", ASKED, MANAGER) == {
        "status": status,
        "run_id": "r1",
        "result": {},
        "error": {},
        "artifact_refs": [],
        "evidence_refs": [],
        "metadata": {},
        "replay": {},
    }
    whole = {
        "status": status,
        "run_id": "r1",
        "result": {"n": 1},
        "error": {"code": "x"},
        "artifact_refs": [{"ref": "a"}],
        "evidence_refs": [{"ref": "e"}],
        "metadata": {"m": 1},
        "replay": {"of": "r0"},
    }
    host = TaskHost(host.store)
    handled(host, whole)
    asked = {**ASKED, "run_id": "r2"}
    assert await host.call("run_runtime_package", asked, MANAGER) == {**whole, "run_id": "r2"}
    assert (await host.call("get_runtime_package_run", {"run_id": "r2"}, MANAGER))["result"] == {"n": 1}


class Broken(Exception):
    code = "host_on_fire"


@pytest.mark.spec("API-PKG-13", "API-PKG-14")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "runtime_package_run_no_handler"),
        ("done", "runtime_package_run_invalid_result"),
        ([], "runtime_package_run_invalid_result"),
        ({}, "runtime_package_run_invalid_result"),
        ({"result": {"n": 1}}, "runtime_package_run_invalid_result"),
        ({"status": "completed"}, "runtime_package_run_invalid_result"),
        ({"status": None, "result": {}}, "runtime_package_run_invalid_result"),
        ({"status": "succeeded", "result": []}, "runtime_package_run_invalid_result"),
        (Broken("it burns"), "host_on_fire"),
        (RuntimeError("it burns"), "runtime_package_run_failed"),
    ],
)
async def test_a_run_without_a_handler_or_a_fit_answer_has_failed(host: TaskHost, answer: Any, code: str) -> None:
    if answer is not None:
        handled(host, answer)
    given = {**ASKED, "input": {"password": "hunter2"}}
    await refused(host.call("run_runtime_package", given, MANAGER), code)
    stored = await host.call("get_runtime_package_run", AT, MANAGER)
    assert (stored["status"], stored["error"]["code"]) == ("failed", code)
    ((told, request),) = host.failures
    assert (told, request["run_id"], request["input"]) == (code, "r1", {"password": "[redacted]"})


@pytest.mark.spec("API-PKG-15")
async def test_runs_are_read_cancelled_and_paged_through(host: TaskHost) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(request: dict[str, Any]) -> Any:
        begun.set()
        await go_on.wait()
        return {"status": "succeeded", "result": {"late": True}}

    handled(host, wait)
    running = asyncio.ensure_future(host.call("run_runtime_package", ASKED, MANAGER))
    await begun.wait()
    assert (await host.call("get_runtime_package_run", AT, MANAGER))["status"] == "running"
    gone = await host.call("cancel_runtime_package_run", AT, MANAGER)
    assert (gone["cancelled"], gone["run"]["status"]) == (True, "cancelled")
    assert (await host.call("cancel_runtime_package_run", AT, MANAGER))["cancelled"] is False
    go_on.set()
    assert (await running)["status"] == "cancelled"
    names = ["runtime_package_run_started", "runtime_package_run_cancelled", "runtime_package_run_answered_late"]
    page = await host.call("list_runtime_package_run_events", {**AT, "limit": 2}, MANAGER)
    assert page.keys() == {"events", "cursor", "has_more"}
    assert ([event["event"] for event in page["events"]], page["has_more"]) == (names[:2], True)
    rest = await host.call("list_runtime_package_run_events", {**AT, "cursor": page["cursor"]}, MANAGER)
    assert ([event["event"] for event in rest["events"]], rest["has_more"]) == (names[2:], False)
    assert rest["events"][0]["payload"]["result"] == {"late": True}
    none = await host.call("list_runtime_package_run_events", {**AT, "cursor": rest["cursor"]}, MANAGER)
    assert none == {"events": [], "cursor": rest["cursor"], "has_more": False}

    for number in range(600):
        await host.store.dispatches.note("r1", at=number, event="told", payload="{}")
    by_default = await host.call("list_runtime_package_run_events", AT, MANAGER)
    assert (len(by_default["events"]), by_default["has_more"]) == (100, True)
    most = await host.call("list_runtime_package_run_events", {**AT, "limit": 500}, MANAGER)
    assert len(most["events"]) == 500
    await refused(host.call("list_runtime_package_run_events", {**AT, "limit": 501}, MANAGER), "ability_invalid_input")
    for name in ("get_runtime_package_run", "cancel_runtime_package_run", "list_runtime_package_run_events"):
        await refused(host.call(name, {"run_id": "nope"}, MANAGER), "runtime_package_run_not_found")
    host.target("box", lambda given, target: {"status": "running"})
    await host.call("run_task", {"task_id": "t", "run_id": "a_task"})
    await refused(host.call("get_runtime_package_run", {"run_id": "a_task"}, MANAGER), "runtime_package_run_not_found")


@pytest.mark.spec("API-PKG-16")
async def test_package_runs_are_for_managers_and_secrets_for_those_who_may_read_them(host: TaskHost) -> None:
    secret = {"status": "running", "result": {"api_key": "k-1", "n": 1}}
    got = handled(host, secret)
    calls_ = {
        "run_runtime_package": ASKED,
        "get_runtime_package_run": AT,
        "cancel_runtime_package_run": AT,
        "list_runtime_package_run_events": AT,
    }
    for caller in (OWNER, OTHER, None):
        for name, given in calls_.items():
            await refused(host.call(name, given, caller), "ability_permission_denied")
    assert got == []
    await host.call("run_runtime_package", ASKED, MANAGER)
    assert (await host.call("get_runtime_package_run", AT, MANAGER))["result"] == {"api_key": "[redacted]", "n": 1}
    assert (await host.call("get_runtime_package_run", AT, AUDITOR))["result"] == {"api_key": "k-1", "n": 1}
    assert (await host.call("cancel_runtime_package_run", AT, MANAGER))["run"]["result"]["api_key"] == "[redacted]"

    more = Abilities.on(host.system, host.hooks)
    who: list[ExecutionPrincipal] = [OWNER]
    PackageAbilities(host.host.packages, lambda: who[0], may=lambda caller: caller is OWNER).register(more)
    assert (await more.call("agents/get_runtime_package_run", AT))["status"] == "cancelled", "the host grants it"
    who[0] = OTHER
    await refused(more.call("agents/get_runtime_package_run", AT), "ability_permission_denied")


@pytest.mark.spec("API-PKG-17")
async def test_dispatch_runs_any_ability_through_the_one_facade() -> None:
    store = MemoryStore()
    heard: list[str] = []
    asked: list[Any] = []

    def permission(given: Any) -> bool:
        asked.append(given)
        return given.get("please") is True

    ability = Ability("shop/greet", lambda given: {"hello": given["name"]}, permission)
    remove = register_ability(ability)

    drops = [
        hooks.register("ability_invoked", lambda name, *_: heard.append(f"invoked {name}")),
        hooks.register("ability_executed", lambda name, result, *_: heard.append(f"executed {name} {result}")),
    ]
    try:
        given = {"name": "you", "please": True}
        assert await dispatch_ability("shop/greet", given, store=store) == {"hello": "you"}
        assert heard == ["invoked shop/greet", "executed shop/greet {'hello': 'you'}"]
        await refused(dispatch_ability("shop/greet", {"name": "you"}, store=store), "ability_permission_denied")
        assert len(asked) == 2
        for blank in ("", "  "):
            await refused(dispatch_ability(blank, {}, store=store), "ability_name_missing")
        await refused(dispatch_ability("shop/gone", {}, store=store), "ability_not_found")
        targets = await dispatch_ability("agents/list_execution_targets", {}, store=store, principal=OWNER)
        assert targets["targets"] == []
    finally:
        for each in (remove, *drops):
            each()
    await refused(dispatch_ability("shop/greet", {}, store=store), "ability_not_found")


@pytest.mark.spec("API-PKG-01")
async def test_three_functions_are_all_a_host_imports(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))

    drops = [
        hooks.register("execution_principal", lambda found, context: MANAGER),
        hooks.register(
            "runtime_package_run_handler", lambda found, request, raw: lambda given: {"status": "succeeded"}
        ),
    ]
    try:
        bundle = {"agent": {"agent_slug": "writer", "model": "scripted:demo"}}
        (imported,) = await import_runtime_bundles([{"bundle": bundle}], {"on_conflict": "error"})
        assert (imported["success"], imported["agent_slug"]) == (True, "writer")
        ran = await run_runtime_package({"package": {"slug": "p"}, "workflow": {"id": "w"}})
        assert ran["status"] == "succeeded"
        read = await dispatch_ability("agents/get_runtime_package_run", {"run_id": ran["run_id"]})
        assert read["run_id"] == ran["run_id"], "the three speak about one host"
        (target,) = (await dispatch_ability("agents/list_execution_targets"))["targets"]
        assert target["metadata"] == {"agents": ["writer"]}
    finally:
        for each in drops:
            each()
