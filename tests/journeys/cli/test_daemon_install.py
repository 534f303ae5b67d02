"""`wakeful daemon install`: a unit that systemd accepts, and a process that tells it how it is."""

import json
import os
import plistlib
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from kit.surfaces.command_line import command_line
from kit.surfaces.served_home import TESTS, ServedHome, python_path
from wakeful.service.serving.autostart import start_file
from wakeful.service.serving.options import ServeOptions

ENDING = b"STOPPING=1\nEXTEND_TIMEOUT_USEC=140000000"
"""It ends, and may take the drain of two minutes and what comes after it."""


def installed(folder: Path, *words: str) -> str:
    """What the command says. It writes below this folder."""
    around = {**os.environ, "HOME": str(folder), "WAKEFUL_HOME": str(folder / "my home"), "COLUMNS": "80"}
    around.pop("XDG_CONFIG_HOME", None)
    line = command_line("daemon", "install", *words)
    return subprocess.run(line, env=around, capture_output=True, text=True, timeout=60, check=True).stdout


def install(folder: Path, *words: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(installed(folder, *words, "--json"))
    return found


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd is here")
@pytest.mark.journey("daemon install --json")
def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    found = install(tmp_path, "--port", "7000", "--tools", "shop:agents")
    unit = Path(found["path"])
    assert unit == tmp_path / ".config" / "systemd" / "user" / "wakeful.service"
    text = unit.read_text()
    assert "KillMode=process\n" in text, "tasks have supervisors of their own, which a restart must not end"
    assert "Type=notify\n" in text
    assert "WatchdogSec=" in text
    assert f"EnvironmentFile=-{tmp_path}/my home/secrets.env" in text
    assert "--port 7000 --tools shop:agents" in text
    assert any("enable-linger" in line for line in found["commands"])
    if shutil.which("systemd-analyze") is not None:
        checked = subprocess.run(
            ["systemd-analyze", "--user", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
        )
        assert "wakeful.service" not in checked.stderr, checked.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd is here")
def test_the_unit_finds_the_code_that_was_named_where_it_was_typed(tmp_path: Path) -> None:
    """A manager of services begins in another folder, and sees variables and values of its own in `$` and `%`."""
    place = tmp_path / "my % code"
    place.mkdir()
    (place / "shop.py").write_text("from wakeful import Agent\nagents = [Agent('clerk', 'scripted:demo')]\n")
    around = {**os.environ, "HOME": str(tmp_path), "WAKEFUL_HOME": str(tmp_path / "home"), "COLUMNS": "80"}
    line = command_line(
        "daemon", "install", "--print", "--listen", "none", "--tools", "shop:agents", "--model", "scripted:$HOME"
    )
    text = subprocess.run(line, env=around, cwd=place, capture_output=True, text=True, timeout=60, check=True).stdout
    said = dict(each.split("=", 1) for each in text.splitlines() if "=" in each)
    assert (said["WorkingDirectory"], "$$HOME" in said["ExecStart"]) == (str(place).replace("%", "%%"), True)
    words = shlex.split(said["ExecStart"].replace("%%", "%").replace("$$", "$"))
    home = Unit(tmp_path / "home", words, Path(said["WorkingDirectory"].replace("%%", "%")))
    try:
        assert [each["agent"] for each in home.start().client.get("/agents").body] == ["clerk"]
    finally:
        home.end()


class Unit(ServedHome):
    """Started by the words of a unit, in its folder."""

    def __init__(self, folder: Path, words: list[str], begins: Path) -> None:
        super().__init__(folder)
        self.words, self.begins = words, begins

    def start(self) -> "Unit":
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                self.words, env=self.environment, cwd=self.begins, stdout=said, stderr=said, stdin=subprocess.DEVNULL
            )
        self.until_there()
        return self


@pytest.mark.journey("daemon install")
def test_printing_writes_nothing(tmp_path: Path) -> None:
    assert install(tmp_path, "--print")["written"] is False
    assert installed(tmp_path, "--print") == install(tmp_path, "--print")["text"].rstrip() + "\n"
    assert not any((tmp_path / name).exists() for name in (".config", "Library"))


def test_launchd_gets_a_property_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "a & b"))
    found = plistlib.loads(start_file(("--port", "7000"), "launchd", Path("/srv/<code>")).text.encode())
    assert found["WorkingDirectory"] == "/srv/<code>"
    assert "WorkingDirectory" not in plistlib.loads(start_file((), "launchd").text.encode())
    assert found["ProgramArguments"][-3:] == ["serve", "--port", "7000"]
    assert found["EnvironmentVariables"]["WAKEFUL_HOME"].endswith("a & b")
    assert found["AbandonProcessGroup"] is True, "tasks outlive it"


def test_the_manager_waits_longer_than_the_drain_that_the_owner_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    for settings, seconds in (("", 140), ("[daemon]\ndrain = 300\n", 320)):
        (tmp_path / "wakeful.toml").write_text(settings)
        assert f"\nTimeoutStopSec={seconds}\n" in start_file((), "systemd").text
        assert plistlib.loads(start_file((), "launchd").text.encode())["ExitTimeOut"] == seconds


class Managed(ServedHome):
    """Started by a manager that wants to be told things at a socket."""

    def __init__(self, folder: Path, place: Path, tools: tuple[str, ...] = (), code: Path = TESTS) -> None:
        super().__init__(folder, ServeOptions(host=None, tools=tools))
        self.place, self.code = place, code

    @property
    def environment(self) -> dict[str, str]:
        told = {"NOTIFY_SOCKET": str(self.place), "WATCHDOG_USEC": "400000"}
        return {**super().environment, **told, "PYTHONPATH": python_path(self.code)}


def test_the_process_tells_the_manager_that_it_is_ready_alive_and_ending(tmp_path: Path) -> None:
    place, heard = tmp_path / "notify", SimpleQueue[bytes]()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(place))
        manager.settimeout(240)

        def listen() -> None:
            """All the time: who speaks to a manager waits until it listens."""
            said = b""
            with suppress(TimeoutError):
                while not said.startswith(b"STOPPING=1"):
                    said = manager.recv(100)
                    heard.put(said)

        listening = threading.Thread(target=listen)
        listening.start()
        home = Managed(tmp_path / "home", place).start()
        try:
            assert heard.get(timeout=60) == b"READY=1"
            assert [heard.get(timeout=60) for _ in range(2)] == [b"WATCHDOG=1"] * 2, "again and again"
        finally:
            assert home.end() == 0
        listening.join()
    told = [heard.get() for _ in range(heard.qsize())]
    assert told[-1] == ENDING


SCHEDULER_DIES = """
import asyncio
from wakeful import Agent, tool
from wakeful.testing import scripted

@tool(effect="pure")
async def break_it() -> str:
    "End what begins the turns of this process."
    for task in asyncio.all_tasks():
        if task.get_name() == "the scheduler":
            task.cancel()
    return "broken"

agents = [Agent("clerk", scripted([{"calls": [{"name": "break_it", "arguments": {}}]}, "done"]), tools=[break_it])]
"""
NOT_WELL = "the runtime is not well: the scheduler of the runtime has died"


def test_the_manager_hears_nothing_more_when_a_loop_of_the_runtime_has_died(tmp_path: Path) -> None:
    place, mark = tmp_path / "notify", b"the test"
    (tmp_path / "breaking.py").write_text(SCHEDULER_DIES)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(place))
        heard = SimpleQueue[bytes]()

        def listen() -> None:
            said = b""
            while not said.startswith(b"STOPPING=1"):
                said = manager.recv(100)
                heard.put(said)

        threading.Thread(target=listen, daemon=True).start()
        home = Managed(tmp_path / "home", place, ("breaking:agents",), tmp_path).start()
        try:
            assert [heard.get(timeout=60) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
            home.client.post("/agents/clerk/messages", {"text": "Break it."})
            until_said(home, NOT_WELL, 1)
            with socket.socket(manager.family, manager.type) as test:
                test.sendto(mark, str(place))
            until_said(home, NOT_WELL, 3)
            problems = home.client.get("/control/runtime/status").body["problems"]
            assert problems[0].startswith("the scheduler of the runtime has died: restart it")
        finally:
            assert home.end() == 0
        while heard.get(timeout=60) != mark:
            pass
        assert heard.get(timeout=60) == ENDING, "it was not told that all is well"


def until_said(home: ServedHome, words: str, times: int) -> None:
    until = time.monotonic() + 60
    while home.said.read_text().count(words) < times:
        assert time.monotonic() < until, home.said.read_text()
        time.sleep(0.02)


def test_a_manager_that_does_not_listen_holds_nobody_up(tmp_path: Path) -> None:
    place = tmp_path / "notify"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        socket.socket(manager.family, manager.type) as filler,
    ):
        manager.bind(str(place))
        filler.setblocking(False)
        filler.connect(str(place))
        with suppress(BlockingIOError):
            while True:
                filler.send(b"of somebody else")
        home = Managed(tmp_path / "home", place).start()
        try:
            assert home.client.get("/agents").status == 200
        finally:
            assert home.end() == 0
