"""Work that is handed to the runtime over HTTP, and bundles that are imported."""

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient, served
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.hosts.dispatch.dispatch_request import DispatchRequest
from wakeful.hosts.dispatch.records import DispatchRecords
from wakeful.hosts.dispatch.runtime_target import RuntimeTarget

BOOKS = {
    "package_slug": "books",
    "version": "1.0",
    "agent": {"agent_slug": "bookkeeper", "model": "scripted:demo", "instructions": "You keep the books."},
}


def dispatch(client: HomeClient, instructions: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/dispatches", {"agent": "clerk", "instructions": instructions, **more})
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.body
    return found


def until(client: HomeClient, run_id: str, *statuses: str) -> dict[str, Any]:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        found: dict[str, Any] = client.get(f"/dispatches/{run_id}").body
        if found["status"] in statuses:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_work_is_handed_to_an_agent_of_the_runtime(operator: HomeClient, observer: HomeClient) -> None:
    run = dispatch(operator, "close the books", input={"month": 5}, run="run-1", session="books")
    assert (run["run_id"], run["session_id"]) == ("run-1", "books")
    done = until(operator, "run-1", "succeeded", "failed")
    assert done["status"] == "succeeded" and '"month": 5' in done["record"]["result"]["output"], done
    assert done["record"]["result"]["owner"]["key"] == "token:operator"
    assert done["log"][0]["event"] == "task_run_started"
    again = operator.post("/dispatches", {"agent": "clerk", "instructions": "close the books", "run": "run-1"})
    assert (again.status, again.code) == (409, "task_run_already_started")
    assert "run-1" in [each["run_id"] for each in operator.get("/dispatches").body]
    assert observer.post("/dispatches", {"agent": "clerk", "instructions": "x"}).status == 403


def test_work_that_nobody_can_do_is_refused_before_it_is_on_record(operator: HomeClient) -> None:
    before = operator.get("/dispatches").body
    nobody = operator.post("/dispatches", {"agent": "nobody", "instructions": "x"})
    assert (nobody.status, nobody.code) == (404, "agent_not_found")
    assert operator.post("/dispatches", {"agent": "clerk", "instructions": 5}).status == 422
    assert operator.post("/dispatches", {"agent": "clerk", "instructions": "x", "by": "me"}).status == 422
    operator.post("/control/agents/keeper/stop", {})
    stopped = operator.post("/dispatches", {"agent": "keeper", "instructions": "x"})
    assert (stopped.status, stopped.code) == (409, "agent_stopped")
    assert "wakeful agent resume keeper" in stopped.body["error"]["hint"]
    operator.post("/control/agents/keeper/resume", {})
    assert operator.get("/dispatches/nothing").status == operator.post("/dispatches/nothing/cancel").status == 404
    assert operator.get("/dispatches").body == before


def test_a_run_waits_for_a_person_and_can_be_cancelled_also_before_it_began(operator: HomeClient) -> None:
    waits = dispatch(operator, "refund 5", session="stops")["run_id"]
    ends = time.monotonic() + 60
    while "approval_required" not in str(told := operator.get(f"/dispatches/{waits}").body) and time.monotonic() < ends:
        time.sleep(0.05)
    assert told["status"] == "running"
    assert told["record"]["result"]["diagnostics"]["waiting_for"] == "approval_required"
    behind = dispatch(operator, "refund 6", session="stops")["run_id"]
    for run in (behind, waits):
        assert operator.post(f"/dispatches/{run}/cancel").status == 200
        ended = until(operator, run, "cancelled")
        assert operator.post(f"/dispatches/{run}/cancel").body["status"] == ended["status"]


async def only_on_record(store: Path, run_id: str) -> None:
    """A run as a kill leaves it that comes right after it was put on record."""
    async with opened_store(store) as opened:
        engine = new_engine(opened)
        given = {"task": {"id": "t"}, "instructions": "hello", "run_id": run_id, "metadata": {"agent": "clerk"}}
        target = await RuntimeTarget(engine).target()
        assert target is not None
        await DispatchRecords(engine).start(DispatchRequest.normalise(given, engine.ids.new), target, None)


def test_a_killed_daemon_goes_on_with_what_it_was_handed(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        running = dispatch(home.client, "hold go", session="one")["run_id"]
        queued = dispatch(home.client, "hello", session="one")["run_id"]
        until(home.client, running, "running")
        home.kill()
        asyncio.run(only_on_record(home.folder / "wakeful.db", "lost"))
        (home.folder / "go").touch()
        home.start()
        for run in (running, queued, "lost"):
            assert until(home.client, run, "succeeded", "failed")["status"] == "succeeded"
        turns = home.client.get("/turns?agent=clerk").body
        assert len(turns) == 3, "each ran once"


def test_work_of_an_agent_whose_log_is_damaged_holds_up_no_start_and_no_other_work(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        broken = dispatch(home.client, "refund 5", session="one")["run_id"]
        ends = time.monotonic() + 60
        while "waiting_for" not in str(home.client.get(f"/dispatches/{broken}").body) and time.monotonic() < ends:
            time.sleep(0.05)
        home.kill()
        with contextlib.closing(sqlite3.connect(home.folder / "wakeful.db")) as store, store:  # as a failing disk would
            (agent,) = store.execute("SELECT id FROM agents WHERE agent_id = 'clerk'").fetchone()
            store.execute("UPDATE appends SET body = zeroblob(length(body)) WHERE id >> 40 = ?", (agent,))
        home.start()
        whole = dispatch(home.client, "hello", agent="keeper")["run_id"]
        until(home.client, whole, "succeeded")
        listed = {each["run_id"]: each["status"] for each in home.client.get("/dispatches").body}
        assert listed == {broken: "running", whole: "succeeded"}
        assert f"the end of the dispatched run {broken} is not known" in home.said.read_text()


@pytest.mark.spec("API-PKG-06", "API-PKG-07", "API-PKG-08")
def test_a_bundle_is_imported_and_its_agent_may_be_a_node(operator: HomeClient) -> None:
    done = operator.post("/packages", {"bundle": BOOKS, "on_conflict": "error"})
    assert (done.status, done.body["slug"]) == (200, "bookkeeper")
    origin = done.body["definition"]["metadata"]
    assert (origin["source_package"], origin["source_version"]) == ("books", "1.0")
    assert operator.get("/packages/bookkeeper").body == done.body
    twice = operator.post("/packages", {"bundle": BOOKS, "on_conflict": "error"})
    assert (twice.status, twice.code) == (409, "runtime_bundle_agent_exists")
    skipped = operator.post("/packages", {"bundle": BOOKS, "on_conflict": "skip"})
    assert skipped.body == done.body, "the one that is there stays"
    for body, code in (
        ({"bundle": BOOKS, "on_conflict": "maybe"}, "runtime_bundle_spec_invalid"),
        ({"bundle": {"package_slug": "books"}}, "runtime_bundle_unclaimed"),
        ({"bundle": {"agent": {"model": "scripted:demo"}}}, "runtime_bundle_missing_agent_slug"),
        ({"bundle": {"agent": {"agent_slug": "x", "workspace": "/"}}}, "runtime_bundle_register_failed"),
        ({"bundle": BOOKS, "source": "/etc/passwd"}, "invalid_request"),
    ):
        refused = operator.post("/packages", body)
        assert (refused.status, refused.code) == (422, code), refused
    assert [each["slug"] for each in operator.get("/packages").body] == ["bookkeeper"]
    graph = {
        "schema": "wakeful.workflow",
        "version": 1,
        "name": "books",
        "nodes": [{"id": "ask", "kind": "agent", "ref": "bookkeeper", "inputs": {"input": "close May"}}],
        "outputs": {"said": {"node": "ask"}},
    }
    assert operator.post("/workflows", {"agent": "clerk", "graph": graph}).status == 200
    run = operator.post("/workflows/books/runs", {"agent": "clerk"}).body
    ends = time.monotonic() + 60
    while run["status"] not in ("succeeded", "failed") and time.monotonic() < ends:
        run = operator.get(f"/workflow-runs/{run['run_id']}").body
    assert run["status"] == "succeeded" and run["result"]["outputs"]["said"], run
