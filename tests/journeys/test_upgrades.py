"""Upgrades under a running daemon, a stop as systemd makes it, and a reboot: real processes, a copy of the package."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import wakeful
from kit.surfaces.served_home import AGENTS, TESTS, ServedHome, python_path
from wakeful.service.serving.options import ServeOptions

PACKAGE = Path(wakeful.__file__).parent
MEANWHILE = "surfaces/cli/check.py", "tools/mcp/source.py"
"""Parts that the running daemon has not loaded when they are replaced."""


class InstalledHome(ServedHome):
    """A home served by a copy of the package, which a test may replace."""

    def __init__(self, folder: Path, site: Path) -> None:
        super().__init__(folder, ServeOptions(port=0, tools=(AGENTS,)))
        self.site = site

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "PYTHONPATH": python_path(self.site, TESTS), "PYTHONDONTWRITEBYTECODE": "1"}

    def begin_upgrade(self) -> None:
        """As an installer does it: some files are of the other version already, and some cannot be loaded at all."""
        (self.site / "wakeful" / "_version.py").write_text('__version__ = "99.0.0"\n')
        for part in MEANWHILE:
            (self.site / "wakeful" / part).write_text("raise RuntimeError('half written')\n")

    def end_upgrade(self) -> None:
        for part in MEANWHILE:
            shutil.copy(PACKAGE / part, self.site / "wakeful" / part)


class TaskHome(ServedHome):
    """A home whose agent begins commands."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "home", ServeOptions(port=0, tools=("kit.surfaces.task_agents:agents",)))
        self.work = folder / "work"
        self.work.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "WORK": str(self.work)}

    def begin(self, command: str) -> str:
        """The task of a command, once it runs."""
        known = {task["task_id"] for task in self.tasks()}
        self.client.post("/agents/ops/messages", {"text": f"begin {command}"})
        (task,) = until(lambda: [each for each in self.tasks() if each["task_id"] not in known])
        return str(task["task_id"])

    def tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("/tasks?agent=ops&over=true").body
        return found

    def task(self, task_id: str) -> dict[str, Any]:
        (found,) = [task for task in self.tasks() if task["task_id"] == task_id]
        return found

    def times_told(self) -> int:
        lines = self.client.get("/agents/ops/transcript").body
        return sum("I was told." in str(line) for line in lines)


def descendants(process: int) -> list[int]:
    """Processes that a process started, and what they started: supervisors and commands of tasks."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[InstalledHome]:
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "wakeful", ignore=shutil.ignore_patterns("__pycache__"))
    found = InstalledHome(tmp_path / "home", site)
    try:
        yield found
    finally:
        if found.process is not None and found.process.poll() is None:
            found.end()


def until(what: Callable[[], Any], seconds: float = 90) -> Any:
    limit = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < limit, "it did not come"
        time.sleep(0.05)
    return found


def status(home: ServedHome) -> dict[str, Any]:
    found: dict[str, Any] = home.client.get("/control/runtime/status").body
    return found


def turns(home: ServedHome) -> dict[str, str]:
    return {turn["thread"]: turn["state"] for turn in home.client.get("/turns?agent=clerk").body}


def kinds(home: ServedHome, thread: str) -> set[str]:
    """Of the events of the turns of a thread."""
    found = [turn["turn_id"] for turn in home.client.get("/turns?agent=clerk").body if turn["thread"] == thread]
    return {event["type"] for each in found for event in home.client.get(f"/turns/{each}/events").body}


def test_a_daemon_under_which_wakeful_was_replaced_says_so_and_the_next_takes_up_its_turns(home: InstalledHome) -> None:
    home.start()
    before = status(home)
    assert before["problems"] == [] and before["version"] == wakeful.__version__
    home.client.post("/agents/clerk/messages", {"text": "refund 5", "thread": "waits"})
    until(lambda: home.client.get("/approvals").body)
    home.client.post("/agents/clerk/messages", {"text": "slow 120", "thread": "runs"})
    until(lambda: "tool.started" in kinds(home, "runs"))
    home.begin_upgrade()

    (told,) = until(lambda: status(home)["problems"])
    assert "replaced on the disk by version 99.0.0; this process runs version" in told
    assert told.endswith("To change over: wakeful daemon restart")
    assert status(home)["version"] == wakeful.__version__
    notices = until(
        lambda: [each for each in home.client.get("/notices").body if each["cause"] == "runtime.package_replaced"]
    )
    assert len(notices) == 1 and "99.0.0" in notices[0]["text"]
    home.client.post("/agents/clerk/messages", {"text": "hello", "thread": "goes on"})
    until(lambda: turns(home).get("goes on") == "completed")
    said = home.said.read_text()
    assert "was replaced on the disk" in said and "half written" not in said

    home.end_upgrade()
    assert home.end_now() == 0
    home.start()
    assert (status(home)["version"], status(home)["problems"]) == ("99.0.0", [])
    (approval,) = home.client.get("/approvals").body
    home.client.post(f"/approvals/{approval['approval_id']}/decision", {"decision": "approved"})
    until(lambda: turns(home)["waits"] == "completed")
    until(lambda: {"turn.resumed", "tool.dispatched"} <= kinds(home, "runs"))
    assert turns(home)["runs"] == "running"
    home.kill()


def test_a_task_outlives_a_restart_by_systemd_and_a_reboot_reports_it_lost(tmp_path: Path) -> None:
    home = TaskHome(tmp_path)
    home.start()
    try:
        first = home.begin("while [ ! -e go ]; do sleep 0.05; done; echo built > built")
        assert home.process is not None
        home.process.send_signal(signal.SIGTERM)  # KillMode=process: the main process alone
        home.process.wait(30)
        (home.work / "go").touch()
        home.start()
        until(lambda: home.task(first)["status"] == "completed")
        assert (home.work / "built").read_text() == "built\n"
        until(lambda: home.times_told() == 1)

        second = home.begin("touch up; sleep 600")
        until((home.work / "up").exists)
        assert home.process is not None
        everything = [home.process.pid, *descendants(home.process.pid)]
        assert len(everything) >= 3, "a supervisor and a command, at least"
        for process in everything:  # a reboot: nothing is left
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        home.process.wait(30)
        home.start()
        until(lambda: home.task(second)["status"] == "failed")
        until(lambda: home.times_told() == 2)
        assert home.task(first)["status"] == "completed"
    finally:
        if home.process is not None and home.process.poll() is None:
            home.end()
