"""Many clients that do nothing, or do it slowly, or say too much at the door: others do not feel it.

None of them has a token; a client that has one is answered while they are there.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token

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


def test_bodies_that_are_begun_and_not_ended(home: ServedHome, operator: HomeClient) -> None:
    before = operator.get("/agents/clerk/state").body["event_seq"]
    begun = head(str(operator.token), "Content-Length: 100") + b'{"text": "half a mess'
    chunked = head(str(operator.token), "Transfer-Encoding: chunked") + b'a\r\n{"text": "h\r\n'
    with crowd(home.port, 200, begun), crowd(home.port, 200, chunked):
        assert is_served(operator, "half")
    log = operator.get(f"/agents/clerk/events?after={before}&limit=1000").body
    assert "half a mess" not in json.dumps(log), "what did not come whole was not taken"


def test_a_body_that_comes_too_slowly_is_let_go(home: ServedHome, operator: HomeClient) -> None:
    """It waits as long as a client may take; others are answered meanwhile."""
    with crowd(home.port, 1, head(str(operator.token), "Content-Length: 100") + b"{") as (wire,):
        assert is_served(operator, "slow")
        assert b'"too_slow"' in read_to_end(wire), "after its time"
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
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")), answer[:200]
    assert is_served(operator, "heads")


def test_two_requests_in_one_are_two(home: ServedHome, operator: HomeClient) -> None:
    """A body that looks like a request is a body: a length and chunks together are refused, or the chunks count."""
    smuggled = b"0\r\n\r\nGET /agents/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    both = head(
        str(operator.token), f"Content-Length: {len(smuggled)}", "Transfer-Encoding: chunked", "Connection: close"
    )
    answer = answer_to(home.port, both + smuggled)
    assert b"smuggled" not in answer
    assert is_served(operator, "smuggled")
