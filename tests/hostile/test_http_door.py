"""The door of the HTTP interface: no token, a foreign host, another site's page, too much, too deep, too slow.

Each is refused without effect. The routes come from the table of operations.
"""

import json
import os
import re
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token
from wakeful.service.operations.pages import PAGES
from wakeful.service.operations.routes import ROUTES
from wakeful.settings.access_tokens import FILE, remove_token
from wakeful.surfaces.http.openapi_document import BODIES
from wakeful.surfaces.http.operation_routes import ELSEWHERE

NAME = re.compile(r"{\w+}")
PATHS = sorted({(route.method, NAME.sub("x", route.path)) for route in ROUTES})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def operator(home: ServedHome) -> HomeClient:
    return HomeClient(home.port, make_token(home.folder, "operator", ("operate",)))


@pytest.fixture
def state(operator: HomeClient) -> Iterator[None]:
    """Nothing is written by a test that is refused everywhere."""
    before = operator.get("/agents/clerk/state").body["event_seq"], len(operator.get("/agents").body)
    yield
    assert (operator.get("/agents/clerk/state").body["event_seq"], len(operator.get("/agents").body)) == before


def test_every_route_refuses_callers_without_a_good_token(home: ServedHome, state: None) -> None:
    for method, path in PATHS:
        body = {} if method != "GET" else None
        assert HomeClient(home.port).ask(method, path, body).code == "token_missing", path
        assert HomeClient(home.port, "wk_wrong").ask(method, path, body).code == "token_refused", path


@pytest.mark.parametrize("said", ["local", "local, local", "local:0", "127.0.0.1", "unix:"])
def test_no_header_makes_a_caller_local(home: ServedHome, state: None, said: str) -> None:
    for name in ("x-forwarded-for", "x-real-ip", "forwarded", "x-forwarded-host"):
        claims = {name: f"for={said}" if name == "forwarded" else said, "x-forwarded-proto": "https"}
        assert HomeClient(home.port).get("/agents", headers=claims).code == "token_missing", name
        sent = HomeClient(home.port).post("/agents/clerk/messages", {"text": "x"}, headers=claims)
        assert sent.code == "token_missing", name


def test_refused_requests_are_counted_for_the_operator(home: ServedHome) -> None:
    before = home.client.get("/control/runtime/status").body["refused"].get("token_missing", 0)
    HomeClient(home.port).get("/agents")
    assert home.client.get("/control/runtime/status").body["refused"]["token_missing"] == before + 1


def test_a_token_that_only_looks_changes_nothing_by_any_route(home: ServedHome, state: None) -> None:
    observer = HomeClient(home.port, make_token(home.folder, "observer", ("observe",)))
    for route in ROUTES:
        path = NAME.sub("clerk", route.path)
        answer = observer.ask(route.method, path, {} if route.method != "GET" else None)
        if route.scope == "operate":
            assert (answer.status, answer.code) == (403, "not_entitled"), path
        else:
            assert answer.status != 403, path


WRONG: tuple[object, ...] = ([[]], {"a": [[]]})
"""No field takes these, or it is one of something that is not there."""


def test_bodies_with_a_field_too_many_or_of_another_type_change_nothing(operator: HomeClient, state: None) -> None:
    for (method, path), body in BODIES.items():
        where = NAME.sub("nothing-of-that-name", path)
        for wrong in ({**body, "authority": "operator"}, [body], "text", {**body, "by": "me"}):
            answer = operator.ask(method, where, wrong)
            assert (answer.status, answer.code) == (422, "invalid_request"), (path, wrong, answer)
            assert answer.body["error"]["message"] and answer.body["error"]["retryable"] is False
        for field in body:
            refused = [operator.ask(method, where, {**body, field: wrong}) for wrong in WRONG]
            assert all(400 <= answer.status < 500 for answer in refused), (path, field)
            assert all({"code", "message", "hint"} <= set(answer.body["error"]) for answer in refused)


def test_routes_without_fields_take_none(operator: HomeClient, state: None) -> None:
    for route in ROUTES:
        if route.method not in ("GET", "DELETE") and (route.method, route.path) not in BODIES:
            where = NAME.sub("nothing-of-that-name", route.path)
            for wrong in ({"by": "me"}, [1], "text"):
                answer = operator.ask(route.method, where, wrong)
                assert (answer.status, answer.code) == (422, "invalid_request"), (where, wrong)
            assert operator.ask(route.method, f"{where}?by=me").code == "invalid_request", where
    assert operator.get("/health").status == 200, "nobody shut it down"


def test_queries_with_a_field_too_many_or_of_another_type_are_refused(operator: HomeClient, state: None) -> None:
    for route in ROUTES:
        if route.method == "GET" and route.path not in ELSEWHERE:
            where = NAME.sub("clerk", route.path)
            assert operator.get(f"{where}?no_such_field=1").code == "invalid_request", where
            if route.path in PAGES:
                for wrong in ("limit=0", "limit=1001", "limit=many"):
                    assert operator.get(f"{where}?{wrong}").code == "invalid_request", (where, wrong)
                assert operator.get(f"{where}?cursor=never").status in (400, 404, 422), where


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/agents/{}/messages", {"text": "x"}),
        ("/agents/{}/chat", {"text": "x"}),
        ("/control/agents/{}/work-items", {"objective": "x"}),
    ],
)
def test_a_stopped_agent_says_how_it_is_let_run_again(home: ServedHome, path: str, body: dict[str, str]) -> None:
    home.client.post("/control/agents/keeper/stop")
    before = home.client.get("/agents/keeper/state").body["event_seq"]
    told = home.client.post(path.format("keeper"), body)
    assert (told.status, told.code) == (409, "agent_stopped"), told
    assert "wakeful agent resume keeper" in told.body["error"]["hint"]
    events = home.client.get(f"/agents/keeper/events?after={before}").body
    assert {event["envelope"]["kind"] for event in events} <= {"input.refused"}, "nothing but that it was refused"
    home.client.post("/control/agents/keeper/resume")


def test_a_revoked_token_opens_nothing_at_the_next_request(home: ServedHome) -> None:
    client = HomeClient(home.port, make_token(home.folder, "gone", ("observe",)))
    assert client.get("/agents").status == 200
    remove_token(home.folder / FILE, "gone")
    assert client.get("/agents").code == "token_refused"


def test_a_revoked_token_ends_its_streams_and_no_others(home: ServedHome, operator: HomeClient) -> None:
    """A phone that was lost must not go on hearing everything for as long as it stays connected."""
    lost = HomeClient(home.port, make_token(home.folder, "lost", ("observe",)))
    with operator.stream("/feed") as others, home.client.stream("/feed") as own:
        with lost.stream("/feed") as feed, lost.stream("/agents/clerk/events") as events:
            make_token(home.folder, "fresh", ("observe",))  # a change that does not concern it
            home.client.post("/agents/clerk/messages", {"text": "still heard", "thread": "revoked"})
            for each in (feed, events):
                assert any(frame and "still heard" in json.dumps(frame.data) for frame in each)
            remove_token(home.folder / FILE, "lost")
            for each in (feed, events):
                last = each.all()[-1]
                assert (last.event, last.data["error"]["code"]) == ("error", "token_refused")
        home.client.post("/agents/clerk/messages", {"text": "heard by others", "thread": "revoked"})
        for each in (others, own):
            assert any(frame and "heard by others" in json.dumps(frame.data) for frame in each)
    remove_token(home.folder / FILE, "fresh")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::"])
def test_a_foreign_host_is_refused(operator: HomeClient, state: None, host: str) -> None:
    assert operator.get("/agents", headers={"host": host}).code == "foreign_host"
    assert operator.post("/agents/clerk/messages", {"text": "x"}, headers={"host": host}).code == "foreign_host"


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}],
    ids=["origin", "null", "fetch"],
)
def test_another_sites_page_is_refused(operator: HomeClient, state: None, headers: dict[str, str]) -> None:
    assert operator.post("/agents/clerk/messages", {"text": "x"}, headers=headers).status == 403
    assert "access-control-allow-origin" not in operator.get("/agents", headers=headers).headers


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_what_a_form_can_send_is_refused(operator: HomeClient, state: None, kind: str) -> None:
    body = json.dumps({"text": "x"}).encode()
    answer = operator.ask("POST", "/agents/clerk/messages", body, headers={"content-type": kind})
    assert (answer.status, answer.code) == (415, "not_json")


def test_bodies_are_bounded(operator: HomeClient, state: None) -> None:
    said = {"content-length": "1100000"}
    assert operator.ask("POST", "/agents/clerk/messages", b"{", headers=said).code == "too_large", "before it is sent"
    deep = b'{"text": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert operator.post("/agents/clerk/messages", deep).code == "too_deep"
    assert operator.post("/agents/clerk/messages", b"{not json").code == "invalid_request"
    assert operator.post("/agents/clerk/messages", {"text": "x", "authority": "operator"}).status == 422


def test_a_slow_client_is_not_felt_by_others_and_is_let_go(home: ServedHome, operator: HomeClient, state: None) -> None:
    slow = [socket.create_connection(("127.0.0.1", home.port)) for _ in range(50)]
    try:
        for each in slow:
            each.sendall(b"POST /agents/clerk/messages HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        assert operator.get("/agents").status == 200
        assert select.select(slow, [], [], 0)[0] == [], "nobody waits for them: none was let go for it"
    finally:
        for each in slow:
            each.close()


def test_the_socket_is_its_owners_alone_and_says_who_came(home: ServedHome) -> None:
    assert home.socket.stat().st_mode & 0o777 == 0o600
    assert home.socket.parent.stat().st_mode & 0o777 == 0o700
    assert (home.folder / "tokens.json").stat().st_mode & 0o777 == 0o600
    home.client.post("/control/agents/clerk/pause", {"reason": "look"})
    assert home.client.get("/agents/clerk/status").body["changed_by"] == f"local:{os.getuid()}"
    home.client.post("/control/agents/clerk/resume")


def test_no_token_reaches_a_log(home: ServedHome, operator: HomeClient) -> None:
    operator.get("/agents")
    HomeClient(home.port, "wk_guess").get("/agents")
    said = home.said.read_text() + (home.folder / "tokens.json").read_text()
    assert operator.token not in said
    assert "wk_guess" not in said


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_the_framework_speaks_with_our_words(operator: HomeClient, method: str) -> None:
    answer = operator.ask(method, "/no/such/thing")
    assert answer.status in (404, 405)
    assert set(answer.body["error"]) >= {"code", "message", "hint", "retryable"}


def test_health_is_open_and_says_little(home: ServedHome, tmp_path: Path) -> None:
    answer = HomeClient(home.port).get("/health")
    assert (answer.status, set(answer.body)) == (200, {"status", "version"})
    assert answer.headers["wakeful-api"] == "1"


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"", {}, 422, "the body is missing"),
        (b"null", {}, 422, "the body is missing"),
        (b"{", {}, 422, "the body is not JSON: Expecting property name"),
        (b'{"text": "\xff"}', {}, 400, "the body is not JSON: it is not UTF-8"),
        (b"[]", {}, 422, "the body is not a JSON object"),
        (b'{"text": 1}', {}, 422, "text: input should be a valid string"),
        (b'{"txt": "x"}', {}, 422, "text is missing; there is no field 'txt' here"),
        (b'{"text": "x"}', {"Idempotency-Key": "a b"}, 422, "Idempotency-Key: string should match pattern"),
        (b'{"text": 1}', {"Idempotency-Key": "a b"}, 422, "; text: input should be a valid string"),
    ],
)
def test_each_part_of_a_request_is_checked_and_everything_wrong_is_said(
    operator: HomeClient, state: None, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    found = operator.post("/agents/clerk/messages", body, headers=headers)
    assert (found.status, words in found.body["error"]["message"]) == (status, True), found.body


def test_a_name_that_is_too_long_and_a_method_that_is_not_there(operator: HomeClient, state: None) -> None:
    long = operator.post(f"/agents/{'x' * 501}/messages", {"text": "x"})
    assert (long.status, long.body["error"]["message"]) == (422, "agent_id: string should have at most 500 characters")
    assert operator.ask("PUT", "/agents/clerk/messages", {}).code == "method_not_allowed"


def test_a_caller_without_the_scope_is_refused_before_its_body_is_looked_at(home: ServedHome, state: None) -> None:
    reader = HomeClient(home.port, make_token(home.folder, "onlooker", ("observe",)))
    assert reader.post("/agents/clerk/messages", b"{").status == 403
