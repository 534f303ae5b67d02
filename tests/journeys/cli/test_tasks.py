"""`wakeful task`: background commands and child agents from a terminal, beside the process that looks after them."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import calls, family, heard, name_of, spawning
from kit.surfaces.command_line import Wakeful, command_line
from wakeful import Agent, Runtime, open_store
from wakeful.ports import ModelRequest
from wakeful.ports.tasks import TaskRow
from wakeful.store.sqlite import SqliteStore
from wakeful.surfaces.cli.screen import short
from wakeful.testing import scripted


def digs() -> Agent[None, str]:
    def child(request: ModelRequest) -> Any:
        return calls("wait_for", reason="rain", wake="external")

    def parent(request: ModelRequest) -> Any:
        return "told" if "Task task_" in heard(request)[-1] else spawning("It digs.")(request)

    return family(parent, child)


def builds(folder: Path) -> Agent[None, str]:
    def reply(request: ModelRequest) -> Any:
        is_asked = "Go." in heard(request)[-1] and not request.answered
        return calls("exec_command", cmd="echo on; touch up; sleep 600", yield_time_ms=500) if is_asked else "done"

    return Agent("builder", scripted(reply), workspace=folder)


@pytest.fixture
def home(folder: Path) -> Iterator[Path]:
    """A home whose runtime has left a child that waits and a command that runs."""
    (folder / "work").mkdir()

    async def once() -> None:
        async with Runtime(folder / "home", agents=[digs(), builds(folder / "work")]) as rt:
            await rt.answer(await rt.send("ops", "Have a hole dug."))
            await rt.answer(await rt.send("builder", "Go."))
            await rt.settled()
            while not (folder / "work" / "up").exists():  # noqa: ASYNC110 - it is said in another process
                await asyncio.sleep(0.01)

    asyncio.run(once())
    yield folder / "home"
    asyncio.run(all_ended(folder / "home", folder / "work"))


async def all_ended(home: Path, work: Path) -> None:
    """A runtime comes back, and every task of the store is over."""
    async with Runtime(home, agents=[digs(), builds(work)]) as rt:
        for task in await rt.tasks():
            await rt.stop_task(task.task_id)
            while (await rt.task(task.task_id)).ended_at is None:  # noqa: ASYNC110 - it ends in another process
                await asyncio.sleep(0.01)
        await rt.settled()


def rows(home: Path) -> dict[str, TaskRow]:
    async def read() -> dict[str, TaskRow]:
        store = await SqliteStore.open(home / "wakeful.db")
        found = {agent: (await store.tasks_of(agent))[0] for agent in ("ops", "builder")}
        await store.close()
        return found

    return asyncio.run(read())


def test_tasks_are_listed_shown_read_and_stopped_without_a_runtime(wakeful: Wakeful, home: Path, folder: Path) -> None:
    found = rows(home)
    child, command = found["ops"], found["builder"]
    lines = wakeful("task", "list").out.splitlines()
    assert lines[0].split() == ["TASK", "AGENT", "STATUS", "AGE", "WORK"]
    assert [line.split()[:3] for line in lines[1:]] == [
        [short(command.task_id), "builder", "running"],
        [short(child.task_id), "ops", "running"],
    ]
    shown = wakeful("task", "show", child.task_id).out
    assert f"child      {name_of(child)}" in shown
    assert "phase      waiting (awaiting_external_change)" in shown
    assert wakeful("task", "output", command.task_id).out.splitlines()[0] == "on"
    told = wakeful("task", "stop", command.task_id, "--reason", "takes too long")
    assert told.out.startswith(f"task {command.task_id} was asked to stop\n")
    assert wakeful("task", "stop", child.task_id).code == 0

    asyncio.run(all_ended(home, folder / "work"))
    assert {agent: row.status for agent, row in rows(home).items()} == {"ops": "cancelled", "builder": "cancelled"}
    assert wakeful("task").out == "no tasks\n"
    (ended,) = json.loads(wakeful("task", "list", "ops", "--all", "--json").out)
    assert (ended["task_id"], ended["child_agent_id"]) == (child.task_id, name_of(child))
    assert wakeful("task", "stop", child.task_id).out == f"task {child.task_id} is cancelled already\n"


def test_the_output_of_a_command_is_followed_in_the_files_of_a_store(wakeful: Wakeful, home: Path) -> None:
    found = rows(home)
    command = command_line("task", "output", found["builder"].task_id, "--follow")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        try:
            assert following.stdout.readline() == "on\n"
            recovery = found["builder"].recovered
            assert recovery is not None and recovery.folder is not None
            files = Path(recovery.folder)
            with (files / "output").open("ab") as first:
                first.write(b"one\nhal")
            (files / "output.10").write_bytes(b"f two\nlost in ")
            (files / "output.1000").write_bytes(b"the middle\nlast\n")
            said = [following.stdout.readline() for _ in range(3)]
            assert said == ["one\n", "half two\n", "last\n"], "lines are whole, whichever file they begin in"
        finally:
            following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130
    child = wakeful("task", "output", found["ops"].task_id, "--follow")
    line = f"wakeful tail {name_of(found['ops'])} --follow"
    assert child.code == 2 and "supervises the agent" in child.err and line in child.err
    assert wakeful("tail", name_of(found["ops"])).code == 0


def test_what_is_not_there_is_said_and_changes_nothing(wakeful: Wakeful, home: Path) -> None:
    for line in (("show", "task_9"), ("output", "task_9"), ("stop", "task_9")):
        told = wakeful("task", *line)
        assert (told.code, "there is no task 'task_9'" in told.err) == (2, True)
    assert wakeful("task", "list", "nobody").code != 0
    assert "listed by agent" in wakeful("task", "list", "--all").err


def test_a_program_asks_a_store_the_same(home: Path) -> None:
    with open_store(home / "wakeful.db") as store:
        (command, child) = store.tasks()
        assert (command.command, child.kind) == ("echo on; touch up; sleep 600", "child_agent_task")
        assert store.task(child.task_id).child_supervision is not None
        assert store.task_output(command.task_id).output.startswith("on")
        assert store.task_output(child.task_id).retrieval_status == "not_ready"
        for task in (command, child):
            assert store.stop_task(task.task_id, by="ada").status == "cancelling"
        assert [each.status for each in store.tasks()] == ["cancelling"] * 2
