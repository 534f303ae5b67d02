"""Work that commands hand to a real daemon: dispatched runs, bundles, workflows, and what an agent would be told."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Done, Wakeful
from kit.surfaces.served_home import ServedHome, served
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.hosts.dispatch.records import DispatchRecords, DispatchRun
from wakeful.service.serving.options import ServeOptions

GRAPH = {
    "schema": "wakeful.workflow",
    "version": 1,
    "name": "books",
    "inputs": {"month": {"type": "integer"}},
    "required_inputs": ["month"],
    "nodes": [{"id": "ask", "kind": "agent", "ref": "clerk"}],
    "edges": [{"source": "$input", "source_output": "month", "target": "ask", "target_input": "input"}],
    "outputs": {"said": {"node": "ask"}},
}
ASKS = {**GRAPH, "name": "asks", "nodes": [{"id": "ask", "kind": "approval", "inputs": {"question": "Go on?"}}]}
BUNDLE = {"package_slug": "books", "agent": {"agent_slug": "bookkeeper", "model": "scripted:demo"}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    options = ServeOptions(port=0, tools=("kit.surfaces.verb_agents:agents",))
    with served(tmp_path_factory.mktemp("work") / "home", options) as found:
        yield found


@pytest.fixture(autouse=True)
def at_home(home: ServedHome, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))


def told(done: Done, code: int = 0) -> Any:
    assert done.code == code, done
    return json.loads(done.out)


def kept(home: ServedHome, run_id: str) -> DispatchRun:
    """The record of a run as the file has it: nobody is asked."""

    async def read() -> DispatchRun | None:
        async with opened_store(home.folder / "wakeful.db", reading=True) as store:
            return await DispatchRecords(new_engine(store)).get(run_id)

    found = asyncio.run(read())
    assert found is not None
    return found


def until(home: ServedHome, run_id: str, status: str) -> DispatchRun:
    """The record, once whoever ran it has kept how it ended; nobody looks at it meanwhile."""
    ends = time.monotonic() + 60
    while (found := kept(home, run_id)).result.status != status and time.monotonic() < ends:
        time.sleep(0.05)
    assert found.result.status == status, found
    return found


def test_work_for_an_agent_of_the_daemon_is_run_by_it_and_shown_by_it(home: ServedHome, wakeful: Wakeful) -> None:
    done = wakeful("dispatch", "run", "close the books", "--agent", "clerk", "--input", "month=5", "--run-id", "books")
    assert done.code == 0 and '"month": 5' in done.out and "books succeeded; wakeful dispatch show books" in done.err
    listed = wakeful("dispatch", "list")
    assert "books" in listed.out and "runtime" in listed.out
    shown = wakeful("dispatch", "show", "boo")
    assert shown.out.startswith("books  succeeded\n") and "task_run_started" in shown.out
    as_json = told(wakeful("dispatch", "show", "1", "--json"))
    assert (as_json["schema"], as_json["executor_id"]) == ("wakeful/task-result/v1", "runtime")
    again = wakeful("dispatch", "run", "close the books", "--agent", "clerk", "--run-id", "books")
    assert again.code == 2 and "books' was started before" in again.err
    assert wakeful("dispatch", "cancel", "books").out == "books has ended already: succeeded\n"


@pytest.mark.journey("dispatch run --json")
def test_a_run_that_waits_is_told_and_stopped_and_reading_it_writes_nothing(home: ServedHome, wakeful: Wakeful) -> None:
    waits = wakeful("dispatch", "run", "refund 5", "--agent", "clerk", "--run-id", "w1", "--session", "w")
    assert waits.code == 3 and "it waits for approval: wakeful approvals" in waits.err, waits
    assert "to stop it: wakeful dispatch cancel w1" in waits.err
    before = kept(home, "w1")
    for _ in range(2):
        assert told(wakeful("dispatch", "show", "w1", "--json"))["diagnostics"]["waiting_for"] == "approval_required"
        assert home.client.get("/dispatches/w1").body["status"] == "running"
        assert home.client.get("/dispatches").status == 200
    assert kept(home, "w1") == before, "whoever reads a run changes nothing of it"
    left = told(wakeful("dispatch", "run", "refund 6", "--agent", "clerk", "--session", "w", "--no-wait", "--json"))
    assert left["status"] == "queued"
    for run in (left["run_id"], "w1"):
        assert wakeful("dispatch", "cancel", run).code == 0
        until(home, run, "cancelled")


def test_the_end_of_a_run_is_kept_when_it_comes_without_anybody_looking(home: ServedHome, wakeful: Wakeful) -> None:
    run = wakeful("dispatch", "run", "slow 0.2", "--agent", "clerk", "--no-wait")
    assert run.code == 0 and "clerk has it" in run.err
    assert until(home, run.out.strip(), "succeeded").result.output == "finished"


def test_an_option_that_only_a_process_of_ones_own_could_keep_is_refused(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    for option in (("--target", "box"), ("--tools", "shop:both"), ("--as", "clerk")):
        refused = wakeful("dispatch", "run", "x", "--agent", "clerk", *option)
        assert refused.code == 2 and f"{option[0]} is for a run in this process" in refused.err
    nobody = wakeful("dispatch", "run", "x", "--agent", "nobody")
    assert nobody.code == 2 and "nobody" in nobody.err
    monkeypatch.setenv("WAKEFUL_HOME", str(folder / "nothing"))
    alone = wakeful("dispatch", "run", "x", "--agent", "clerk")
    assert alone.code == 2 and "no daemon runs" in alone.err and "wakeful daemon start" in alone.err
    here = wakeful("dispatch", "run", "x", "--no-wait", "--tools", "shop:other")
    assert here.code == 2 and "--no-wait leaves a run to a daemon" in here.err


def test_a_bundle_is_imported_by_the_daemon_with_its_tools(home: ServedHome, wakeful: Wakeful, folder: Path) -> None:
    (folder / "books.json").write_text(json.dumps(BUNDLE))
    (folder / "list.json").write_text("[]")
    assert wakeful("package", "import", "books.json") == (0, "bookkeeper imported\n", "")
    assert [each["slug"] for each in home.client.get("/packages").body] == ["bookkeeper"]
    there = wakeful("package", "import", "books.json", "--on-conflict", "error")
    assert there.code == 1 and "runtime_bundle_agent_exists" in there.err
    assert "holds a list, not a bundle" in wakeful("package", "import", "list.json").err


@pytest.mark.spec("HOL-PROMPT-13")
def test_the_prompt_of_an_agent_of_the_daemon_is_what_its_next_turn_is_told(home: ServedHome, wakeful: Wakeful) -> None:
    guide = home.folder / "agents" / "keeper"
    guide.mkdir(parents=True, exist_ok=True)
    (guide / "AGENTS.md").write_text("Be careful. My key is sk-ant-api03-" + "a" * 80 + "\n")
    assert wakeful("agent", "pause", "keeper").code == 0, "so that it leaves its work as it is"
    wakeful("work", "add", "keeper", "Make the beds.")
    ahead = told(wakeful("debug", "prompt", "--agent", "keeper", "--json"))
    assert ahead["turn_id"] is None and "Be careful." in ahead["system_prompt"] and "a" * 80 not in str(ahead)
    assert "Make the beds." in ahead["system_prompt"]
    assert ahead == home.client.get("/agents/keeper/prompt").body
    assert "keeper: " in wakeful("debug", "prompt", "--agent", "keeper").out
    assert "Be careful." in wakeful("debug", "prompt", "--agent", "keeper", "--text").out
    assert wakeful("agent", "resume", "keeper").code == 0
    turn = told(wakeful("run", "hello", "--agent", "keeper", "--json"))["turn_id"]
    was = told(wakeful("debug", "prompt", "--turn", turn, "--json"))
    kinds = [block["kind"] for block in ahead["blocks"]]
    assert [block["kind"] for block in was["blocks"]] == kinds and "agent_guidance" in kinds
    for option in (("--profile", "chat"), ("--tools", "shop:both")):
        assert f"{option[0]} is for a run" in wakeful("debug", "prompt", "--agent", "keeper", *option).err
    assert wakeful("debug", "prompt", "--agent", "nobody").code == 2
    tools = told(wakeful("tools", "--agent", "keeper", "--json"))
    again = told(wakeful("tools", "--agent", "keeper", "--json"))  # it may have gone on with its work meanwhile
    assert tools | {"turn_id": ""} == again | {"turn_id": ""} and tools["agent"] == "keeper"
    assert "--mcp is for a run" in wakeful("tools", "--agent", "keeper", "--mcp", "notes").err
    assert "does not go with --turn" in wakeful("tools", "--turn", turn, "--profile", "chat").err
    assert "does not go with --turn" in wakeful("debug", "prompt", "--turn", turn, "--profile", "chat").err


def test_a_workflow_is_saved_run_listed_and_stopped_in_the_daemon(
    home: ServedHome, wakeful: Wakeful, folder: Path
) -> None:
    (folder / "books.json").write_text(json.dumps(GRAPH))
    (folder / "asks.json").write_text(json.dumps({**ASKS, "inputs": {}, "required_inputs": [], "edges": []}))
    saved = wakeful("workflow", "save", "books.json", "--agent", "clerk")
    assert saved.code == 0 and "--agent clerk" in saved.out, saved
    done = wakeful("workflow", "run", "books", "--agent", "clerk", "--input", "month=5")
    assert (done.code, done.err) == (0, "") and "5" in done.out, done
    assert wakeful("workflow", "save", "asks.json", "--agent", "clerk").code == 0
    waits = wakeful("workflow", "run", "asks", "--agent", "clerk")
    assert waits.code == 3 and "to stop it: wakeful workflow cancel" in waits.err, waits
    left = told(wakeful("workflow", "run", "asks", "--agent", "clerk", "--no-wait", "--json"))
    listed = told(wakeful("workflow", "runs", "--json"))
    assert [each["workflow"] for each in listed] == ["asks", "asks", "books"]
    ids = [each["run_id"] for each in home.client.get("/workflow-runs").body]
    assert ids == [each["run_id"] for each in listed] and ids[0] == left["run_id"]
    assert wakeful("workflow", "runs").out.split()[:6] == ["RUN", "WORKFLOW", "AGENT", "STATUS", "AGE", "WHY"]
    shown = wakeful("workflow", "runs", "3")
    assert "succeeded" in shown.out and "ask succeeded" in shown.out
    for row in ("1", "2"):
        assert "was asked to stop" in wakeful("workflow", "cancel", row).out
        run, ends = listed[int(row) - 1]["run_id"], time.monotonic() + 60
        while home.client.get(f"/workflow-runs/{run}").body["status"] != "cancelled" and time.monotonic() < ends:
            time.sleep(0.05)
        assert "has ended already: cancelled" in wakeful("workflow", "cancel", row).out
    refused = wakeful("workflow", "run", "books", "--agent", "clerk", "--input", "month=5", "--tools", "shop:both")
    assert refused.code == 2 and "--tools is for a run in this process" in refused.err
    assert "month" in wakeful("workflow", "run", "books", "--agent", "clerk").err
    assert wakeful("workflow", "runs", "nothing").code == 2
