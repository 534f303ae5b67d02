"""Agents over HTTP, through a real process: listed, asked about, sent messages, paused, given work."""

import re

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome


def send(client: HomeClient, text: str, *, agent: str = "clerk", thread: str = "main") -> dict[str, object]:
    sent = client.post(f"/agents/{agent}/messages", {"text": text, "thread": thread})
    assert sent.status == 200, sent
    found: dict[str, object] = sent.body
    return found


@pytest.mark.spec("HOL-INSPECT-01", "HOL-INSPECT-02", "HOL-INSPECT-03", "HOL-INSPECT-04")
def test_the_list_is_small_and_the_other_two_say_more(client: HomeClient) -> None:
    entries = client.get("/agents/list").body
    assert [each["identity"]["agent_id"] for each in entries[:2]] == ["clerk", "keeper"]
    heavy = {"skills", "active_children", "children", "waits", "triggers", "notices", "briefs", "loaded_agents_md"}
    assert not heavy & set(entries[0]), "the list is for choosing an agent"
    assert set(entries[0].get("active_workspace") or {}) <= {"workspace_id", "workspace_anchor"}
    status, state = client.get("/agents/clerk/status").body, client.get("/agents/clerk/state").body
    assert len({frozenset(entries[0]), frozenset(status), frozenset(state)}) == 3, "three routes, three answers"


@pytest.mark.spec("HOL-INSPECT-05", "HOL-INSPECT-06", "HOL-INSPECT-07", "HOL-INSPECT-08")
def test_a_snapshot_holds_the_summary_and_where_events_go_on(client: HomeClient) -> None:
    send(client, "hello", thread="snapshot")
    summary = client.get("/agents/clerk/status").body
    assert {"state", "model", "closure", "identity", "active_workspace"} <= set(summary)
    state = client.get("/agents/clerk/state").body
    assert set(state["agent"]) == set(summary), "a client that lost its place recovers with one request"
    newest = client.get(f"/agents/clerk/events?after={state['event_seq'] - 1}&limit=1").body
    assert newest[0]["envelope"]["event_seq"] == state["event_seq"]
    assert set(state) - {"agent", "event_seq"} == {
        "workspaces", "work_items", "waits", "timers", "triggers", "approvals", "briefs", "notices",
    }  # fmt: skip


@pytest.mark.spec("HOL-INSPECT-11")
def test_the_bare_routes_are_the_default_agents(client: HomeClient) -> None:
    assert client.get("/status").code == client.get("/state").code == "agent_not_found"
    made = client.post("/agents", {"definition": {"name": "main", "model": "scripted:demo"}})
    assert made.status == 200, made
    assert client.get("/status").body["agent"] == "main"
    assert client.get("/state").body["agent"]["agent"] == "main"


def test_a_message_is_answered_and_the_same_key_is_one_message(client: HomeClient) -> None:
    first = client.post("/agents/clerk/messages", {"text": "again", "thread": "keyed", "key": "k1"})
    again = client.post("/agents/clerk/messages", {"text": "again", "thread": "keyed", "key": "k1"})
    assert first.body["message_id"] == again.body["message_id"]
    other = client.post("/agents/clerk/messages", {"text": "something else", "thread": "keyed", "key": "k1"})
    assert (other.status, other.code) == (409, "key_reused")
    digests = re.findall(r"\(([\w:]{20,})\)", other.body["error"]["message"])
    assert len(set(digests)) == 2, "both digests are shown"
    header = {"Idempotency-Key": "k1"}
    assert (
        client.post("/agents/clerk/messages", {"text": "again", "thread": "keyed"}, headers=header).body == again.body
    )
    both = client.post("/agents/clerk/messages", {"text": "again", "key": "k2"}, headers=header)
    assert (both.status, both.code) == (422, "invalid_key")


@pytest.mark.spec("HOL-WENQ-01", "HOL-WENQ-02", "HOL-WENQ-04", "HOL-WENQ-05")
def test_work_is_put_into_the_queue_without_a_message(operator: HomeClient) -> None:
    assert operator.post("/control/agents/keeper/pause", {}).body["control"] == "paused"
    made = operator.post("/control/agents/keeper/work-items", {"objective": "Tidy up."})
    assert (made.status, made.body["state"], made.body["objective"]) == (200, "open", "Tidy up.")
    listed = operator.get("/agents/keeper/work-items").body
    assert made.body["id"] in [each["id"] for each in listed], "the store of create_work_item"
    events = operator.get("/agents/keeper/events?limit=1000").body
    about = [event for event in events if made.body["id"] in str(event["payload"])]
    kinds = [event["envelope"]["kind"] for event in about]
    assert "message.admitted" not in kinds, "no message came first"
    enqueued = about[kinds.index("work_item.enqueued")]
    assert enqueued["payload"]["enqueued_by"] == "token:operator", "audited by who was authenticated"
    assert "delivery_surface" not in enqueued["payload"]


@pytest.mark.spec("HOL-WENQ-03", "HOL-WENQ-06")
def test_an_idle_agent_is_woken_for_its_work_and_keeps_its_focus(operator: HomeClient) -> None:
    before = operator.get("/agents/keeper/status").body["state"]["current_work_item_id"]
    operator.post("/control/agents/keeper/work-items", {"objective": "Sweep."})
    assert operator.get("/agents/keeper/status").body["state"]["current_work_item_id"] == before
    assert operator.post("/control/agents/keeper/resume").body["control"] == "running"
    with operator.stream("/agents/keeper/events") as frames:
        ticks = [frame for frame in frames.until("message.admitted") if frame.event == "message.admitted"]
    assert ticks[-1].data["payload"]["message_kind"] == "system_tick"


@pytest.mark.spec("STD-CAT-13")
def test_tools_of_an_agent_are_answered_from_the_log_or_worked_out(client: HomeClient) -> None:
    fresh = client.get("/agents/keeper/tools?thread=never-used").body
    assert fresh["turn_id"] is None
    assert fresh["catalog"]["resolved_for"] == "query"
    message = send(client, "hello", thread="tools")
    client.until_ended(message)
    known = client.get("/agents/clerk/tools").body
    assert known["turn_id"] is not None
    assert {"refund", "work_slowly"} <= {entry["tool_name"].rpartition("/")[2] for entry in known["catalog"]["entries"]}


def test_the_home_is_no_workspace_and_neither_is_what_holds_it_or_is_of_the_runtime(
    client: HomeClient, home: ServedHome
) -> None:
    made = {"name": "outside", "model": "scripted:demo"}
    assert client.post("/agents", {"definition": made}).status == 200
    before = client.get("/agents/outside/workspaces").body
    (home.folder / "agents").mkdir(exist_ok=True)
    for folder, told in (
        (home.folder, "is the home of wakeful"),
        (home.folder.parent, "holds the home of wakeful"),
        (home.folder / "agents", "is a folder of the runtime"),
    ):
        for refused in (
            client.post("/agents/outside/workspaces", {"path": str(folder)}),
            client.ask("PUT", "/agents/outside/workspace", {"path": str(folder)}),
            client.post("/agents", {"definition": {**made, "name": "inside", "workspace": str(folder)}}),
        ):
            assert refused.status == 422 and told in refused.body["error"]["message"], refused
            assert "folder outside of the home" in refused.body["error"]["hint"]
    assert client.get("/agents/outside/workspaces").body == before
    assert client.get("/agents/inside").status == 404


def test_everything_that_a_stopped_agent_refuses_is_counted(client: HomeClient) -> None:
    made = {"name": "refuser", "model": "scripted:demo", "work_items": True}
    assert client.post("/agents", {"definition": made}).status == 200
    assert client.post("/control/agents/refuser/stop").status == 200
    for path, body in (
        ("/agents/refuser/messages", {"text": "hello"}),
        ("/agents/refuser/chat", {"text": "hello"}),
        ("/control/agents/refuser/work-items", {"objective": "Mend it."}),
    ):
        answer = client.post(path, body)
        assert (answer.status, answer.code) == (409, "agent_stopped"), answer
        assert "wakeful agent resume refuser" in answer.body["error"]["hint"]
    (listed,) = [each for each in client.get("/agents").body if each["agent"] == "refuser"]
    assert listed["refused"] == client.get("/agents/refuser").body["refused"] == {"agent_stopped": 3}
