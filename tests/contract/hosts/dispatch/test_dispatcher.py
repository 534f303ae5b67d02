"""Dispatches through the abilities: discovery, placement, records, and what can be done with a run."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.task_host import AUDITOR, MANAGER, OTHER, OWNER, TaskHost
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import AbilityRefused, DispatchRequest, DispatchResult, ExecutorTarget, RunAccess, RunRefused
from wakeful.hosts.dispatch import dispatch_request as contracts
from wakeful.hosts.dispatch.dispatch_request import RESULT_SCHEMA
from wakeful.store.memory import MemoryStore
from wakeful.store.memory.dispatches import DispatchShelf, MemoryDispatches

DONE = {"status": "succeeded", "output": "done"}


@pytest.fixture
async def host() -> TaskHost:
    return TaskHost(MemoryStore())


class Executor:
    """A target's handler that notes what it was given."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = DONE if answer is None else answer
        self.got: list[tuple[DispatchRequest, ExecutorTarget]] = []

    async def __call__(self, given: DispatchRequest, target: ExecutorTarget) -> Any:
        self.got.append((given, target))
        if isinstance(self.answer, BaseException) and not isinstance(self.answer, InvalidValue):
            raise self.answer
        return self.answer


async def refused(awaiting: Any, code: str) -> Any:
    with pytest.raises((RunRefused, InvalidValue)) as caught:
        await awaiting
    assert caught.value.code == code
    return caught.value


@pytest.mark.spec("API-TDS-01", "API-TDS-02")
async def test_four_abilities_are_there_and_say_what_a_repeat_would_do(host: TaskHost) -> None:
    said = {}
    for name in ("run_task", "list_execution_targets", "get_task_run", "cancel_task_run"):
        ability = host.host.abilities.get(f"agents/{name}")
        assert ability is not None
        said[name] = (ability.annotations["destructive"], ability.annotations["idempotent"])
    assert said == {
        "run_task": (True, False),
        "list_execution_targets": (False, True),
        "get_task_run": (False, True),
        "cancel_task_run": (True, True),
    }
    host.target("box", Executor({"status": "running"}))
    started = await host.call("run_task", {"task_id": "t"})
    at = {"session_id": started["session_id"], "run_id": started["run_id"]}
    assert [target["id"] for target in (await host.call("list_execution_targets"))["targets"]] == ["box"]
    assert (await host.call("get_task_run", at))["status"] == "running"
    assert (await host.call("cancel_task_run", at))["run"]["status"] == "cancelling"
    for name in said:
        with pytest.raises(AbilityRefused, match="ability_permission_denied"):
            await host.call(name, at if "run" in name and name != "run_task" else {}, caller=None)


@pytest.mark.spec("API-TSK-01", "API-TDS-03")
async def test_providers_add_targets_and_handlers_and_everything_that_is_done_they_do(host: TaskHost) -> None:
    one, two = Executor(), Executor(DispatchResult.normalise({**_result("x"), "output": {"n": 2}}))
    host.target("one", one, kind="machine")
    host.target("two", two)
    first = await host.call("run_task", {"task": {"id": "t", "instructions": "Go."}, "session_id": "s1"})
    second = await host.call("run_task", {"task_id": "t", "placement": {"preferred_target": "two"}})
    assert (first["executor_id"], first["session_id"], first["output"]) == ("one", "s1", "done")
    assert (second["executor_id"], second["output"]) == ("two", {"n": 2})
    ((given, target),) = one.got
    assert isinstance(given, DispatchRequest) and isinstance(target, ExecutorTarget)
    assert (given.task.instructions, given.session_id, target.kind) == ("Go.", "s1", "machine")
    assert len(two.got) == 1
    for done in (first, second):
        at = {"session_id": done["session_id"], "run_id": done["run_id"]}
        assert await host.call("get_task_run", at) == done
        assert (await host.call("cancel_task_run", at))["cancelled"] is False
    assert [target["id"] for target in (await host.call("list_execution_targets"))["targets"]] == ["one", "two"]
    assert await host.store.agents() == [], "the core did nothing for either task but to keep its record"


@pytest.mark.spec("API-TDS-04")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"id": "box"}, "execution_targets_invalid"),
        (None, "execution_targets_invalid"),
        ([{"label": "nameless"}], "execution_target_invalid"),
        ([{"id": "box"}, {"id": ""}], "execution_target_invalid"),
        (["box"], "execution_target_invalid"),
    ],
)
async def test_a_list_or_a_target_that_is_none_fails_discovery(host: TaskHost, answer: Any, code: str) -> None:
    host.hooks.register("execution_targets", lambda targets: answer)
    await refused(host.call("list_execution_targets"), code)
    await refused(host.call("run_task", {"task_id": "t"}), code)


async def test_a_hook_that_raises_and_two_targets_of_one_name_fail_discovery(host: TaskHost) -> None:
    host.target("box")
    host.target("box")
    await refused(host.call("list_execution_targets"), "execution_target_invalid")

    def broken(targets: list[Any]) -> list[Any]:
        raise RuntimeError("no")

    host.hooks.register("execution_targets", broken)
    await refused(host.call("list_execution_targets"), "execution_targets_invalid")


@pytest.mark.spec("API-TDS-05")
async def test_targets_are_listed_and_filtered(host: TaskHost) -> None:
    host.target("a", capabilities=["tasks.run"])
    host.target("b", capabilities=["tasks.run", "artifacts.reference"], resource_classes=["gpu"])
    host.target("c", resource_classes=["small", "gpu"])

    async def listed(**query: Any) -> list[str]:
        answer = await host.call("list_execution_targets", query)
        assert answer.keys() == {"schema", "targets"}
        assert answer["schema"] == "wakeful/execution-target-list/v1"
        assert all(ExecutorTarget.normalise(target) for target in answer["targets"])
        return [target["id"] for target in answer["targets"]]

    assert await listed() == ["a", "b", "c"]
    assert await listed(allowed_targets=["c", "a"]) == ["a", "c"]
    assert await listed(resource_class="gpu") == ["a", "b", "c"]
    assert await listed(resource_class="small") == ["a", "c"]
    assert await listed(required_capabilities=["tasks.run"]) == ["a", "b"]
    assert await listed(required_capabilities=["tasks.run"], allowed_targets=["b", "c"], resource_class="gpu") == ["b"]
    assert await listed(required_capabilities=["magic"]) == []


@pytest.mark.spec("API-TDS-07")
@pytest.mark.parametrize("answer", [DONE, {"status": "failed", "diagnostics": {"placement_fallback": "hidden"}}])
async def test_a_preferred_target_is_never_replaced_in_silence(host: TaskHost, answer: Any) -> None:
    host.target("a", Executor(answer))
    host.target("b", Executor(answer), resource_classes=["gpu"])
    wanted = {"task_id": "t", "placement": {"preferred_target": "b"}}
    done = await host.call("run_task", wanted)
    fallback = {
        "preferred_target": "b",
        "selected_target": "a",
        "reason": "it does not take the resource class 'generic'",
    }
    assert done["executor_id"] == "a"
    assert done["diagnostics"]["placement_fallback"] == fallback
    assert done["events"] == [{"event": "placement_fallback", **fallback}]
    assert "placement_fallback" in await host.events(done["run_id"])
    chosen = await host.call("run_task", {"task_id": "t", "placement": {"preferred_target": "a"}})
    assert "placement_fallback" not in await host.events(chosen["run_id"])


@pytest.mark.spec("API-TDS-08")
async def test_where_nobody_takes_a_task_nothing_is_executed(host: TaskHost) -> None:
    given = {"task": {"id": "t", "input": {"password": "hunter2"}}, "run_id": "r1"}
    await refused(host.call("run_task", given), "task_no_handler")
    executor = Executor()
    host.target("box", executor, resource_classes=["gpu"])
    host.target("bare")
    await refused(host.call("run_task", given), "task_no_handler")
    host.hooks.register("task_handler", lambda found, given, target: "no callable")
    await refused(host.call("run_task", given), "task_no_handler")
    assert [code for code, _ in host.failures] == ["task_no_handler"] * 3
    told = host.failures[0][1]
    assert (told["run_id"], told["task"]["input"]) == ("r1", {"password": "[redacted]"})
    assert executor.got == []
    assert await host.store.dispatches.get("r1") is None


@pytest.mark.spec("API-TDS-09")
async def test_a_run_is_on_record_before_its_handler_runs_and_its_id_is_good_for_one(host: TaskHost) -> None:
    seen: list[Any] = []

    async def look(given: DispatchRequest, target: ExecutorTarget) -> Any:
        seen.append(await host.call("get_task_run", {"session_id": given.session_id, "run_id": given.run_id}))
        return DONE

    host.target("box", look, kind="machine", resource_classes=["gpu"])
    given = {"task_id": "t", "run_id": "r1", "placement": {"resource_class": "gpu"}}
    answers = await asyncio.gather(*(host.call("run_task", given) for _ in range(3)), return_exceptions=True)
    assert [getattr(answer, "code", "ran") for answer in answers] == ["ran", *["task_run_already_started"] * 2]
    (running,) = seen
    assert (running["status"], running["executor_id"]) == ("running", "box")
    assert running["metadata"] == {"target_kind": "machine", "resource_class": "gpu"}
    assert running["started_at"] and running["updated_at"]
    await refused(host.call("run_task", {**given, "session_id": "another"}), "task_run_already_started")
    assert len(seen) == 1


class Forgetful(MemoryDispatches):
    """Runs whose claim is no claim."""

    async def claim(self, run_id: str, *given: Any, **more: Any) -> bool:
        self._shelf.runs.pop(run_id, None)
        return await super().claim(run_id, *given, **more)


async def test_without_the_claim_one_id_would_run_as_often_as_it_is_asked() -> None:
    store = MemoryStore()
    store.dispatches = Forgetful(DispatchShelf(), lambda: None)
    host = TaskHost(store)
    executor = Executor()
    host.target("box", executor)
    for _ in range(3):
        await host.call("run_task", {"task_id": "t", "run_id": "r1"})
    assert len(executor.got) == 3


async def test_without_the_question_whose_it_is_everybody_would_read_every_run() -> None:
    host = TaskHost(MemoryStore(), access=RunAccess(is_manager=lambda caller: True))
    host.target("box", Executor())
    at = {"run_id": "r1", "session_id": "s1"}
    await host.call("run_task", {"task_id": "t", **at})
    assert (await host.call("get_task_run", at, OTHER))["output"] == "done"


@pytest.mark.spec("API-TDS-10", "API-TDS-13")
async def test_who_a_run_is_and_whose_is_not_the_executors_to_say(host: TaskHost) -> None:
    forged = {
        **DONE,
        "schema": "other/v9",
        "run_id": "other",
        "session_id": "other",
        "executor_id": "other",
        "owner": {"type": "user", "key": "u2"},
        "started_at": "1970",
    }
    host.target("box", Executor(forged))
    given = {"task_id": "t", "run_id": "r1", "session_id": "s1"}
    done = await host.call("run_task", given)
    stored = await host.call("get_task_run", {"run_id": "r1", "session_id": "s1"})
    for result in (done, stored):
        assert (result["schema"], result["run_id"], result["session_id"]) == (RESULT_SCHEMA, "r1", "s1")
        assert (result["executor_id"], result["owner"]) == ("box", {"type": "user", "key": "u1"})
        assert result["started_at"] > "2000"
    await refused(host.call("get_task_run", {"run_id": "r1", "session_id": "s1"}, OTHER), "task_run_not_found")
    for claimed in ({"owner": {"type": "user", "key": "u2"}}, {"principal": "u2"}):
        await refused(host.call("run_task", {"task_id": "t", **claimed}), "task_invalid_input")
    inside = {"owner": {"type": "user", "key": "u2"}}
    mine = await host.call("run_task", {"task": {"id": "t", "metadata": inside}, "metadata": inside})
    assert mine["owner"] == {"type": "user", "key": "u1"}


class Broken(Exception):
    code = "box_on_fire"


@pytest.mark.spec("API-TDS-11", "API-TSK-09")
@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (Broken("it burns"), "box_on_fire", "it burns"),
        (RuntimeError("it burns"), "task_handler_failed", "it burns"),
        (InvalidValue("box_code", "", "returned, not raised"), "box_code", "returned, not raised"),
        ("done", "task_invalid_result", "expected an object"),
        ([DONE], "task_invalid_result", "expected an object"),
        ({"status": "finished"}, "task_invalid_result", "status"),
        ({"output": "no status"}, "task_invalid_result", "status"),
        ({**DONE, "events": "many"}, "task_invalid_result", "events"),
        ({**DONE, "diagnostics": 7}, "task_invalid_result", "diagnostics"),
    ],
)
async def test_an_error_and_an_answer_that_is_none_are_kept_as_a_failure(
    host: TaskHost, answer: Any, code: str, words: str
) -> None:
    host.target("box", Executor(answer))
    await refused(host.call("run_task", {"task_id": "t", "run_id": "r1", "session_id": "s1"}), code)
    stored = await host.call("get_task_run", {"run_id": "r1", "session_id": "s1"})
    assert stored["status"] == "failed"
    assert stored["diagnostics"]["error_code"] == code
    assert words in stored["diagnostics"]["error_message"]
    assert [told for told, _ in host.failures] == [code]
    assert await host.events("r1") == ["task_run_started", "task_run_failed"]


@pytest.mark.spec("API-TDS-12")
async def test_a_run_is_found_by_session_and_id_by_its_owner_and_by_managers(host: TaskHost) -> None:
    host.target("box", Executor({"status": "running"}))
    at = {"run_id": "r1", "session_id": "s1"}
    await host.call("run_task", {"task_id": "t", **at})
    for name in ("get_task_run", "cancel_task_run"):
        for wrong in ({**at, "session_id": "s2"}, {**at, "run_id": "r2"}):
            for caller in (OWNER, MANAGER):
                await refused(host.call(name, wrong, caller), "task_run_not_found")
        await refused(host.call(name, at, OTHER), "task_run_not_found")
    assert (await host.call("get_task_run", at))["status"] == "running", "nobody cancelled it"
    assert (await host.call("get_task_run", at, MANAGER))["run_id"] == "r1"
    assert (await host.call("cancel_task_run", at, MANAGER))["cancelled"] is True
    package = await host.store.dispatches.claim("p", "package", "s1", "running", "{}", at=1, event="x", payload="{}")
    assert package
    await refused(host.call("get_task_run", {"run_id": "p", "session_id": "s1"}, MANAGER), "task_run_not_found")


@pytest.mark.spec("API-TDS-14")
async def test_cancelling_asks_once_and_leaves_what_is_over_alone(host: TaskHost) -> None:
    executor = Executor({"status": "queued"})
    host.target("box", executor)
    at = {"run_id": "r1", "session_id": "s1"}
    await host.call("run_task", {"task_id": "t", **at})
    first = await host.call("cancel_task_run", at)
    again = await host.call("cancel_task_run", at)
    assert (first["cancelled"], first["run"]["status"]) == (True, "cancelling")
    assert again == first
    assert (await host.events("r1")).count("task_run_cancelling") == 1
    for status in ("succeeded", "failed", "cancelled"):
        executor.answer = {"status": status}
        over = {"run_id": status, "session_id": "s1"}
        await host.call("run_task", {"task_id": "t", **over})
        for _ in range(2):
            answer = await host.call("cancel_task_run", over)
            assert (answer["cancelled"], answer["run"]["status"]) == (False, status)


async def test_a_run_that_is_asked_to_stop_stays_that_until_its_handler_ends_it(host: TaskHost) -> None:
    at = {"run_id": "r1", "session_id": "s1"}
    answers = iter([{"status": "running"}, {"status": "cancelled"}])

    async def cancelled_meanwhile(given: DispatchRequest, target: ExecutorTarget) -> Any:
        await host.call("cancel_task_run", {"run_id": given.run_id, "session_id": "s1"})
        return next(answers)

    host.target("box", cancelled_meanwhile)
    assert (await host.call("run_task", {"task_id": "t", **at}))["status"] == "cancelling"
    assert (await host.call("run_task", {"task_id": "t", **at, "run_id": "r2"}))["status"] == "cancelled"


@pytest.mark.spec("API-TDS-15")
async def test_a_host_says_by_itself_how_a_run_stands_and_what_a_cancel_did() -> None:
    said: dict[str, Any] = {}
    host = TaskHost(
        MemoryStore(), status_handler=lambda run: said.get("status"), cancel_handler=lambda run: said.get("cancel")
    )
    host.target("box", Executor({"status": "queued"}))
    at = {"run_id": "r1", "session_id": "s1"}
    await host.call("run_task", {"task_id": "t", **at})
    for wrong in (
        {"status": "finished"},
        "running",
        {"no": "status"},
        RuntimeError("lost"),
        {"status": "running", "x": 1},
    ):
        said["status"] = wrong
        await refused(host.call("get_task_run", at), "task_run_invalid_status")
    said["status"] = {"status": "running", "output": 1, "run_id": "other", "owner": {"type": "user", "key": "u2"}}
    running = await host.call("get_task_run", at)
    assert (running["status"], running["output"], running["run_id"]) == ("running", 1, "r1")
    assert running["owner"] == {"type": "user", "key": "u1"}
    said["status"] = None
    for wrong in ({"status": "stopped"}, 7, RuntimeError("lost")):
        said["cancel"] = wrong
        await refused(host.call("cancel_task_run", at), "task_run_invalid_cancel_result")
    assert (await host.call("get_task_run", at))["status"] == "running", "an answer that is none changed nothing"
    said["cancel"] = DispatchResult.normalise({**_result("cancelled"), "diagnostics": {"by": "host"}})
    gone = await host.call("cancel_task_run", at)
    assert (gone["cancelled"], gone["run"]["status"], gone["run"]["run_id"]) == (True, "cancelled", "r1")
    assert gone["run"]["diagnostics"] == {"by": "host"}
    said["status"] = {"status": "running"}
    assert (await host.call("get_task_run", at))["status"] == "cancelled", "what is over stays over"


@pytest.mark.spec("API-TDS-16")
async def test_who_may_not_read_secrets_is_shown_none(host: TaskHost) -> None:
    output = {"rows": [{"api_key": "k-123", "name": "x"}], "password": "hunter2", "total_tokens": 7}
    host.target("box", Executor({"status": "running", "output": output, "metadata": {"auth_token": "t-9"}}))
    at = {"run_id": "r1", "session_id": "s1"}
    await host.call("run_task", {"task_id": "t", **at})
    for caller in (OWNER, MANAGER):
        for shown in (
            await host.call("get_task_run", at, caller),
            (await host.call("cancel_task_run", at, caller))["run"],
        ):
            assert shown["output"] == {
                "rows": [{"api_key": "[redacted]", "name": "x"}],
                "password": "[redacted]",
                "total_tokens": 7,
            }
            assert shown["metadata"]["auth_token"] == "[redacted]"
            assert (shown["session_id"], shown["owner"]) == ("s1", {"type": "user", "key": "u1"})
    whole = await host.call("get_task_run", at, AUDITOR)
    assert (whole["output"], whole["metadata"]["auth_token"]) == (output, "t-9")


watching: list[str] | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if watching is not None and event.split(".")[0] in ("open", "os", "subprocess", "socket", "shutil", "webbrowser"):
        watching.append(f"{event} {arguments}")


@pytest.mark.spec("API-TSK-11")
async def test_the_core_touches_no_file_process_or_connection_for_a_task_and_has_no_field_for_them(
    host: TaskHost,
) -> None:
    global watching
    words = ("file", "worktree", "git", "branch", "commit", "browser", "pull", "site", "url", "path")
    models = [value for value in vars(contracts).values() if isinstance(value, type) and hasattr(value, "model_fields")]
    names = {name for model in models for name in getattr(model, "model_fields", {})}
    assert {"allowed_targets", "artifact_refs", "wall_time_ms"} <= names
    assert not {name for name in names if any(word in name for word in words)}
    host.target("box", Executor())
    at = {"run_id": "r1", "session_id": "s1"}
    given = {"task": {"id": "t", "input": {"path": "/etc/passwd", "url": "http://127.0.0.1:9/"}}, **at}
    await host.call("run_task", {"task_id": "first"})  # whatever is imported on the way is imported now
    sys.addaudithook(_audit)
    watching = []
    try:
        await host.call("run_task", given)
        await host.call("get_task_run", at)
        await host.call("cancel_task_run", at)
        await host.call("list_execution_targets")
        touched = list(watching)
        _look_around()
        assert watching[len(touched) :], "the watch sees what it is there for"
    finally:
        watching = None
    assert touched == []


def _look_around() -> None:
    list(Path().iterdir())


def _result(status: str) -> dict[str, Any]:
    state = status if status in ("cancelled",) else "succeeded"
    return {"schema": RESULT_SCHEMA, "run_id": "r", "session_id": "s", "executor_id": "e", "status": state}
