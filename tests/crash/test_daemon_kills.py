"""The daemon is killed under load, again and again: messages, approvals, tasks and followers over HTTP.

Every answer that said yes is in the log, nothing is in it twice, and who follows misses nothing and sees nothing twice.
The moments are chosen by the day's seed, which is printed; more of them: `make kills`.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crash.daemon_load import Load, LogOfLoad
from kit.gates.confined_commands import place_outside
from kit.surfaces.served_home import ServedHome, served
from wakeful.service.serving.options import ServeOptions

SEED = int(os.environ.get("WAKEFUL_KILL_SEED", datetime.now(UTC).toordinal()))
KILLS = int(os.environ.get("WAKEFUL_DAEMON_KILLS", "3"))
OPTIONS = ServeOptions(port=0, tools=("kit.surfaces.loaded_agents:agents",))
WAKEFUL = Path(sys.executable).with_name("wakeful")


@pytest.fixture
def home() -> Iterator[ServedHome]:
    with place_outside() as folder:
        (folder / "work").mkdir()
        with served(folder / "home", OPTIONS) as found:
            yield found


def until(holds: Callable[[], object], what: str, seconds: float = 120.0, *, pause: float = 0.01) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, f"{what} did not come"
        time.sleep(pause)


def finish(home: ServedHome, load: Load, builds: list[str]) -> LogOfLoad:
    """Nothing more is sent; everything comes to its end, and followers to the end of the log."""
    load.stop_sending()
    for name in builds:
        (home.folder.parent / "work" / f"go-{name}").touch()
    log = LogOfLoad(home)
    until(lambda: log.read().is_at_rest, "the end of all tasks and turns", pause=0.3)
    for follower in load.followers:
        until(lambda: len(follower.seen) >= len(log.streams()[follower.path]), f"the end of {follower.path}")  # noqa: B023
    return log.read()


def test_a_daemon_killed_under_load_keeps_every_promise(home: ServedHome) -> None:
    print(f"again: WAKEFUL_KILL_SEED={SEED} WAKEFUL_DAEMON_KILLS={KILLS} pytest {__file__}")  # noqa: T201
    chance, builds = random.Random(SEED), []
    load = Load(home, most=20 * KILLS)
    with load.running():
        for _ in range(KILLS):
            builds.append(load.build())
            if len(builds) == 1:
                until(lambda: home.client.get("/tasks").body, "the first build is a task")
            point = load.acknowledged + chance.randint(1, 30)
            until(lambda: load.acknowledged >= point or load.is_all_sent, "the point to kill at")  # noqa: B023
            home.kill()
            home.start()
        log = finish(home, load, builds)
    assert log.complaints(load) == []
    assert log.tasks, "tasks were told"
    assert all(follower.times > KILLS for follower in load.followers), "they came back after every kill"
    assert load.decided, "approvals were decided"


def test_inversion_a_store_that_forgets_is_caught(home: ServedHome) -> None:
    """As if the daemon had acknowledged what was not yet on the disk."""
    load = Load(home)
    with load.running():
        until(lambda: load.acknowledged > 5, "the first answers")
        now, kept = (sqlite3.connect(home.folder / name) for name in ("wakeful.db", "before.db"))
        with closing(now), closing(kept):
            now.backup(kept)
        point = load.acknowledged + 10
        until(lambda: load.acknowledged >= point, "more answers")
        load.stop_sending()
        home.kill()
        for name in ("wakeful.db-wal", "wakeful.db-shm"):
            (home.folder / name).unlink(missing_ok=True)
        shutil.move(home.folder / "before.db", home.folder / "wakeful.db")
        subprocess.run([WAKEFUL, "store", "forget", home.folder / "wakeful.db"], env=home.environment, check=True)
        home.start()
        until(lambda: LogOfLoad(home).read().is_at_rest, "the end of all turns", pause=0.3)
        complaints = LogOfLoad(home).read().complaints(load)
    assert [each for each in complaints if each.endswith("acknowledged messages are not in the log")]


def test_inversion_clients_without_keys_and_cursors_are_caught(home: ServedHome) -> None:
    load = Load(home, has_keys=False, has_cursors=False)
    with load.running():
        for _ in range(2):
            point = load.acknowledged + 10
            until(lambda: load.acknowledged >= point, "the point to kill at")  # noqa: B023
            home.kill()
            home.start()
        complaints = finish(home, load, []).complaints(load)
    assert [each for each in complaints if each.startswith("a follower of /agents/clerk/events")]


def test_clients_that_are_killed_are_not_felt(home: ServedHome) -> None:
    """`wakeful tail --follow` and the terminal UI, killed in the middle."""
    load = Load(home)
    with load.running(), _terminal() as (ours, theirs):
        tail = subprocess.Popen([WAKEFUL, "tail", "--follow"], env=home.environment, stdout=theirs, stdin=theirs)
        _read_until(ours, b"clerk")
        kill(tail)
        screen = {**home.environment, "TERM": "xterm", "LINES": "24", "COLUMNS": "80"}
        tui = subprocess.Popen([WAKEFUL, "tui"], env=screen, stdin=theirs, stdout=theirs, stderr=theirs)
        _read_until(ours, b"clerk")
        kill(tui)
        log = finish(home, load, [load.build()])
    assert log.complaints(load) == []
    assert "build-0" in load.messages, "it was answered after the kills"


@contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = os.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(theirs)
        os.close(ours)


def _read_until(handle: int, words: bytes) -> None:
    found = b""
    while words not in found:
        found += os.read(handle, 4096)


def kill(process: "subprocess.Popen[bytes]") -> None:
    assert process.poll() is None
    process.kill()
    assert process.wait() == -9
