"""Many clients that do nothing, or do it slowly, or say too much at the door: others do not feel it.

None of them has a token; a client that has one is answered while they are there.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token
from wakeful.surfaces.http.connections import KEPT_FILES

CROWD = 1_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def operator(home: ServedHome) -> HomeClient:
    return HomeClient(home.port, make_token(home.folder, "operator", ("operate",)))


@contextmanager
def crowd(port: int, many: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections, each of which says that and no more."""
    wires: list[socket.socket] = []
    try:
        for _ in range(many):
            wire = socket.create_connection(("127.0.0.1", port), timeout=60)
            wires.append(wire)
            wire.sendall(said)
        yield wires
    finally:
        for wire in wires:
            wire.close()


def is_served(operator: HomeClient, key: str) -> bool:
    """A message goes in, and what was there is read."""
    sent = operator.post("/agents/clerk/messages", {"text": "hello", "thread": key, "key": key})
    return sent.status == 200 and operator.get("/agents/clerk/state").status == 200


def answer_to(port: int, request: bytes) -> bytes:
    """Everything that comes back until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        with suppress(ConnectionError):  # it may be closed while it is still being spoken to
            wire.sendall(request)
        return read_to_end(wire)


def read_to_end(wire: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionError):
        while data := wire.recv(65536):
            found += data
    return found


def head(token: str, *lines: str) -> bytes:
    fixed = ("POST /agents/clerk/messages HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json")
    return "\r\n".join((*fixed, f"Authorization: Bearer {token}", *lines, "", "")).encode()


def test_a_thousand_connections_that_say_nothing(home: ServedHome, operator: HomeClient) -> None:
    with crowd(home.port, CROWD):
        assert is_served(operator, "silent")


def test_strangers_push_out_each_other_where_files_are_few(tmp_path: Path) -> None:
    """Every connection is an open file. Without a bound, those who hold them open leave none to the owner, the store
    and the agents."""
    with served(tmp_path / "home", files=KEPT_FILES + 64) as home:
        operator = HomeClient(home.port, make_token(home.folder, "operator", ("operate",)))
        with operator.stream("/feed") as followed, crowd(home.port, 300) as wires:
            assert is_served(home.client, "owner"), "the owner is not in the crowd"
            assert is_served(operator, "token"), "and who asks for something is let in"
            assert followed.until("brief"), "who is being answered stays"
            assert wires[0].recv(1) == b"", "the oldest that said nothing had to go"
        assert "Too many open files" not in home.said.read_text()


def test_bodies_that_are_begun_and_not_ended(home: ServedHome, operator: HomeClient) -> None:
    before = operator.get("/agents/clerk/state").body["event_seq"]
    begun = head(str(operator.token), "Content-Length: 100") + b'{"text": "half a mess'
    chunked = head(str(operator.token), "Transfer-Encoding: chunked") + b'a\r\n{"text": "h\r\n'
    with crowd(home.port, 200, begun), crowd(home.port, 200, chunked):
        assert is_served(operator, "half")
    log = operator.get(f"/agents/clerk/events?after={before}&limit=1000").body
    assert "half a mess" not in json.dumps(log), "what did not come whole was not taken"


def test_a_body_or_a_head_that_comes_too_slowly_is_let_go(home: ServedHome, operator: HomeClient) -> None:
    """It waits as long as a client may take; others are answered meanwhile. A head that is begun on a connection that
    had a request before is no better than a first one."""
    health = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with (
        crowd(home.port, 1, head(str(operator.token), "Content-Length: 100") + b"{") as (wire,),
        crowd(home.port, 1, health) as (second,),
        crowd(home.port, 1, health[:20]) as (first,),
    ):
        while b"}" not in second.recv(65536):
            pass
        second.sendall(health[:20])
        assert is_served(operator, "slow")
        assert b'"too_slow"' in read_to_end(wire), "after its time"
        assert (read_to_end(first), read_to_end(second)) == (b"", b""), "neither is held for ever"
    assert home.client.get("/control/runtime/status").body["refused"]["too_slow"] >= 1


@pytest.mark.parametrize(
    "said",
    [
        b"GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 2_000_000 + b"\r\n\r\n",
        b"GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Many: y\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"x" * 2_000_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00" * 1_000,
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    ],
    ids=["one-long-header", "many-headers", "long-path", "not-http", "two-lengths", "negative-length"],
)
def test_heads_that_no_client_sends_are_refused_and_closed(home: ServedHome, operator: HomeClient, said: bytes) -> None:
    answer = answer_to(home.port, said)
    words = answer.partition(b"\r\n\r\n")[2]
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert json.loads(words)["error"]["code"] == "bad_http", "in the shape of every error"
    assert is_served(operator, "heads")
    assert home.client.get("/control/runtime/status").body["refused"]["bad_http"] >= 1
    assert "WARNING" not in home.said.read_text(), "nobody without a token fills the log"


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "in-pieces"])
@pytest.mark.parametrize(
    "offer",
    [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAA",
        "Connection: Upgrade\r\nUpgrade: websocket",
    ],
    ids=["h2c", "websocket"],
)
def test_an_offer_of_another_protocol_is_passed_over(
    home: ServedHome, operator: HomeClient, offer: str, whole: bool
) -> None:
    """Clients of Java offer HTTP/2 with every request. The body is a body, and what follows it is the next request."""
    body = json.dumps({"text": "hello", "thread": "offered"}).encode()
    first = head(str(operator.token), f"Content-Length: {len(body)}", offer)
    second = f"GET /agents/clerk/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {operator.token}\r\n"
    last = second.encode() + b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with socket.create_connection(("127.0.0.1", home.port), timeout=60) as wire:
        for piece in (
            [first + body + last] if whole else [first[:-9], first[-9:], body[:5], body[5:], last[:40], last[40:]]
        ):
            wire.sendall(piece)
        answers = read_to_end(wire)
    assert answers.count(b"HTTP/1.1 200 OK") == 2, answers
    assert b'"message_id"' in answers and b'"agent":"clerk"' in answers.rpartition(b"HTTP/1.1")[2]
    assert "upgrade" not in home.said.read_text().lower()


def test_an_offer_makes_nothing_of_a_request_that_is_refused(home: ServedHome, operator: HomeClient) -> None:
    both = head(
        str(operator.token), "Connection: Upgrade", "Upgrade: h2c", "Content-Length: 4", "Transfer-Encoding: chunked"
    )
    assert answer_to(home.port, both + b"0\r\n\r\n").startswith(b"HTTP/1.1 400")
    tunnel = b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert answer_to(home.port, tunnel).startswith(b"HTTP/1.1 400")
    assert is_served(operator, "offers")


@pytest.mark.parametrize("name", ["Host: evil.example", "Authorization: Bearer wk_no", "Idempotency-Key: other"])
def test_a_header_that_decides_and_stands_there_twice_is_refused(
    home: ServedHome, operator: HomeClient, name: str
) -> None:
    said = head(str(operator.token), name, "Idempotency-Key: twice", "Content-Length: 16", "Connection: close")
    answer = answer_to(home.port, said + b'{"text": "once"}')
    assert answer.startswith(b"HTTP/1.1 400") and b"is given twice" in answer
    assert is_served(operator, "twice")


def test_two_requests_in_one_are_two(home: ServedHome, operator: HomeClient) -> None:
    """A body that looks like a request is a body: a length and chunks together are refused, or the chunks count."""
    smuggled = b"0\r\n\r\nGET /agents/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    both = head(
        str(operator.token), f"Content-Length: {len(smuggled)}", "Transfer-Encoding: chunked", "Connection: close"
    )
    answer = answer_to(home.port, both + smuggled)
    assert b"smuggled" not in answer
    assert is_served(operator, "smuggled")


def test_readers_that_go_away_in_the_middle_leave_no_lines_in_the_log(home: ServedHome, operator: HomeClient) -> None:
    """What is still written for them is written for nobody: each of these writes was a line."""
    sent = operator.post("/agents/clerk/messages", {"text": "hello", "thread": "read"}).body
    turn = operator.until_ended(sent)["turn_id"]
    asked = f"GET /turns/{turn}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", home.port), timeout=60) as wire:
            wire.sendall(f"{asked}Authorization: Bearer {operator.token}\r\n\r\n".encode())
            assert wire.recv(100)
    assert is_served(operator, "went")
    assert "socket.send" not in home.said.read_text()
