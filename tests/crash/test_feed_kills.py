"""The feed over kills: of the process that writes it, and of one that follows it. Nothing is missing, nothing twice."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from crash.test_work_kills import started
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_rows import find_misfits
from wakeful.views.presentation.placements import feed_placement

FOLLOWER = Path(__file__).with_name("feed_process.py")


def following(home: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(FOLLOWER), str(home / "wakeful.db"), str(home / "followed")])


def followed(home: Path) -> list[str]:
    path = home / "followed"
    return [line.split()[1] for line in path.read_text().splitlines()] if path.exists() else []


async def fed(home: Path) -> list[str]:
    """The events of the feed in its order."""
    store = await SqliteStore.open(home / "wakeful.db")
    try:
        assert await find_misfits(store) == []
        return [f"{row.agent_id}:{row.seq}" for row in await store.feed_after(0, limit=1_000)]
    finally:
        await store.close()


def until_has(home: Path, follower: "subprocess.Popen[bytes]", number: int) -> None:
    while len(followed(home)) < number:
        assert follower.poll() is None
        time.sleep(0.02)


@pytest.mark.parametrize("points", [(1,), (2, 1)])
async def test_a_follower_misses_nothing_over_kills_of_the_writer_and_its_own(
    tmp_path: Path, points: tuple[int, ...]
) -> None:
    home = tmp_path / "home"
    killed = started(home, points[0])
    assert killed.returncode == -9, killed.said
    follower = following(home)
    until_has(home, follower, len(await fed(home)))
    follower.kill()
    follower.wait()
    for point in points[1:]:
        assert started(home, point).returncode == -9
    follower = following(home)
    until_has(home, follower, len(await fed(home)))
    done = started(home, 0)  # the follower lives, and another process writes
    assert done.returncode == 0, done.said
    rows = await fed(home)
    until_has(home, follower, len(rows))
    follower.kill()
    follower.wait()
    assert followed(home) == rows, "each once, in the order of the feed"
    store = await SqliteStore.open(home / "wakeful.db")
    log = await store.read("builder")
    await store.close()
    assert rows == [entry.event_id for entry in log if feed_placement(entry.fact) is not None], "as the log says"
