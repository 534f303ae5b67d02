"""A daemon ends while people wait for it: everybody is told so, and nothing that was taken is lost.

Nothing is timed here. `wakeful daemon stop` gives a daemon its drain and 20 seconds, then SIGTERM, then SIGKILL: one
that had to be killed says no `ended`, and leaves its record behind.
"""

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import ServedHome, served

WAKEFUL = Path(sys.executable).with_name("wakeful")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ServedHome]:
    with served(tmp_path / "home") as found:
        yield found


def wakeful(home: ServedHome, *words: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen([WAKEFUL, *words], env=home.environment, stdout=pipe, stderr=pipe, text=True)


def asked(home: ServedHome, path: str) -> http.client.HTTPConnection:
    """A request that is being answered, and is not answered yet."""
    connection = home.client.connection(60)
    connection.request("GET", "/health")
    connection.getresponse().read()
    connection.request("GET", path)
    assert home.client.get("/health").status == 200, "what came after it was answered"
    return connection


def running(home: ServedHome, text: str) -> dict[str, Any]:
    """A message, and a turn that runs and does not end."""
    sent: dict[str, Any] = home.client.post("/agents/clerk/messages", {"text": text}).body
    with home.client.stream("/agents/clerk/events") as frames:
        frames.until("tool.started")
    return sent


def ended_by(stop: "subprocess.Popen[str]") -> None:
    _, said = stop.communicate(timeout=120)
    assert stop.returncode == 0, said


def has_ended(home: ServedHome) -> None:
    """In order: nobody had to kill it."""
    assert home.process is not None
    assert home.process.wait(120) == 0, home.said.read_text()
    assert home.said.read_text().rstrip().endswith("ended")
    assert not (home.folder / "run" / "daemon.json").exists()
    assert "Traceback" not in home.said.read_text()


def test_who_waits_for_an_answer_is_told_that_the_daemon_ends_and_gets_it_later(home: ServedHome) -> None:
    sent = running(home, "hold released")
    where = f"/messages/{sent['message_id']}/answer"
    waiting = asked(home, f"{where}?seconds=60")
    prompting = wakeful(home, "run", "hold released", "--agent", "clerk")
    with closing(waiting), home.client.stream("/agents/clerk/events") as frames:
        for _ in ("the first", "the one that is prompted"):
            frames.until("message.admitted")
        stop = wakeful(home, "daemon", "stop", "--drain", "1")
        told = waiting.getresponse()
        assert (told.status, told.getheader("wakeful-api")) == (503, "1")
        assert json.loads(told.read()) == {
            "error": {
                "code": "shutting_down",
                "message": f"the daemon is shutting down, and message {sent['message_id']} has no answer yet",
                "hint": f"It is kept. Once the daemon runs again: GET {where}, or wakeful why {sent['message_id']}",
                "retryable": True,
            }
        }
        frames.all()
    has_ended(home)
    ended_by(stop)
    assert "Cancel" not in home.said.read_text(), "nobody was waited for until the time was over"
    home.start()
    (home.folder / "released").touch()
    assert home.client.until_ended(sent)["state"] == "completed"
    assert home.client.get(where).body["result"]["status"] == "completed"
    answer, said = prompting.communicate(timeout=120)
    assert (prompting.returncode, answer) == (0, "finished\n"), said


def test_a_signal_ends_a_drain_whose_turn_and_request_do_not_end(
    home: ServedHome,
) -> None:
    running(home, "slow 600")
    sending = home.client.connection(60)
    sending.request("GET", "/health")
    sending.getresponse().read()
    sending.putrequest("POST", "/agents/clerk/messages")
    sending.putheader("content-type", "application/json")
    sending.putheader("content-length", "100")
    sending.endheaders(b'{"text": ')
    assert home.client.get("/health").status == 200, "what came after it was answered"
    stop = wakeful(home, "daemon", "stop")
    until = time.monotonic() + 60
    while "draining" not in home.said.read_text():
        assert time.monotonic() < until, home.said.read_text()
        time.sleep(0.02)
    assert home.process is not None
    home.process.send_signal(signal.SIGTERM)
    with closing(sending):
        told = sending.getresponse()
        assert (told.status, json.loads(told.read())["error"]["code"]) == (503, "shutting_down")
    has_ended(home)
    ended_by(stop)
