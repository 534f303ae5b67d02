"""A daemon whose agent nothing would ever move again says so at its heartbeat, mends it, and is well again.

The invariant is broken for real: the row that would wake the agent is taken out of the store's file while nothing runs.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import ServedHome


class Monitor:
    """A service that watches for silence: the paths that it was asked for."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.changed = threading.Condition()
        self.url = ""

    def until(self, is_there: Callable[[list[str]], Any]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: is_there(self.paths), 60), self.paths


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    found = Monitor()

    class Pinged(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()
            with found.changed:
                found.paths.append(self.path)
                found.changed.notify_all()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pinged)
    found.url = f"http://127.0.0.1:{server.server_port}/ping/0a1b"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


def waiting(home: ServedHome) -> list[Any]:
    """Approvals, once there is one."""
    end = time.monotonic() + 60
    while not (found := home.client.get("/approvals").body) and time.monotonic() < end:
        time.sleep(0.05)
    return list(found)


def test_an_agent_that_nothing_would_move_is_told_as_fail_and_then_all_is_well_again(
    tmp_path: Path, monitor: Monitor
) -> None:
    (tmp_path / "wakeful.toml").write_text('[heartbeat]\nurl_env = "HEARTBEAT_URL"\nseconds = 1\n')
    (tmp_path / "secrets.env").write_text(f"HEARTBEAT_URL={monitor.url}\n")
    (tmp_path / "secrets.env").chmod(0o600)
    home = ServedHome(tmp_path).start()
    try:
        home.client.post("/agents/clerk/messages", {"text": "refund 5"})
        (approval,) = waiting(home)
        monitor.until(lambda paths: paths.count("/ping/0a1b") >= 2)
        assert not [path for path in monitor.paths if path.endswith("/fail")], "it waits for a person, and that is well"
        home.kill()
        with sqlite3.connect(tmp_path / "wakeful.db") as file:
            gone = file.execute("DELETE FROM wakes WHERE subject = ?", (approval["turn_id"],)).rowcount
        file.close()
        assert gone == 1, "the approval would never have run out"
        monitor.paths.clear()
        home.start()
        monitor.until(lambda paths: "/ping/0a1b/fail" in paths and paths[-1] == "/ping/0a1b")
        told = [each for each in home.client.get("/notices").body if each["cause"] == "liveness.violated"]
        assert len(told) == 1 and told[0]["agent"] == "clerk"
        decided = home.client.post(f"/approvals/{approval['approval_id']}/decision", {"decision": "approved"})
        assert decided.status == 200, decided
    finally:
        home.end()
