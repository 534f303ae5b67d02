"""A runtime that was stopped past its lease and replaced in a thread writes nothing there, and goes on elsewhere."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crash.test_zombies import SHORT, heard
from wakeful.store.sqlite import SqliteStore

PROGRAM = Path(__file__).with_name("stopped_runtime.py")


@contextmanager
def process(folder: Path, when: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(PROGRAM), str(folder), str(SHORT), when]
    surroundings = {**os.environ, "PYTHONPATH": str(PROGRAM.parent.parent)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


@pytest.mark.parametrize(
    ("when", "unknown", "senders"), [("before-an-append", 0, ["successor"]), ("before-an-effect", 1, [])]
)
def test_no_write_comes_from_a_runtime_that_lost_its_thread(
    tmp_path: Path, when: str, unknown: int, senders: list[str]
) -> None:
    with process(tmp_path, when) as runtime:
        assert heard(runtime) == "stopped"
        os.waitid(os.P_PID, runtime.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(SHORT * 1.5)  # a live owner is replaced when its lease ran out, not before
        with process(tmp_path, "successor") as successor:
            assert heard(successor) == f"completed unknown={unknown}"
        before = asyncio.run(log_of(tmp_path))
        os.kill(runtime.pid, signal.SIGCONT)
        assert heard(runtime) == "awake"
        assert heard(runtime) == f"completed said by {successor.pid}", "the answer is the successor's"
        assert heard(runtime) == f"completed said by {runtime.pid}"
        assert runtime.wait(60) == 0, runtime.stderr
    after = asyncio.run(log_of(tmp_path))
    (first, second) = [turn for kind, turn in after if kind == "turn.started"]
    assert [each for each in after if each[1] == first] == [each for each in before if each[1] == first]
    assert [kind for kind, turn in after if turn == second][-1] == "turn.completed"
    world = tmp_path / "world"
    names = {str(runtime.pid): "runtime", str(successor.pid): "successor"}
    assert [names[pid] for pid in (world.read_text().split() if world.exists() else [])] == senders


async def log_of(folder: Path) -> list[tuple[str, str | None]]:
    store = await SqliteStore.open(folder / "wakeful.db")
    entries = [(entry.fact.event.kind, entry.fact.turn_id) for entry in await store.read("post")]
    assert await store.verify() == []
    await store.close()
    return entries
