"""A command that ran when the backup was taken belongs to the old home: the restored one has lost it, and leaves it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime
from wakeful.bootstrap.backups import back_up_home, restore_home
from wakeful.bootstrap.stores import opened_store
from wakeful.ports import ModelRequest
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.testing import scripted

WAITS = "while [ ! -e go ]; do sleep 0.01; done"


def reply(request: ModelRequest) -> Any:
    if request.answered:
        return "It runs."
    return {"calls": [{"name": "exec_command", "arguments": {"cmd": WAITS, "yield_time_ms": 1}}]}


async def test_a_running_command_is_lost_in_the_restored_home_and_lives_on_in_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, work = tmp_path / "old", tmp_path / "new", tmp_path / "work"
    for folder in (old, work):
        folder.mkdir()
    async with Runtime(old, agents=[Agent("ops", scripted(reply), workspace=work)]) as runtime:
        await runtime.send("ops", "Begin.")
        tasks = await _begun(old / "wakeful.db")
    who = tasks[0].recovered.supervisor
    process = ProcessIdentity(who.pid, who.started, who.boot)
    try:
        monkeypatch.setenv("WAKEFUL_HOME", str(old))
        taken = await back_up_home(tmp_path / "b.tar.gz")
        assert taken.running_tasks[0].startswith(f"{tasks[0].task_id} of ops")
        monkeypatch.setenv("WAKEFUL_HOME", str(new))
        restored = await restore_home(tmp_path / "b.tar.gz")
        assert restored.lost_tasks == taken.running_tasks
        assert process.is_alive()
        assert await _open(new / "wakeful.db") == []
        assert len(await _open(old / "wakeful.db")) == 1
        async with opened_store(str(new / "wakeful.db"), reading=True) as store:
            row = await store.task(tasks[0].task_id)
            hold = await store.runtime_hold()
        assert row is not None
        assert row.status == "failed"  # as every task whose process is gone: its agent is told that it was lost
        assert hold is not None
        assert (hold.control, hold.changed_by) == ("paused", "restore")
    finally:
        (work / "go").touch()
        await _ended(process)


async def _open(store: Path) -> list[Any]:
    async with opened_store(str(store), reading=True) as opened:
        return list(await opened.open_tasks())


async def _begun(store: Path) -> list[Any]:
    for _ in range(3_000):
        if found := await _open(store):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("no task began")


async def _ended(process: ProcessIdentity) -> None:
    for _ in range(3_000):
        if not process.is_alive():
            return
        await asyncio.sleep(0.02)
