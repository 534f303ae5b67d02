"""`wakeful dispatch`, `targets` and `package`: work is handed over, followed and stopped; agents come in bundles."""

import asyncio
import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted, SessionStarted
from wakeful.hosts.packages.package_run import PackageRunResult
from wakeful.hosts.packages.runs import PackageRuns

BUNDLE = {
    "agent": {"agent_slug": "clerk", "model": "scripted:refund.yaml", "tools": ["look_up", "refund"]},
    "package_slug": "shop",
    "package_version": "2.0",
}
CODE = ("--tools", "shop:both")


def written(folder: Path, **more: object) -> str:
    (folder / "clerk.json").write_text(json.dumps({**BUNDLE, **more}))
    return "clerk.json"


@pytest.mark.journey("package import", "package import --json", "package import --store", "dispatch run")
def test_an_agent_is_imported_and_does_a_task(wakeful: Wakeful, folder: Path) -> None:
    file = written(folder)
    assert "no targets" in wakeful("targets").out
    assert "nothing was run yet" in wakeful("dispatch").err, "looking has made no store"
    missing = wakeful("package", "import", file)
    assert missing.code == 1 and "runtime_bundle_register_failed" in missing.err and "look_up" in missing.err
    assert wakeful("package", "import", file, *CODE) == (0, "clerk registered\n", "")
    assert wakeful("package", "import", file, *CODE, "--on-conflict", "skip").out == "clerk skipped\n"
    skipped = wakeful("package", "import", file, *CODE, "--on-conflict", "skip", "--json", "--store", "home/wakeful.db")
    assert "skipped" in str(json.loads(skipped.out))
    there = wakeful("package", "import", file, *CODE, "--on-conflict", "error")
    assert there.code == 1 and "runtime_bundle_agent_exists" in there.err
    wrong = wakeful("package", "import", file, *CODE, "--on-conflict", "replace")
    assert wrong.code == 1 and "runtime_bundle_spec_invalid" in wrong.err
    assert "local  runtime  tasks.run" in wakeful("targets").out

    done = wakeful("dispatch", "run", "Refund it.", "--input", "order=A17", "--run-id", "r1", *CODE)
    assert (done.code, done.out.startswith("Done")) == (0, True)
    assert "r1 succeeded; wakeful dispatch show r1" in done.err
    again = wakeful("dispatch", "run", "Refund it.", "--run-id", "r1", *CODE)
    assert again.code == 2 and "task_run_already_started" in again.err
    assert "r1" in wakeful("dispatch", "list").out and wakeful("dispatch").out == wakeful("dispatch", "list").out
    shown = wakeful("dispatch", "show", "r1").out
    assert shown.startswith("r1  succeeded\n") and "task_run_started" in shown and "task_run_succeeded" in shown
    assert "Z" not in shown.partition("began")[2].splitlines()[0], "times are the reader's own"
    as_json = json.loads(wakeful("dispatch", "show", "r1", "--json").out)
    assert (as_json["schema"], as_json["executor_id"]) == ("wakeful/task-result/v1", "local")
    assert wakeful("dispatch", "cancel", "r1").out == "r1 has ended already: succeeded\n"
    gone = wakeful("dispatch", "show", "r9")
    assert gone.code == 2 and "there is no dispatched run 'r9'" in gone.err


@pytest.mark.journey("dispatch resume", "dispatch resume --json", "dispatch resume --store", "dispatch run --store")
def test_a_task_that_was_killed_is_gone_on_with(wakeful: Wakeful, process: Wakeful, folder: Path) -> None:
    wakeful("package", "import", written(folder), *CODE)
    killed = process("dispatch", "run", "Refund it.", "--run-id", "r1", *CODE, crash=True)
    assert killed.code == -9
    there = ("--store", "home/wakeful.db")
    assert process("dispatch", "run", "Refund it.", "--run-id", "r2", *CODE, *there, crash=True).code == -9
    assert "r1" in wakeful("dispatch", "list").out
    assert "to continue: wakeful dispatch resume r1" in wakeful("dispatch", "show", "r1").out
    other = wakeful("dispatch", "resume", "1", *CODE, *there, "--json")
    assert (other.code, json.loads(other.out)["run_id"]) == (0, "r2"), "the newest is the first row"
    done = wakeful("dispatch", "resume", "r1", *CODE)
    assert (done.code, done.out.startswith("Done")) == (0, True)
    assert wakeful("dispatch", "show", "r1").out.startswith("r1  succeeded\n")


def test_a_preferred_target_that_is_not_there_is_told(wakeful: Wakeful, folder: Path) -> None:
    done = wakeful("dispatch", "run", "Hello.", "--target", "moon", "--tools", "shop:other")
    assert done.code == 0
    assert "moon was not used (there is no such target); the run went to local" in done.err
    only = wakeful("dispatch", "run", "Hello.", "--allow", "moon", "--tools", "shop:other")
    assert only.code == 2 and "task_no_handler" in only.err


def test_a_package_needs_somebody_who_runs_it(wakeful: Wakeful, folder: Path) -> None:
    (folder / "request.json").write_text(json.dumps({"package": {"slug": "shop"}, "workflow": {"id": "refund"}}))
    done = wakeful("package", "run", "request.json")
    assert done.code == 2 and "runtime_package_run_no_handler" in done.err
    (folder / "request.json").write_text("{}")
    assert "runtime_package_run_missing_package" in wakeful("package", "run", "request.json").err
    assert "cannot be read" in wakeful("package", "run", "nothing.json").err


GRAPH = {
    "name": "pay back",
    "inputs": {"order": {"type": "string"}},
    "required_inputs": ["order"],
    "nodes": [
        {"id": "agreed", "kind": "approval", "inputs": {"question": "Pay back?"}},
        {"id": "done", "kind": "agent", "ref": "clerk"},
    ],
    "edges": [
        {"source": "$input", "source_output": "order", "target": "agreed", "target_input": "show"},
        {"source": "agreed", "source_output": "result", "target": "done", "target_input": "input"},
    ],
    "outputs": {"words": {"node": "done", "path": "result"}},
}
INPUT = {"package": {"slug": "shop", "version": "2.0"}, "input": {"order": "A17"}}


async def recorded(home: Path, run_id: str) -> PackageRunResult:
    async with opened_store(next(home.glob("*.db"))) as store:
        return await PackageRuns(new_engine(store)).get(run_id)


@pytest.mark.journey("package run", "package run --json", "package run --store")
def test_an_imported_package_runs_rests_for_a_person_and_is_resumed(
    wakeful: Wakeful, process: Wakeful, folder: Path
) -> None:
    wakeful("package", "import", written(folder), *CODE)
    (folder / "graph.json").write_text(json.dumps(GRAPH))
    assert wakeful("workflow", "save", "graph.json", *CODE).code == 0, "its nodes may name the imported agent"
    (folder / "request.json").write_text(json.dumps({**INPUT, "workflow": {"id": "pay back"}, "run_id": "r1"}))
    rests = wakeful("package", "run", "request.json", "--json", *CODE)
    assert rests.code == 3 and json.loads(rests.out)["status"] == "pending"
    turn = json.loads(rests.out)["metadata"]["turn_id"]
    assert f"to continue: wakeful resume {turn}" in rests.err
    (folder / "other.json").write_text(json.dumps({**INPUT, "workflow": {"id": "pay back"}, "run_id": "r2"}))
    words = wakeful("package", "run", "other.json", *CODE)
    assert words.code == 3 and "waits_for" in words.out and "to continue: wakeful resume turn_" in words.err
    (folder / "third.json").write_text(json.dumps({**INPUT, "workflow": {"id": "pay back"}, "run_id": "r3"}))
    assert wakeful("package", "run", "third.json", *CODE, "--store", "home/wakeful.db").code == 3
    question = json.loads(wakeful("approvals", "--turn", turn, "--json").out)[0]["approval_id"]
    assert wakeful("approvals", "answer", question, "yes").code == 0
    assert process("resume", turn, *CODE, crash=True).code == -9
    bare = wakeful("resume", turn)
    assert bare.code == 3 and "uses look_up, refund" in bare.err and "--tools" in bare.err
    assert wakeful("resume", turn, *CODE).code == 0
    kept = asyncio.run(recorded(folder / "home", "r1"))
    assert kept.status == "succeeded" and kept.result["outputs"]["words"].startswith("Done")
    again = wakeful("package", "run", "request.json", *CODE)
    assert again.code == 2 and "runtime_package_run_already_started" in again.err
    (folder / "request.json").write_text(json.dumps({**INPUT, "workflow": {"spec": {**GRAPH, "nodes": []}}}))
    wrong = wakeful("package", "run", "request.json", *CODE)
    assert wrong.code == 2 and "runtime_package_run_failed" in wrong.err


def test_a_turn_of_an_imported_agent_that_never_began_is_resumed_with_what_was_imported(
    wakeful: Wakeful, folder: Path
) -> None:
    wakeful("package", "import", written(folder), *CODE)
    asyncio.run(admitted(folder / "home", "turn_1"))
    bare = wakeful("resume", "turn_1")
    assert bare.code == 2 and "look_up" in bare.err
    done = wakeful("resume", "turn_1", *CODE)
    assert (done.code, done.out.startswith("Done")) == (0, True)


async def admitted(home: Path, turn_id: str) -> None:
    """A message that was taken in, and a process that died then."""
    async with opened_store(next(home.glob("*.db"))) as store:
        message = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("Refund it."),)), fingerprint="x")
        opening = Fact(SessionStarted(agent_name="clerk"), 1)
        await store.admit("clerk_1", [opening, Fact(message, 1, "main", turn_id)])
