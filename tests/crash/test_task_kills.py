"""A runtime that is killed: its tasks go on and are told once by the next one, and nothing else of it is left."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.task_runtime import ops
from kit.gates.confined_commands import alive, marker, place_outside, until
from wakeful import Runtime
from wakeful.contracts.events import MessageAdmitted, TaskEnded
from wakeful.ports.tasks import TaskRow
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.processes.supervised_command import read_end
from wakeful.store.sqlite import SqliteStore

SCRIPT = Path(__file__).with_name("task_runtime.py")


class Killed:
    """A runtime's process, killed with SIGKILL when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "work").mkdir()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, command: str, yield_ms: int = 1) -> None:
        line = [sys.executable, str(SCRIPT), str(self.folder), command, str(yield_ms)]
        self.process = subprocess.Popen(line, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def answered(self) -> None:
        assert await until((self.folder / "answered").exists, 60)

    async def tasks(self) -> list[TaskRow]:
        store = await SqliteStore.open(str(self.folder / "home" / "wakeful.db"))
        try:
            return await store.tasks_of("ops")
        finally:
            await store.close()

    async def _is_over(self, task_id: str) -> bool:
        await asyncio.sleep(0.02)
        return next(row.is_over for row in await self.tasks() if row.task_id == task_id)

    async def told(self) -> list[str]:
        """What the next runtime tells the agent: the tasks that it was told of, each as often as it was."""
        async with Runtime(self.folder / "home", agents=[ops(self.folder)]) as runtime:
            for row in await self.tasks():
                while not await self._is_over(row.task_id):
                    pass
            store = await SqliteStore.open(str(self.folder / "home" / "wakeful.db"))
            events = [entry.fact.event for entry in await store.read("ops")]
            await store.close()
            results = [each for each in events if isinstance(each, MessageAdmitted) and each.task_id is not None]
            assert [each.task_id for each in events if isinstance(each, TaskEnded)] == [e.task_id for e in results]
            for each in results:
                assert (await runtime.answer(each.message_id)).output == "told"
        return [str(each.task_id) for each in results]


@pytest.fixture
def killed() -> Iterator[Killed]:
    with place_outside() as folder:
        made = Killed(folder)
        yield made
        made.kill()
        for row in asyncio.run(made.tasks()):
            identity(row).kill()


def identity(row: TaskRow) -> ProcessIdentity:
    assert row.recovered is not None
    assert row.recovered.supervisor is not None
    who = row.recovered.supervisor
    return ProcessIdentity(who.pid, who.started, who.boot)


@pytest.mark.spec("HOL-TASK-12", "HOL-TASK-13")
async def test_a_task_outlives_a_killed_runtime_and_the_next_one_tells_its_result_once(killed: Killed) -> None:
    name = marker()
    killed.start(f"echo ready; while [ ! -e go ]; do sleep 0.01; done; echo done {name}")
    await killed.answered()
    killed.kill()
    (row,) = await killed.tasks()
    assert (row.status, identity(row).is_alive()) == ("running", True)
    (killed.folder / "work" / "go").touch()
    assert await killed.told() == [row.task_id]
    (over,) = await killed.tasks()
    assert (over.status, over.exit_status, over.output_summary) == ("completed", 0, f"ready\ndone {name}\n")
    assert await killed.told() == [row.task_id], "and not again"
    assert await until(lambda: not identity(row).is_alive())


async def test_a_task_that_ended_after_the_kill_is_told_as_it_ended(killed: Killed) -> None:
    killed.start("echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 7")
    await killed.answered()
    killed.kill()
    (row,) = await killed.tasks()
    assert row.recovered is not None
    folder = row.recovered.folder
    assert folder is not None
    (killed.folder / "work" / "go").touch()
    assert await until(lambda: read_end(folder) is not None)
    assert await killed.told() == [row.task_id]
    (over,) = await killed.tasks()
    assert (over.status, over.exit_status) == ("failed", 7)


async def test_a_command_that_is_no_task_dies_with_its_runtime(killed: Killed) -> None:
    name = marker()
    killed.start(f"setsid sleep {name} & sleep {name}", yield_ms=600_000)
    assert await until(lambda: len(alive(name)) >= 2, 60)
    killed.kill()
    assert await until(lambda: alive(name) == [])
    assert await killed.tasks() == []


async def test_a_task_and_its_supervisor_that_are_killed_too_are_told_as_lost(killed: Killed) -> None:
    name = marker()
    killed.start(f"echo ready; sleep {name}")
    await killed.answered()
    (row,) = await killed.tasks()
    assert await until(lambda: bool(alive(name)))
    assert killed.process is not None
    os.kill(killed.process.pid, signal.SIGKILL)
    identity(row).kill()
    killed.kill()
    assert await killed.told() == [row.task_id]
    (over,) = await killed.tasks()
    assert over.failure is not None
    assert (over.status, over.failure["kind"]) == ("failed", "lost_on_restart")
    assert await until(lambda: alive(name) == [])
