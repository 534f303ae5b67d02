"""Over HTTP: bytes of artifacts, skills, what was handed on, what came in bundles, and whether anything is wrong."""

import os
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome
from kit.surfaces.served_tokens import make_token
from wakeful.store.sqlite import SqliteStore


def test_the_bytes_of_an_artifact_are_a_file_and_never_a_page(client: HomeClient, stranger: HomeClient) -> None:
    sent = client.post("/agents/clerk/messages", {"text": "log 9000", "thread": "artifacts"})
    turn = client.until_ended(sent.body)["turn_id"]
    (artifact,) = client.get(f"/turns/{turn}/artifacts").body
    answer = client.get(f"/artifacts/{artifact['artifact_id']}")
    assert answer.status == 200
    assert answer.body.startswith("<script>line 0</script>\n") and len(answer.body) == artifact["size_bytes"]
    assert answer.headers["content-type"] == "text/plain; charset=utf-8", "whatever it looks like"
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get(f"/artifacts/{artifact['artifact_id'][7:20]}?turn={turn}").body == answer.body
    missing = client.get("/artifacts/sha256:0000000000")
    assert (missing.status, missing.code) == (404, "artifact_not_found")
    assert stranger.get(f"/artifacts/{artifact['artifact_id']}").code == "token_missing"


def test_secrets_in_an_artifact_need_their_own_scope(home: ServedHome, operator: HomeClient) -> None:
    refused = operator.get("/artifacts/sha256:00000000?reveal=true")
    assert (refused.status, refused.code) == (403, "not_entitled")
    revealer = HomeClient(home.port, make_token(home.folder, "revealer", ("observe", "reveal")))
    assert revealer.get("/artifacts/sha256:00000000?reveal=true").status == 404


def test_the_skills_of_an_agent_are_listed_and_shown(client: HomeClient, folder: Path) -> None:
    place = folder / "shelf" / "invoices"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\nname: invoices\ndescription: How invoices are written.\n---\nBegin with 1.\n")
    definition = {"name": "skilled", "model": "scripted:demo", "skills": [str(place.parent)]}
    assert client.post("/agents", {"definition": definition}).status == 200
    (skill,) = [each for each in client.get("/agents/skilled/skills").body if each["name"] == "invoices"]
    assert skill["description"] == "How invoices are written."
    shown = client.get("/agents/skilled/skills/invoices").body
    assert shown["text"].endswith("Begin with 1.\n") and shown["digest"] == skill["digest"]
    missing = client.get("/agents/skilled/skills/invoice")
    assert missing.status == 422 and "invoices" in missing.body["error"]["hint"]
    assert client.get("/agents/clerk/skills").body == []


def test_no_skill_that_is_left_in_a_workspace_keeps_the_others_from_being_listed(
    client: HomeClient, folder: Path
) -> None:
    root = folder / "shared/.agents/skills"
    left = {b"a": "when: 2001-99-99", b"b": f"name: {'[' * 1_000}", b"c": 'name: "\\uD800"', b"\xff": "name: none"}
    for name, text in {**left, **{b"s%d" % number: f"name: s{number}" for number in range(50)}}.items():
        place = root / os.fsdecode(name)
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(f"---\n{text}\n---\n")
    definition = {"name": "sharer", "model": "scripted:demo", "workspace": str(folder / "shared")}
    assert client.post("/agents", {"definition": definition}).status == 200
    listed = client.get("/agents/sharer/skills")
    assert listed.status == 200
    assert {"a", "b", "\ufffd", "s0"} < {each["name"] for each in listed.body}
    assert client.get("/agents/sharer/skills/a").body["text"].startswith("---\nwhen: 2001-99-99")


def test_one_agent_is_told_in_full(client: HomeClient) -> None:
    found = client.get("/agents/clerk")
    assert found.status == 200 and found.body["agent"] == "clerk"
    assert client.get("/agents/nobody").code == "agent_not_found"


async def test_what_was_handed_on_and_what_came_in_bundles_is_there(client: HomeClient, folder: Path) -> None:
    store = await SqliteStore.open(folder / "wakeful.db")
    for number in range(3):
        record = '{"input": {"token": "secret"}, "result": {"output": "ok"}}'
        name, at = f"run_{number}", 1_000_000 * number
        await store.dispatches.claim(name, "target", "s1", "running", record, at=at, event="started", payload="{}")
    await store.imported_agents.put("helper", '{"name": "helper"}', at=5_000_000, replace=False)
    await store.close()
    listed = client.get("/dispatches?limit=2")
    assert [each["run_id"] for each in listed.body] == ["run_2", "run_1"]
    assert 'rel="next"' in listed.headers["link"]
    assert client.get("/dispatches?kind=package").body == []
    shown = client.get("/dispatches/run_1").body
    assert shown["record"]["result"] == {"output": "ok"} and shown["record"]["input"] != {"token": "secret"}
    assert [line["event"] for line in shown["log"]] == ["started"]
    assert client.get("/dispatches/run_9").status == 404
    (bundle,) = client.get("/packages").body
    assert bundle == {"slug": "helper", "imported_at": 5.0, "definition": {"name": "helper"}}
    assert client.get("/packages/helper").body == bundle
    assert client.get("/packages/other").status == 404


def test_the_doctor_says_whether_anything_is_wrong(client: HomeClient) -> None:
    report = client.get("/doctor").body
    assert report["store"]["exists"] and report["store_healthy"] is True
    assert report["damage"] == []


@pytest.mark.parametrize("path", ["/artifacts/x", "/doctor", "/packages", "/dispatches", "/agents/clerk/skills"])
def test_they_need_a_token(stranger: HomeClient, path: str) -> None:
    assert stranger.get(path).code == "token_missing"
