"""Idempotency keys over HTTP: the same request is carried out once, whoever sends it again and however often."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.surfaces.served_home import Answer, HomeClient, ServedHome
from kit.surfaces.served_tokens import make_token
from wakeful.service.operations.routes import ROUTES

QUEUE = "/control/agents/keeper/work-items"


def with_key(client: HomeClient, key: str, path: str, body: object = None, method: str = "POST") -> Answer:
    return client.ask(method, path, body, headers={"Idempotency-Key": key})


def queued(client: HomeClient, objective: str) -> int:
    return len([each for each in client.get("/agents/keeper/work-items").body if each["objective"] == objective])


@pytest.fixture(autouse=True, scope="module")
def paused(home: ServedHome) -> None:
    home.client.post("/control/agents/keeper/pause", {"reason": "its queue is looked at"})


def test_the_same_request_gets_the_same_answer_and_is_carried_out_once(client: HomeClient) -> None:
    first = with_key(client, "w1", QUEUE, {"objective": "Sweep."})
    again = with_key(client, "w1", QUEUE, b'{  "objective" : "Sweep." }')
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    assert queued(client, "Sweep.") == 1
    without = client.post(QUEUE, {"objective": "Sweep."})
    assert without.body["id"] != first.body["id"], "without a key it is another one"


def test_another_request_with_the_same_key_is_told_both_digests(client: HomeClient) -> None:
    with_key(client, "w2", QUEUE, {"objective": "Mop."})
    for path, body in ((QUEUE, {"objective": "Dust."}), ("/control/agents/clerk/work-items", {"objective": "Mop."})):
        other = with_key(client, "w2", path, body)
        assert (other.status, other.code) == (409, "key_reused")
        digests = re.findall(r"POST (\S+) (sha256:[0-9a-f]{64})", other.body["error"]["message"])
        assert [place for place, _ in digests] == [QUEUE, path]
        assert digests[0][1] != digests[1][1]
    assert queued(client, "Dust.") == 0


@pytest.mark.parametrize("path", ["/agents/clerk/messages", "/agents/clerk/chat"])
@pytest.mark.parametrize("other", [{"thread": "elsewhere"}, {"priority": "next"}, {"text": "bye"}])
def test_another_message_with_the_same_key_is_told_both_digests(
    client: HomeClient, path: str, other: dict[str, str]
) -> None:
    """Also where it has the same words: it would be believed to be in another thread, or to be more urgent."""
    said = {"text": "hello", "thread": "keyed", "key": "one-message"}
    first = client.post("/agents/clerk/messages", said)
    assert first.status == 200
    refused = client.post(path, {**said, **other})
    assert (refused.status, refused.code) == (409, "key_reused"), refused
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", refused.body["error"]["message"]))) == 2
    assert client.post("/agents/clerk/messages", said).body["message_id"] == first.body["message_id"]
    assert [each["thread"] for each in client.get("/threads?agent=clerk").body if each["thread"] == "elsewhere"] == []


def test_a_key_is_its_callers_own(home: ServedHome, client: HomeClient, operator: HomeClient) -> None:
    mine, theirs = (with_key(each, "w3", QUEUE, {"objective": "Rake."}) for each in (client, operator))
    assert mine.body["id"] != theirs.body["id"]
    assert queued(client, "Rake.") == 2


def test_requests_at_once_wait_for_the_first(client: HomeClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda _: with_key(client, "w4", QUEUE, {"objective": "Weed."}), range(8))]
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["id"] for answer in answers}) == 1
    assert queued(client, "Weed.") == 1


def test_a_refused_request_leaves_its_key_free(client: HomeClient) -> None:
    body = {"definition": {"name": "porter", "model": "scripted:demo", "work_items": True}}
    assert client.post("/agents", body).status == 200
    client.post("/control/agents/porter/stop")
    refused = with_key(client, "w5", "/control/agents/porter/work-items", {"objective": "Wash."})
    assert (refused.status, refused.code) == (409, "agent_stopped")
    assert "wakeful agent resume porter" in refused.body["error"]["hint"]
    client.post("/control/agents/porter/resume")
    done = with_key(client, "w5", "/control/agents/porter/work-items", {"objective": "Wash."})
    assert (done.status, done.body["objective"]) == (200, "Wash.")


def test_a_request_that_is_no_request_takes_no_key(client: HomeClient) -> None:
    assert with_key(client, "w6", QUEUE, {"objective": 7}).status == 422
    assert with_key(client, "w6", QUEUE, {"objective": "Paint."}).status == 200
    for key in ("two words", "k" * 201, ""):
        assert with_key(client, key, QUEUE, {"objective": "Never."}).status == 422, key
    assert queued(client, "Never.") == 0


def test_the_address_of_a_trigger_is_not_kept_with_its_key(home: ServedHome, client: HomeClient) -> None:
    trigger = client.get("/triggers?agent=clerk").body[0]["external_trigger_id"]
    first, again = (with_key(client, "w7", f"/control/triggers/{trigger}/url", {}) for _ in range(2))
    assert first.body == again.body and first.body["trigger_url"]
    secret = first.body["trigger_url"].rpartition("/")[2].encode()
    assert len(secret) > 20
    stored = [path for path in Path(home.folder).rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert stored == []


def test_answers_outlive_the_process(tmp_path: Path) -> None:
    home = ServedHome(tmp_path / "home").start()
    try:
        client = home.client
        first = with_key(client, "w8", QUEUE, {"objective": "Sow."})
        assert first.status == 200
        shut = with_key(client, "end", "/control/runtime/shutdown")
        assert shut.status == 200 and home.process is not None
        home.process.wait(30)
        home.start()
        again = with_key(home.client, "w8", QUEUE, {"objective": "Sow."})
        assert (again.body, again.headers["idempotency-replayed"]) == (first.body, "true")
        assert with_key(home.client, "end", "/control/runtime/shutdown").body == shut.body, "it is not ended again"
        assert home.client.get("/health").status == 200
    finally:
        home.end()


def test_every_route_that_changes_something_takes_a_key(home: ServedHome, operator: HomeClient) -> None:
    described = operator.get("/openapi.json").body["paths"]
    for route in ROUTES:
        names = [each["name"] for each in described[route.path][route.method.lower()].get("parameters", ())]
        assert ("Idempotency-Key" in names) == (route.method != "GET"), route.path


def test_who_may_not_change_anything_learns_nothing_by_a_key(home: ServedHome, client: HomeClient) -> None:
    observer = HomeClient(home.port, make_token(home.folder, "looker", ("observe",)))
    with_key(client, "w9", QUEUE, {"objective": "Hoe."})
    assert with_key(observer, "w9", QUEUE, {"objective": "Hoe."}).code == "not_entitled"
