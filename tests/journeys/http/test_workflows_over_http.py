"""Workflows over HTTP: saved, run by the runtime of the daemon, followed by the id of the run, stopped, and taken up
after a kill."""

import contextlib
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import Answer, HomeClient, ServedHome, served

SLOW = {"id": "slow", "kind": "tool", "ref": "work_slowly", "inputs": {"seconds": 0}}
PAY = {"id": "pay", "kind": "tool", "ref": "refund", "inputs": {"cents": 5}}
ASK = {"id": "ask", "kind": "agent", "ref": "keeper"}


def graph(name: str, nodes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    outputs = {node["id"]: {"node": node["id"]} for node in nodes}
    return {"schema": "wakeful.workflow", "version": 1, "name": name, "nodes": nodes, "outputs": outputs, **more}


ASKING = {
    "inputs": {"prompt": {"type": "string"}},
    "required_inputs": ["prompt"],
    "edges": [{"source": "$input", "source_output": "prompt", "target": "ask", "target_input": "input"}],
}


def save(client: HomeClient, name: str, nodes: list[dict[str, Any]], **more: Any) -> Answer:
    return client.post("/workflows", {"agent": "clerk", "graph": graph(name, nodes, **more)})


def start(client: HomeClient, name: str, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/workflows/{name}/runs", {"agent": "clerk", **more})
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.body
    return found


def until(client: HomeClient, run: dict[str, Any], *statuses: str) -> dict[str, Any]:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        found: dict[str, Any] = client.get(f"/workflow-runs/{run['run_id']}").body
        if found["status"] in statuses:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


@pytest.mark.spec("LOOP-WF-06", "LOOP-WF-13", "LOOP-WF-16")
def test_a_workflow_is_saved_and_run_by_the_runtime(operator: HomeClient, observer: HomeClient) -> None:
    saved = save(operator, "report", [SLOW, ASK], **ASKING)
    assert (saved.status, saved.body["revision"]) == (200, 1)
    run = start(operator, "report", prompt="the numbers")
    assert run["workflow_id"] == saved.body["workflow_id"]
    done = until(operator, run, "succeeded", "failed")
    assert done["result"]["outputs"] == {"slow": "done", "ask": "you said: the numbers"}
    assert done["message"] == "" and done["thread"].startswith("workflow-report-")
    assert observer.get(f"/workflow-runs/{run['run_id']}").body == done
    assert operator.get(f"/turns/{done['turn_id']}").body["state"] == "completed"
    assert observer.post("/workflows/report/runs", {"agent": "clerk", "prompt": "x"}).status == 403


@pytest.mark.spec("LOOP-WF-16")
def test_a_run_that_cannot_be_is_refused_before_there_is_one(operator: HomeClient) -> None:
    save(operator, "strict", [ASK], **ASKING)
    before = operator.get("/turns?agent=clerk").body
    cases: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
        ("strict", {}, (422, "invalid_workflow_input")),
        ("strict", {"inputs": {"prompt": 7}}, (422, "invalid_workflow_input")),
        ("strict", {"prompt": "x", "agent": "nobody"}, (404, "agent_not_found")),
        ("strict", {"prompt": "x", "revision": 9}, (404, "workflow_not_found")),
        ("strict", {"prompt": "x", "color": "red"}, (422, "invalid_request")),
        ("nothing", {}, (404, "workflow_not_found")),
    ]
    for name, more, expected in cases:
        answer = operator.post(f"/workflows/{name}/runs", {"agent": "clerk", **more})
        assert (answer.status, answer.code) == expected, answer
    unknown = save(operator, "broken", [{"id": "x", "kind": "tool", "ref": "nothing_like_it"}])
    assert unknown.status == 422 and "unknown_ref" in str(unknown.body["error"])
    assert operator.post("/workflows", {"agent": "clerk", "graph": {"nodes": 3}}).status == 422
    assert operator.get("/workflow-runs/msg_nothing").status == 404
    sent = operator.post("/agents/keeper/messages", {"text": "hello"}).body["message_id"]
    assert operator.get(f"/workflow-runs/{sent}").status == 404, "a message that runs no workflow is no run"
    assert operator.get("/turns?agent=clerk").body == before


def test_the_same_key_is_the_same_run(operator: HomeClient) -> None:
    save(operator, "keyed", [ASK], **ASKING)
    first = start(operator, "keyed", prompt="one", key="k1")
    again = operator.post(
        "/workflows/keyed/runs", {"agent": "clerk", "prompt": "one"}, headers={"Idempotency-Key": "k1"}
    )
    assert (again.status, again.body["run_id"], again.body["thread"]) == (200, first["run_id"], first["thread"])
    other = operator.post("/workflows/keyed/runs", {"agent": "clerk", "prompt": "two", "key": "k1"})
    assert (other.status, other.code) == (409, "key_reused")
    until(operator, first, "succeeded")


def test_a_run_waits_for_a_person_and_goes_on_with_the_answer(operator: HomeClient) -> None:
    save(operator, "paying", [PAY])
    run = start(operator, "paying")
    waiting = until(operator, run, "waiting")
    assert waiting["message"] and waiting["result"] is None
    [approval] = operator.get(f"/approvals?status=pending&run_id={waiting['turn_id']}").body
    assert operator.post(f"/approvals/{approval['approval_id']}/decision", {"decision": "approved"}).status == 200
    assert until(operator, run, "succeeded")["result"]["outputs"] == {"pay": "refunded 5"}


def test_a_run_is_cancelled_before_it_began_and_while_it_waits(operator: HomeClient) -> None:
    save(operator, "stoppable", [PAY])
    waits = start(operator, "stoppable", thread="stops")
    until(operator, waits, "waiting")
    behind = start(operator, "stoppable", thread="stops")
    assert behind["status"] == "queued"
    for run in (behind, waits):
        where = f"/workflow-runs/{run['run_id']}"
        assert operator.post(f"{where}/cancel").status == 200
        ended = until(operator, run, "cancelled")
        assert ended["message"]
        assert operator.post(f"{where}/cancel").body == ended, "one that is over stays as it is"
    assert operator.get(f"/workflow-runs/{behind['run_id']}").body["turn_id"] is None


def test_runs_are_listed_page_by_page_also_beside_one_whose_thread_was_deleted(operator: HomeClient) -> None:
    save(operator, "listed", [SLOW])
    runs = [start(operator, "listed", thread=name) for name in ("l1", "l2", "l3")]
    done = [until(operator, run, "succeeded") for run in runs]
    before = operator.get("/workflow-runs").body
    assert before[:3] == [{**each, "result": None} for each in reversed(done)]
    assert operator.ask("DELETE", "/agents/clerk/threads/l2").status == 200
    assert operator.get("/workflow-runs").body == before
    found, path = [], "/workflow-runs?limit=2"
    while path:
        page = operator.get(path)
        found += page.body
        path = "/workflow-runs" + link[1] if (link := re.match("<(.+)>", page.headers.get("link", ""))) else ""
    assert found == before, "each once, in the same order"


def test_a_run_that_cannot_be_read_any_more_hides_no_other(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        assert save(home.client, "one", [SLOW]).status == 200
        assert home.client.post("/workflows", {"agent": "keeper", "graph": graph("two", [ASK], **ASKING)}).status == 200
        whole = start(home.client, "one")
        broken = home.client.post("/workflows/two/runs", {"agent": "keeper", "prompt": "x"}).body
        before = [until(home.client, run, "succeeded") for run in (broken, whole)]
        home.kill()
        with contextlib.closing(sqlite3.connect(home.folder / "wakeful.db")) as store, store:  # as a failing disk would
            (agent,) = store.execute("SELECT id FROM agents WHERE name = 'keeper'").fetchone()
            store.execute("UPDATE appends SET body = zeroblob(length(body)) WHERE id >> 40 = ?", (agent,))
        home.start()
        listed = home.client.get("/workflow-runs")
        assert listed.status == 200, listed
        assert listed.body[1] == {**before[1], "result": None}
        assert (listed.body[0]["run_id"], listed.body[0]["agent"]) == (broken["run_id"], "keeper")
        assert "not what was written" in listed.body[0]["message"]


def test_a_stopped_agent_runs_no_workflow_and_says_how_to_resume_it(operator: HomeClient) -> None:
    save(operator, "idle", [SLOW])
    operator.post("/control/agents/clerk/stop", {})
    refused = operator.post("/workflows/idle/runs", {"agent": "clerk"})
    assert (refused.status, refused.code) == (409, "agent_stopped")
    assert "wakeful agent resume clerk" in refused.body["error"]["hint"]
    operator.post("/control/agents/clerk/resume", {})
    until(operator, start(operator, "idle"), "succeeded")


def test_a_killed_daemon_goes_on_with_its_runs(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        long = {"id": "slow", "kind": "tool", "ref": "work_until", "inputs": {"file": "go"}}
        then = {"edges": [{"source": "slow", "target": "ask", "target_input": "input"}]}
        assert save(home.client, "long", [long, ASK], **then).status == 200
        running, queued = (start(home.client, "long", thread="one") for _ in range(2))
        under_way = until(home.client, running, "running")
        home.kill()
        (home.folder / "go").touch()
        restarted: ServedHome = home.start()
        for run in (running, queued):
            done = until(restarted.client, run, "succeeded", "failed")
            assert done["result"]["outputs"] == {"slow": "done", "ask": "you said: done"}, done
        assert restarted.client.get(f"/workflow-runs/{running['run_id']}").body["turn_id"] == under_way["turn_id"]
