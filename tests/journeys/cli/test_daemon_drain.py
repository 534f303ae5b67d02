"""A daemon is restarted while a model answers: the answer is waited for, paid once and kept, unless somebody hurries.

The provider answers when the test says so: nothing is timed.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient
from wakeful.testing import ProviderServer

WAKEFUL = Path(sys.executable).with_name("wakeful")
MODEL = "openai:gpt-5.5"
ANSWER = "All backups are there."
CODE = """
import os
from pathlib import Path
from wakeful import Agent, tool

@tool(effect="keyed")
def note(text: str) -> str:
    "Write it down."
    Path(os.environ["WAKEFUL_HOME"], "noted.txt").open("a").write(f"{os.getpid()} {text}\\n")
    return "noted"

agents = [Agent("ops", "openai:gpt-5.5", tools=[note])]
"""


class SlowProvider:
    """It takes requests at once, and answers them when it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.server = ProviderServer(self._reply)

    def until_asked(self) -> None:
        assert self.asked.acquire(timeout=120), "nobody asked it"

    def _reply(self, request: Any) -> object:
        self.asked.release()
        assert self.may_answer.wait(300)
        texts = [turn.text for turn in request.turns]
        is_first = any("note it" in text for text in texts) and "noted" not in " ".join(texts[-1:])
        return {"calls": [{"name": "note", "arguments": {"text": "seen"}}]} if is_first else ANSWER


class Home:
    """A home with an agent whose model is slow, and commands in it."""

    def __init__(self, folder: Path, provider: SlowProvider) -> None:
        self.folder = folder
        self.provider = provider
        folder.mkdir()
        (folder / "desk.py").write_text(CODE)
        self.say()

    def say(self, settings: str = "") -> None:
        (self.folder / "wakeful.toml").write_text(self.provider.server.settings(MODEL) + settings)

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        around = {**kept, **self.provider.server.environment(), "WAKEFUL_HOME": str(self.folder), "COLUMNS": "400"}
        pipe = subprocess.PIPE
        return subprocess.Popen([WAKEFUL, *words], env=around, cwd=self.folder, stdout=pipe, stderr=pipe, text=True)

    def wakeful(self, *words: str, expect: int = 0) -> str:
        process = self.begin(*words)
        out, err = process.communicate(timeout=300)
        assert process.returncode == expect, (words, out, err)
        return out + err

    def start(self) -> "Home":
        self.wakeful("daemon", "start", "--listen", "none", "--tools", "desk:agents")
        return self

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "run" / "daemon.json").read_text())
        return found

    @property
    def client(self) -> HomeClient:
        return HomeClient(Path(self.record["socket_path"]))

    def send(self, text: str = "Check the backups.") -> dict[str, Any]:
        sent: dict[str, Any] = self.client.post("/agents/ops/messages", {"text": text}).body
        return sent

    def ends(self, sent: dict[str, Any]) -> str:
        """What the turn of a message comes to."""
        assert self.client.until_ended(sent, 120)["state"] == "completed"
        answer: str = self.client.get(f"/messages/{sent['message_id']}/answer").body["result"]["final_content"]
        return answer


@pytest.fixture
def provider() -> Iterator[SlowProvider]:
    found = SlowProvider()
    with found.server:
        try:
            yield found
        finally:
            found.may_answer.set()


@pytest.fixture
def home(tmp_path: Path, provider: SlowProvider) -> Iterator[Home]:
    found = Home(tmp_path / "home", provider)
    try:
        yield found
    finally:
        found.wakeful("daemon", "stop", "--drain", "0")


class Said:
    """What a command says on stderr while it runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, words: str) -> str:
        while words not in (line := self._lines.get(timeout=120)):
            assert line, f"it ended, and did not say {words!r}"
        return line

    def ended(self) -> list[str]:
        """The lines that nobody has read, once it has ended well."""
        assert self.process.wait(120) == 0
        self._reader.join()
        assert self.process.stdout is not None and self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()
        return [line for line in self._lines.queue if line]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put("")


@pytest.mark.journey("daemon restart")
def test_a_restart_waits_for_the_answer_of_a_model_which_is_paid_once_and_kept(
    home: Home, provider: SlowProvider
) -> None:
    before = home.start().record["pid"]
    sent = home.send()
    provider.until_asked()
    restart = Said(home.begin("daemon", "restart"))
    line = restart.until("waiting for")
    assert line.startswith("waiting for 1 model call (agent ops, ") and "at most 1" in line
    assert line.endswith("; to end it now: wakeful daemon stop --drain 0\n")
    refused = home.wakeful("daemon", "start", "--listen", "none", expect=2)
    assert "is shutting down" in refused and "waiting for 1 model call (agent ops, " in refused
    assert "It is shutting down: waiting for 1 model call" in home.wakeful("daemon", "status")
    late = home.send("And tomorrow?")
    assert len(provider.server.requests) == 1, "it takes messages, and begins nothing"
    provider.may_answer.set()
    restart.ended()
    assert home.record["pid"] != before
    assert home.ends(sent) == ANSWER
    assert home.ends(late) == ANSWER
    assert len(provider.server.requests) == 2, "one for each message"


@pytest.mark.journey("daemon restart")
def test_in_a_hurry_the_call_is_cut_and_asked_again_after_the_start(home: Home, provider: SlowProvider) -> None:
    before = home.start().record["pid"]
    sent = home.send()
    provider.until_asked()
    assert "waiting for" not in home.wakeful("daemon", "restart", "--drain", "0")
    assert home.record["pid"] != before
    provider.until_asked()
    provider.may_answer.set()
    assert home.ends(sent) == ANSWER
    assert len(provider.server.requests) == 2


def test_the_call_that_an_answer_asks_for_begins_in_the_next_process_and_once(
    home: Home, provider: SlowProvider
) -> None:
    home.start()
    sent = home.send("Look, and note it.")
    provider.until_asked()
    restart = Said(home.begin("daemon", "restart"))
    restart.until("waiting for 1 model call")
    provider.may_answer.set()
    restart.ended()
    assert home.ends(sent) == ANSWER
    assert (home.folder / "noted.txt").read_text() == f"{home.record['pid']} seen\n"
    assert len(provider.server.requests) == 2
    turn = home.client.until_ended(sent)["turn_id"]
    home.wakeful("replay", turn)


@pytest.mark.parametrize("drain", ["0", "0.5"])
def test_the_owners_file_says_how_long_it_is_waited(home: Home, provider: SlowProvider, drain: str) -> None:
    home.say(f"[daemon]\ndrain = {drain}\n")
    home.start()
    sent = home.send()
    provider.until_asked()
    home.wakeful("daemon", "stop")
    assert "ended" in (home.folder / "run" / "daemon.log").read_text(), "nobody killed it"
    provider.may_answer.set()
    home.start()
    assert home.ends(sent) == ANSWER
    assert len(provider.server.requests) == 2


@pytest.mark.journey("daemon stop")
def test_another_stop_waits_too_and_one_in_a_hurry_ends_it_for_all(home: Home, provider: SlowProvider) -> None:
    home.start()
    home.send()
    provider.until_asked()
    both = [Said(home.begin("daemon", "stop")) for _ in range(2)]
    for each in both:
        each.until("waiting for 1 model call (agent ops, ")
    assert home.wakeful("daemon", "stop", "--drain", "0") == "the daemon has ended\n"
    for each in both:
        each.ended()
    assert len(provider.server.requests) == 1


@pytest.mark.journey("serve")
def test_in_a_terminal_the_second_ctrl_c_ends_it(home: Home, provider: SlowProvider) -> None:
    serve = home.begin("serve", "--listen", "none", "--tools", "desk:agents")
    said = Said(serve)
    assert serve.stdout is not None
    while "socket" not in serve.stdout.readline():
        assert serve.poll() is None
    sent = home.send()
    provider.until_asked()
    serve.send_signal(signal.SIGINT)
    while "waiting for" not in (line := serve.stdout.readline()):
        assert serve.poll() is None
    assert "waiting for 1 model call (agent ops, " in line and "a second signal (Ctrl-C) ends it now" in line
    serve.send_signal(signal.SIGINT)
    said.ended()
    provider.may_answer.set()
    assert home.start().ends(sent) == ANSWER
    assert len(provider.server.requests) == 2


def test_nobody_waits_for_a_turn_that_only_waits(home: Home, provider: SlowProvider) -> None:
    provider.may_answer.set()
    provider.server.weather.always("503")
    home.start()
    sent = home.send()
    until = time.monotonic() + 120
    while home.client.get("/agents").body[0].get("waiting_for") != "openai":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert home.wakeful("daemon", "stop") == "the daemon has ended\n"
    provider.server.weather.clear()
    assert home.start().ends(sent) == ANSWER


def test_a_file_that_was_damaged_since_keeps_nobody_from_stopping(home: Home, provider: SlowProvider) -> None:
    home.start()
    sent = home.send()
    provider.until_asked()
    home.say("[daemon\ndrain")
    stop = Said(home.begin("daemon", "stop"))
    stop.until("waiting for 1 model call (agent ops, ")
    provider.may_answer.set()
    stop.ended()
    home.say()
    assert home.start().ends(sent) == ANSWER
    assert len(provider.server.requests) == 1


def test_a_span_that_is_none_is_refused_where_it_is_given(home: Home) -> None:
    home.say('[daemon]\ndrain = "long"\n')
    line = (home.folder / "wakeful.toml").read_text().splitlines().index('drain = "long"') + 1
    words = f"wakeful.toml, line {line}: [daemon] drain is 'long'"
    assert words in home.wakeful("daemon", "start", "--listen", "none", expect=1)
    assert f":{line}" in home.wakeful("check", expect=2)
    home.say("[daemon]\ndrian = 5\n")
    assert "Did you mean drain?" in home.wakeful("check", expect=2)
    home.say()
    assert "drain is -1" in home.wakeful("daemon", "stop", "--drain", "-1", expect=2)
    home.start()
    answer = home.client.post("/control/runtime/shutdown", {"drain": -1})
    assert (answer.status, answer.body["error"]["message"]) == (422, "drain is -1")
