"""Importing bundles: one result for each spec, and agents that are there afterwards."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.task_host import TaskHost
from kit.runs.engine_runs import calls
from wakeful import Agent, tool
from wakeful.hosts import RunRefused
from wakeful.hosts.packages.imports import BundleImporter
from wakeful.service.hooks import HookRegistry
from wakeful.store.memory import Memory, MemoryStore

WRITER = {"model": "scripted:demo", "instructions": "Write."}


@tool(effect="pure")
def look() -> str:
    return "seen"


def bundle(slug: str = "writer", **fields: Any) -> dict[str, Any]:
    return {"agent": {"agent_slug": slug, **WRITER, **fields}}


@pytest.fixture
async def host() -> TaskHost:
    return TaskHost(MemoryStore(), tools=[look])


async def imported(host: TaskHost, specs: Any, given: Any = None) -> list[dict[str, Any]]:
    return await host.host.bundles.import_all(specs, given)


async def instructions(host: TaskHost, slug: str = "writer") -> Any:
    found = await host.host.agents.get(slug)
    return found.agent.instructions if found is not None else None


@pytest.mark.spec("API-PKG-03")
async def test_each_spec_has_its_result_in_order_and_a_bad_one_stops_nobody(host: TaskHost, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(bundle("from_file")))
    specs = [{"bundle": bundle("one")}, "nonsense", {"source": str(tmp_path / "b.json")}, {}, {"bundle": bundle("two")}]
    results = await imported(host, specs)
    assert [(result["index"], result["success"]) for result in results] == [
        (0, True), (1, False), (2, True), (3, False), (4, True),
    ]  # fmt: skip
    assert [result.get("agent_slug") for result in results] == ["one", None, "from_file", None, "two"]
    assert await host.host.agents.slugs() == ["from_file", "one", "two"]
    assert await imported(host, {"bundle": bundle("single")}) == [
        {"index": 0, "success": True, "status": "registered", "agent_slug": "single"}
    ]
    assert await imported(host, []) == []


@pytest.mark.spec("API-PKG-04")
async def test_every_failure_has_its_code(host: TaskHost, tmp_path: Path) -> None:
    (tmp_path / "words.json").write_text("{not json")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "huge.json").write_bytes(b" " * 10_000_001)
    await imported(host, {"bundle": bundle("taken")})
    cases: list[tuple[Any, str]] = [
        ("nonsense", "runtime_bundle_spec_invalid"),
        ({}, "runtime_bundle_spec_invalid"),
        ({"bundle": bundle(), "source": "x.json"}, "runtime_bundle_spec_invalid"),
        ({"bundle": "x"}, "runtime_bundle_spec_invalid"),
        ({"source": 7}, "runtime_bundle_spec_invalid"),
        ({"bundle": {"workflow": {}}}, "runtime_bundle_unclaimed"),
        ({"source": str(tmp_path / "missing.json")}, "runtime_bundle_source_unreadable"),
        ({"source": str(tmp_path)}, "runtime_bundle_source_unreadable"),
        ({"source": str(tmp_path / "huge.json")}, "runtime_bundle_source_read_failed"),
        ({"source": str(tmp_path / "words.json")}, "runtime_bundle_source_invalid_json"),
        ({"source": str(tmp_path / "list.json")}, "runtime_bundle_source_invalid_shape"),
        ({"bundle": {"agent": WRITER}}, "runtime_bundle_missing_agent_slug"),
        ({"bundle": bundle("taken"), "on_conflict": "error"}, "runtime_bundle_agent_exists"),
        ({"bundle": bundle("no spaces allowed")}, "runtime_bundle_register_failed"),
        ({"bundle": bundle(tools=["nothing"])}, "runtime_bundle_register_failed"),
        ({"bundle": bundle(model=None)}, "runtime_bundle_register_failed"),
    ]
    results = await imported(host, [spec for spec, _ in cases])
    assert [result["error"]["code"] for result in results] == [code for _, code in cases]
    for result in results:
        assert result["success"] is False
        assert result["error"].keys() <= {"code", "message", "data"} and result["error"]["message"]
    nowhere = BundleImporter(None, hooks=HookRegistry(find=list))
    (lost,) = await nowhere.import_all({"bundle": bundle()})
    assert lost["error"]["code"] == "runtime_bundle_registry_unavailable"
    await host.store.close()
    (closed,) = await imported(host, {"bundle": bundle()})
    assert closed["error"]["code"] == "runtime_bundle_registry_unavailable"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
async def test_a_file_that_may_not_be_read_is_unreadable(host: TaskHost, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    secret.chmod(0)
    (result,) = await imported(host, {"source": str(secret)})
    assert result["error"]["code"] == "runtime_bundle_source_unreadable"


@pytest.mark.spec("API-PKG-05")
async def test_the_slug_is_the_first_that_is_named_and_success_says_what_was_done(host: TaskHost) -> None:
    whole = {"agent": {"agent_slug": "third", **WRITER}, "package_slug": "fourth", "bundle_slug": "fifth"}
    spec: dict[str, Any] = {"bundle": whole, "slug": "second"}
    found = []
    (done,) = await imported(host, spec, {"slug": "first"})
    found.append(done)
    for gone in (("slug", spec), ("agent_slug", whole["agent"]), ("package_slug", whole), ("bundle_slug", whole)):
        found += await imported(host, spec, {"slug": "  "})
        gone[1][gone[0]] = ""
    assert [result["agent_slug"] for result in found] == ["first", "second", "third", "fourth", "fifth"]
    assert {result["status"] for result in found} == {"registered"}
    (skipped,) = await imported(host, {"bundle": bundle("first"), "on_conflict": "skip"})
    assert (skipped["success"], skipped["status"], skipped["agent_slug"]) == (True, "skipped", "first")
    (unclaimed,) = await imported(host, {"bundle": {"agent": "no object", "package_slug": "x"}})
    assert unclaimed["error"]["code"] == "runtime_bundle_unclaimed"


@pytest.mark.spec("API-PKG-06")
async def test_a_conflict_is_an_error_or_skipped_or_an_upgrade(host: TaskHost) -> None:
    async def again(words: str, said: str | None = None, of_input: str | None = None) -> dict[str, Any]:
        spec = {"bundle": bundle(instructions=words), **({"on_conflict": said} if said else {})}
        (result,) = await imported(host, spec, {"on_conflict": of_input} if of_input else None)
        return result

    await again("1", "error")
    assert await instructions(host) == "1"
    assert (await again("2", "error"))["error"]["code"] == "runtime_bundle_agent_exists"
    assert await instructions(host) == "1"
    assert (await again("3", "skip"))["status"] == "skipped"
    assert await instructions(host) == "1"
    assert (await again("4", "upgrade"))["status"] == "registered"
    assert await instructions(host) == "4"
    await again("5")
    assert await instructions(host) == "5", "an upgrade, when nothing is said"
    await again("6", "upgrade", of_input="skip")
    assert await instructions(host) == "5", "the input goes before the spec"


async def test_an_agent_of_the_hosts_code_is_in_the_way_like_any_other() -> None:
    host = TaskHost(MemoryStore(), agents=[Agent("writer", "scripted:demo", "In code.")])
    for rule, then in (("error", "In code."), ("skip", "In code."), ("upgrade", "Write.")):
        await imported(host, {"bundle": bundle(), "on_conflict": rule})
        assert await instructions(host) == then


@pytest.mark.spec("API-PKG-07")
@pytest.mark.parametrize("word", ["replace", "Upgrade", 1, ["skip"]])
async def test_an_unknown_word_for_a_conflict_is_refused_and_nothing_changes(host: TaskHost, word: Any) -> None:
    asked: list[Any] = []
    host.hooks.register("import_runtime_bundle", lambda *given: asked.append(given))
    await imported(host, {"bundle": bundle(instructions="1")})
    asked.clear()
    for spec, given in (
        ({"bundle": bundle(instructions="2"), "on_conflict": word}, None),
        ({"bundle": bundle(instructions="2"), "on_conflict": "upgrade"}, {"on_conflict": word}),
        ({"bundle": bundle("new"), "on_conflict": word}, None),
    ):
        (result,) = await imported(host, spec, given)
        assert result["error"]["code"] == "runtime_bundle_spec_invalid"
        assert repr(word) in result["error"]["message"]
    assert await instructions(host) == "1"
    assert await host.host.agents.slugs() == ["writer"]
    assert asked == []


@pytest.mark.spec("API-PKG-08")
async def test_where_an_agent_is_from_stands_in_its_metadata(host: TaskHost) -> None:
    named = {**bundle("a"), "package_slug": "pack", "package_version": "1.2.0", "source_type": "shop"}
    await imported(host, [{"bundle": named}, {"bundle": bundle("b", metadata={"team": "x", "source_type": "forged"})}])
    first, second = await host.host.agents.get("a"), await host.host.agents.get("b")
    assert first is not None and second is not None
    assert first.metadata == {"source_type": "shop", "source_package": "pack", "source_version": "1.2.0"}
    assert second.metadata == {
        "team": "x",
        "source_type": "runtime-agent-package",
        "source_package": "b",
        "source_version": "",
    }


@pytest.mark.spec("API-PKG-02")
async def test_what_a_bundle_or_a_package_means_is_the_hosts_behind_two_hooks(host: TaskHost) -> None:
    """The core keeps the envelopes and calls; nothing is made of a package but by the host."""
    asked: list[Any] = []

    def importer(result: Any, spec: Any, given: Any, index: int) -> Any:
        asked.append((result, spec, given, index))
        kind = spec.get("bundle", {}).get("kind")
        if kind == "flow":
            return {"status": "registered", "flow": spec["bundle"]["name"], "index": 99}
        return {"broken": RuntimeError("no room"), "said": {"success": False, "error": {"code": "full"}}}.get(kind)

    host.hooks.register("import_runtime_bundle", importer)
    specs = [
        {"bundle": {"kind": "flow", "name": "f1"}},
        {"bundle": bundle()},
        {"bundle": {"kind": "broken"}},
        {"bundle": {"kind": "said"}},
        {"source": "elsewhere:thing"},
    ]
    results = await imported(host, specs, {"tenant": 7})
    assert results[0] == {"status": "registered", "flow": "f1", "index": 0, "success": True}
    assert results[1]["agent_slug"] == "writer"
    assert results[2]["error"] == {"code": "runtime_bundle_register_failed", "message": "no room"}
    assert results[3]["error"]["code"] == "full"
    assert results[4]["error"]["code"] == "runtime_bundle_source_unreadable"
    assert [(result, spec, given, index) for result, spec, given, index in asked] == [
        (None, spec, {"tenant": 7}, index) for index, spec in enumerate(specs)
    ]
    ran: list[Any] = []
    host.hooks.register(
        "runtime_package_run_handler",
        lambda found, request, raw: lambda given: ran.append(given) or {"status": "skipped"},
    )
    done = await host.host.packages.run({"package": {"slug": "p"}, "workflow": {"id": "w"}})
    assert (done.status, len(ran)) == ("skipped", 1)
    assert await host.store.agents() == [], "no turn was run for it"


@pytest.mark.parametrize(
    "field",
    [
        {"workspace": "/"},
        {"sandbox": {"network": "full"}},
        {"policy": {}},
        {"hooks": []},
        {"skills": ["/x"]},
        {"budget": {"usd": "99"}},
    ],
)
async def test_a_bundle_cannot_say_what_its_agent_may_touch_or_spend(host: TaskHost, field: dict[str, Any]) -> None:
    (result,) = await imported(host, {"bundle": bundle(**field)})
    assert result["error"]["code"] == "runtime_bundle_register_failed"
    assert result["error"]["data"] == {"path": f"agent.{next(iter(field))}"}
    assert await host.host.agents.slugs() == []


async def test_an_imported_agent_outlives_its_process_and_runs_tasks_with_the_tools_of_the_next(tmp_path: Path) -> None:
    memory = Memory()
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps([calls("look"), "looked"]))
    first = TaskHost(MemoryStore(memory), tools=[look])
    await imported(first, {"bundle": bundle(model=f"scripted:{script}", tools=["look"])})
    second = TaskHost(MemoryStore(memory), tools=[look])
    done = await second.call("run_task", {"task_id": "t", "metadata": {"agent": "writer"}})
    assert (done["status"], done["output"]) == ("succeeded", "looked")
    bare = TaskHost(MemoryStore(memory))
    with pytest.raises(RunRefused, match="look"):
        await bare.call("run_task", {"task_id": "t", "metadata": {"agent": "writer"}})
