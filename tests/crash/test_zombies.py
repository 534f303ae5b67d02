"""An owner that was stopped and replaced writes nothing and begins nothing when it wakes up."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wakeful.store.sqlite import SqliteStore

PROGRAM = Path(__file__).with_name("zombie.py")
SHORT, LONG = 0.4, 600.0
"""Leases, in seconds."""


@contextmanager
def process(folder: Path, when: str, lease: float = SHORT) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(PROGRAM), str(folder), str(lease), when]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None and child.stderr is not None
    return child.stdout.readline().strip() or child.stderr.read()


def while_asleep(folder: Path, when: str) -> tuple[str, str, list[str], int]:
    """Stop a run, let another process finish it, wake the first: what both said, and who did what to the world."""
    with process(folder, when) as zombie:
        assert heard(zombie) == "stopped"
        os.waitid(os.P_PID, zombie.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(SHORT * 1.5)  # a live owner is replaced when its lease ran out, not before
        with process(folder, "none") as successor:
            finished = heard(successor)
        os.kill(zombie.pid, signal.SIGCONT)
        assert heard(zombie) == "awake"
        said = heard(zombie)
        world = folder / "world"
        return finished, said, world.read_text().split() if world.exists() else [], zombie.pid


async def log_of(folder: Path) -> list[str]:
    store = await SqliteStore.open(folder / "runs.db")
    (agent_id,) = await store.agents()
    kinds = [entry.fact.event.kind for entry in await store.read(agent_id)]
    assert await store.verify() == []
    await store.close()
    return kinds


async def test_a_stopped_owner_may_not_write_when_it_wakes_up(tmp_path: Path) -> None:
    finished, said, world, zombie = while_asleep(tmp_path, "before-an-append")
    assert (finished, said) == ("completed unknown=0", "fenced")
    assert len(world) == 1 and str(zombie) not in world, "the effect was its successor's, once"
    assert (await log_of(tmp_path))[-1] == "turn.completed"


async def test_a_stopped_owner_begins_no_effect_when_it_wakes_up(tmp_path: Path) -> None:
    finished, said, world, _ = while_asleep(tmp_path, "before-an-effect")
    assert (finished, said) == ("completed unknown=1", "fenced")
    assert world == [], "its intent was closed as unknown, and so it stayed"


async def test_without_that_check_the_zombies_effect_happens_behind_everybodys_back(tmp_path: Path) -> None:
    finished, _, world, zombie = while_asleep(tmp_path, "before-an-effect-unchecked")
    assert finished == "completed unknown=1"
    assert world == [str(zombie)]


def test_while_its_lease_holds_a_stopped_owner_is_not_replaced_and_the_same_run_elsewhere_waits(tmp_path: Path) -> None:
    with process(tmp_path, "before-an-append", LONG) as zombie:
        assert heard(zombie) == "stopped"
        os.waitid(os.P_PID, zombie.pid, os.WSTOPPED | os.WNOWAIT)
        with process(tmp_path, "none", LONG) as follower:
            time.sleep(SHORT * 3)
            assert follower.poll() is None
            os.kill(zombie.pid, signal.SIGCONT)
            assert [heard(zombie), heard(zombie)] == ["awake", "completed unknown=0"]
            assert heard(follower) == "completed unknown=0"
        assert (tmp_path / "world").read_text().split() == [str(zombie.pid)], "once, by its owner"
