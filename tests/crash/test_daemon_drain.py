"""The daemon is stopped with hundreds of streams open and turns at work: it ends in its time, and nothing is lost.

Nothing is timed here. `wakeful daemon stop` gives a daemon its drain and 20 seconds, then SIGTERM, then SIGKILL: a
daemon that had to be killed leaves its record behind, and says no `ended`.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome, served
from kit.surfaces.served_tokens import make_token

WAKEFUL = Path(sys.executable).with_name("wakeful")
STREAMS, DEAF, TURNS = 500, 40, 20


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ServedHome]:
    with served(tmp_path / "home") as found:
        yield found


def stream(port: int, token: str, path: str, *, deaf: bool = False) -> socket.socket:
    wire = socket.socket()
    if deaf:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.settimeout(60)
    wire.connect(("127.0.0.1", port))
    wire.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {token}\r\n\r\n".encode()
    )
    return wire


def read_rest(wire: socket.socket) -> bytes:
    found = b""
    while data := wire.recv(65536):
        found = found[-200:] + data
    return found


def turns_in(client: HomeClient, *states: str) -> list[str]:
    return [turn["turn_id"] for turn in client.get("/turns?agent=clerk&limit=100").body if turn["state"] in states]


def until_many(client: HomeClient, many: int, *states: str) -> list[str]:
    limit = time.monotonic() + 120
    while len(found := turns_in(client, *states)) < many:
        assert time.monotonic() < limit, found
        time.sleep(0.1)
    return found


def test_a_drain_with_streams_and_turns_ends_in_order_and_the_turns_go_on(home: ServedHome) -> None:
    token = make_token(home.folder, "watcher", ("observe",))
    for number in range(TURNS):
        sent = home.client.post("/agents/clerk/messages", {"text": "slow 600", "thread": f"slow-{number}"})
        assert sent.status == 200
    running = until_many(home.client, TURNS, "running")
    for number in range(12):  # more than a reader that does not read has room for
        home.client.post("/agents/keeper/messages", {"text": "x" * 60_000, "thread": f"long-{number}"})
    newest = home.client.get("/agents/clerk/state").body["event_seq"], home.client.get("/feed/tail?limit=1").body
    paths = f"/agents/clerk/events?after={newest[0]}", f"/feed?after={newest[1][-1]['cursor']}"
    wires = [stream(home.port, token, paths[number % 2]) for number in range(STREAMS - DEAF)]
    deaf = [stream(home.port, token, "/agents/keeper/events", deaf=True) for _ in range(DEAF)]
    try:
        assert all(wire.recv(12) == b"HTTP/1.1 200" for wire in (*wires, *deaf))
        stop = subprocess.Popen(
            [WAKEFUL, "daemon", "stop", "--drain", "5"], env=home.environment, stdout=subprocess.DEVNULL
        )
        assert home.process is not None
        assert home.process.wait(120) == 0, home.said.read_text()
        assert stop.wait(120) == 0
        assert home.said.read_text().rstrip().endswith("ended"), "it was not killed"
        assert "Cancel" not in home.said.read_text(), "nobody was waited for until the time was over"
        assert all(b"come back with Last-Event-ID" in read_rest(wire) for wire in wires)
    finally:
        for wire in (*wires, *deaf):
            wire.close()
    home.start()
    assert set(until_many(home.client, TURNS, "running")) >= set(running), "all of them are at work again"
    home.kill()  # a second drain would show nothing new
