"""Requests that cannot be met: each gets the status that says why, in the shape of every error, and changes nothing.

The routes come from the description that the daemon gives of itself, so that a new one is held to the same.
"""

import json
import re
from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome

WITHOUT_FIELDS = ("/health", "/metrics")
"""Asked by programs that add what they like."""
EMPTY = ("GET /threads/{thread_id}/messages",)
"""A thread begins with its first message: before that it has none."""


def routes(client: HomeClient) -> list[tuple[str, str, dict[str, Any]]]:
    described = client.get("/openapi.json").body["paths"]
    return [(method.upper(), path, said) for path, ways in described.items() for method, said in ways.items()]


def filled(path: str) -> str:
    return re.sub(r"{\w+}", "nothing-of-that-name", path)


def needed(said: dict[str, Any]) -> str:
    fields = [each for each in said.get("parameters", ()) if each["in"] == "query" and each.get("required")]
    return "&".join(f"{each['name']}={each['schema'].get('enum', ['x'])[0]}" for each in fields)


def example(said: dict[str, Any]) -> Any:
    content = said.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:  # none, or whatever a sender has
        return None
    return content["example"] if "example" in content else next(iter(content["examples"].values()))["value"]


def test_a_name_that_is_not_there_is_404_on_every_route(client: HomeClient) -> None:
    found = {}
    for method, path, said in routes(client):
        if "{" in path and f"{method} {path}" not in EMPTY:
            answer = client.ask(method, f"{filled(path)}?{needed(said)}", example(said))
            found[f"{method} {path}"] = (answer.status, answer.body["error"]["retryable"])
    assert len(found) > 60
    assert {route: answer for route, answer in found.items() if answer != (404, False)} == {}


def test_a_field_that_no_route_knows_is_refused_by_every_route(client: HomeClient) -> None:
    found = {}
    for method, path, said in routes(client):
        if path not in WITHOUT_FIELDS and not path.startswith("/callbacks/"):
            answer = client.ask(method, f"{filled(path)}?nonsense=1&{needed(said)}", example(said))
            found[f"{method} {path}"] = (answer.status, "nonsense" in answer.body["error"]["message"])
    assert {route: answer for route, answer in found.items() if answer != (422, True)} == {}


def test_a_key_that_stands_in_a_body_twice_is_refused_by_every_route(client: HomeClient) -> None:
    """Readers differ in which of the two they believe: what somebody looked at would not be what is done."""
    found = {}
    for method, path, said in routes(client):
        body = example(said)
        if body and not path.startswith("/callbacks/"):
            key, value = next(iter(body.items()))
            doubled = json.dumps(body)[:-1] + f", {json.dumps(key)}: {json.dumps(value)}}}"
            answer = client.ask(method, f"{filled(path)}?{needed(said)}", doubled.encode())
            error = answer.body["error"]
            found[f"{method} {path}"] = (answer.status, error["code"], f"{key!r}" in error["message"], error["hint"])
    assert len(found) > 30
    assert set(found.values()) == {(400, "duplicate_key", True, "Send it once.")}, found
    nested = client.post("/agents", b'{"definition": {"name": "twofold", "model": "scripted:demo", "name": "other"}}')
    assert (nested.status, nested.code) == (400, "duplicate_key")
    assert {client.get(f"/agents/{name}/status").status for name in ("twofold", "other")} == {404}


@pytest.mark.parametrize(
    "wrong",
    ["\ud800", "a\0b", 100_000 * "x", 2**70, [[]], float("nan")],
    ids=["half", "nul", "long", "huge", "list", "nan"],
)
def test_no_value_of_any_field_is_called_a_failure_of_the_server(client: HomeClient, wrong: Any) -> None:
    """Whatever somebody sends: it is taken, or it is their request that is wrong, in the shape of every error."""
    asked = {"agent_id": "clerk", "thread_id": "main"}
    found = {}
    for method, path, said in routes(client):
        where = re.sub(r"{(\w+)}", lambda name: asked.get(name[1], "nothing-of-that-name"), path)
        body = {} if path.startswith("/callbacks/") else example(said) or {}
        for field in body:
            answer = client.ask(method, f"{where}?{needed(said)}", {**body, field: wrong})
            found[f"{method} {path} {field}"] = answer.status if answer.status >= 500 or not answer.body else 0
            assert answer.status < 400 or answer.code, (method, path, field)
    assert len(found) > 50
    assert {route: status for route, status in found.items() if status} == {}
    client.post("/control/runtime/hold", {"control": "running"})
    client.post("/control/agents/clerk/resume")


def test_half_of_a_letter_is_text_only_where_somebody_speaks(client: HomeClient) -> None:
    """A program that cuts a text at a number of letters leaves such a half behind."""
    cut = client.post("/agents/clerk/messages", b'{"text": "hello \\ud83d", "thread": "cut"}')
    assert cut.status == 200, cut
    refused = client.post("/agents/clerk/messages", b'{"text": "hello", "thread": "cut \\ud83d"}')
    assert (refused.status, refused.code) == (422, "invalid_text")


def test_a_number_that_is_too_long_is_not_called_wrong_text(client: HomeClient) -> None:
    answer = client.post("/agents/clerk/messages", b'{"text": "hi", "priority": ' + b"9" * 5_000 + b"}")
    assert (answer.status, answer.body["error"]["message"]) == (400, "the body has a number with too many digits")


def test_a_number_that_no_store_holds_is_refused_by_every_route(client: HomeClient) -> None:
    found = {}
    for method, path, said in routes(client):
        for field in said.get("parameters", ()):
            kinds = [field["schema"], *field["schema"].get("anyOf", ())]
            if field["in"] == "query" and any(kind.get("type") == "integer" for kind in kinds):
                asked = f"{filled(path)}?{field['name']}={10**30}&{needed(said)}"
                found[f"{method} {path} {field['name']}"] = client.ask(method, asked, example(said)).status
    assert len(found) > 20
    assert {route: status for route, status in found.items() if status not in (400, 422)} == {}
    events = "/agents/clerk/events"
    for cursor in ("\xb2", "9" * 5_000, "1_0"):
        answer = client.get(events, headers={"last-event-id": cursor})
        assert (answer.status, answer.code) == (400, "invalid_cursor"), cursor[:9]


def test_a_wish_with_a_wrong_letter_is_not_taken_for_no_wish(client: HomeClient) -> None:
    before = client.get("/turns?agent=clerk&limit=1000").body
    answer = client.post("/agents/clerk/chat?cancel_on_disconect=true", {"text": "hello", "thread": "misspelt"})
    assert (answer.status, answer.code) == (422, "invalid_request")
    assert "cancel_on_disconnect" in answer.body["error"]["hint"]
    assert client.get("/turns?agent=clerk&limit=1000").body == before


@pytest.mark.parametrize("path", ["/agents/clerk/events", "/turns/{turn}/events", "/turns/{turn}/chat"])
def test_a_place_that_the_log_has_not_reached_is_gone_and_not_waited_for(client: HomeClient, path: str) -> None:
    """A store that was restored from a backup counts on from where it was: a reader with a later number would miss
    what comes until then."""
    sent = client.post("/agents/clerk/messages", {"text": "hello", "thread": f"ahead-{path.count('turn')}-{len(path)}"})
    turn = client.until_ended(sent.body)
    path = path.replace("{turn}", turn["turn_id"])
    head = client.get("/agents/clerk/events?limit=1000").body[-1]["envelope"]["event_seq"]
    for headers in ({}, {"accept": "text/event-stream", "last-event-id": str(head + 1_000)}):
        answer = client.get(f"{path}?after={head + 1_000}", headers=headers)
        assert (answer.status, answer.code) == (410, "cursor_gone"), answer
        assert "after=0" in answer.body["error"]["hint"]


@pytest.mark.parametrize("path", ["messages", "chat"])
def test_a_message_without_words_begins_no_turn(client: HomeClient, path: str) -> None:
    before = client.get("/turns?agent=clerk&limit=1000").body
    for text in ("", " \n"):
        answer = client.post(f"/agents/clerk/{path}", {"text": text, "thread": "silent"})
        assert (answer.status, answer.body["error"]["message"]) == (422, "the message is empty")
    assert client.get("/turns?agent=clerk&limit=1000").body == before


def test_a_name_that_is_taken_and_an_agent_of_a_program_are_conflicts(client: HomeClient) -> None:
    definition = {"name": "taken", "model": "scripted:demo"}
    assert client.post("/agents", {"definition": definition}).status == 200
    again = client.post("/agents", {"definition": definition})
    assert (again.status, again.code) == (409, "agent_name_taken")
    changed = client.ask("PATCH", "/agents/clerk", {"changes": {"instructions": "other"}})
    assert (changed.status, changed.code) == (409, "defined_in_code")
    deleted = client.ask("DELETE", "/agents/clerk")
    assert (deleted.status, deleted.code) == (409, "defined_in_code")


def test_what_is_wrong_is_said_in_words_for_its_sender(client: HomeClient) -> None:
    def said(method: str, path: str, body: Any = None) -> str:
        answer = client.ask(method, path, body)
        assert answer.status in (405, 422), answer
        return str(answer.body["error"]["message"])

    assert said("POST", "/agents/clerk/messages", {"text": "hi", "txt": 1}) == "there is no field 'txt' here"
    assert said("POST", "/agents/clerk/messages", {}) == "text is missing"
    assert said("POST", "/agents/clerk/messages", []) == "the body is not a JSON object"
    assert said("POST", "/agents/clerk/messages") == "the body is missing"
    assert said("GET", "/agents?nonsense=1") == "there is no field 'nonsense' here"
    assert said("PUT", "/agents/list", {}) == "PUT /agents/list is not allowed"
    assert client.ask("PUT", "/store/stats", {}).headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/agents", "GET, HEAD, POST"),
        ("/agents/clerk", "DELETE, GET, HEAD, PATCH"),
        ("/agents/clerk/chat", "POST"),
        ("/callbacks/wake/x", "POST"),
        ("/health", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_there_names_all_that_are(client: HomeClient, path: str, methods: str) -> None:
    for method in ("PUT", "OPTIONS", "TRACE"):
        answer = client.ask(method, path)
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", methods)


@pytest.mark.parametrize(
    "path", ["/health", "/agents", "/agents/clerk/state", "/feed", "/agents/nobody", "/openapi.json"]
)
def test_head_is_a_get_without_its_body(client: HomeClient, stranger: HomeClient, path: str) -> None:
    """Programs that look whether a server is there ask so. One that accepts streams gets none."""
    asked = client.ask("HEAD", path, headers={"accept": "text/event-stream"})
    got = client.get(path)
    assert (asked.status, asked.body) == (got.status, "")
    assert asked.headers["content-type"] == got.headers["content-type"]
    assert asked.headers.get("link") == got.headers.get("link")
    assert stranger.ask("HEAD", path).status == (200 if path == "/health" else 401)


def test_the_log_of_the_daemon_has_no_traceback_of_it(home: ServedHome) -> None:
    assert "Traceback" not in home.said.read_text()
