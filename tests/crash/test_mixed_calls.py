"""A command that is killed half-way is told as what it is, whatever other turns have calls of the same id."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crash.mixed_calls import answer, ops
from kit.gates.confined_commands import place_outside, until
from kit.wires.gemini_samples import answer as gemini_answer
from kit.wires.gemini_samples import call, sse
from kit.wires.provider_server import Answer, Asked, serving
from wakeful import Runtime, open_store
from wakeful.contracts.events import AssistantRecorded
from wakeful.ports import TurnRow
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.service.queries.replay import replay_turn
from wakeful.store.sqlite import SqliteStore

HERE = Path(__file__).parent


def as_gemini(asked: Asked) -> Answer:
    """A server as it is: its calls have no id."""
    part = asked.body["contents"][-1]["parts"][-1]
    if "functionResponse" in part:
        told: Any = {"text": f"TOLD {part['functionResponse']['response']}"}
    else:
        given = answer(part["text"])
        tool = next(
            each["name"]
            for tools in asked.body["tools"]
            for each in tools["functionDeclarations"]
            if each["name"].endswith("exec_command")
        )
        told = {"text": given} if isinstance(given, str) else call(tool, given)
    return Answer(sse([gemini_answer(told)]))


@pytest.fixture
def folder() -> Iterator[Path]:
    with place_outside() as place:
        (place / "work").mkdir()
        yield place
        for identity in asyncio.run(supervisors(place)):
            identity.kill()


@pytest.fixture(params=["scripted", "gemini"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "scripted":
            yield ""
            return
        server = stack.enter_context(serving())
        server.always = as_gemini
        yield server.url


async def supervisors(folder: Path) -> list[ProcessIdentity]:
    (place,) = folder.rglob("wakeful.db")
    store = await SqliteStore.open(place)
    try:
        named = [row.recovered.supervisor for row in await store.tasks_of("ops") if row.recovered is not None]
        return [ProcessIdentity(each.pid, each.started, each.boot) for each in named if each is not None]
    finally:
        await store.close()


def begin(program: str, folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, str(HERE / program), str(folder), *filter(None, arguments)]
    return subprocess.Popen(line, env=environ)


async def test_a_killed_command_is_never_told_as_the_task_of_another_turn(folder: Path, url: str) -> None:
    first = begin("mixed_calls.py", folder, "tests", url)
    assert first.wait(timeout=120) == 0
    assert "promoted_to_task" in (folder / "tests").read_text()
    killed = begin("mixed_calls.py", folder, "release", url)
    try:
        assert await until((folder / "work" / "release").exists, 120)
    finally:
        killed.kill()
        killed.wait()
    async with Runtime(folder / "home", agents=[ops(folder, url)]) as runtime:
        result = await runtime.answer(await runtime.send("ops", "Run the release.", key="release", thread="release"))
    assert (folder / "work" / "release").read_text() == "began\n"
    assert "outcome_unknown" in result.final_content and "task_" not in result.final_content
    assert [call.status for call in result.calls()] == ["error"]
    assert [unknown.tool for unknown in result.unknown] == ["wakeful/exec_command"]
    async with open_store(folder / "home" / "wakeful.db") as opened:
        assert [row.turn_id for row in await opened.unknown()] == [result.turn_id]
    await check_log(folder, calls=2)


async def test_a_command_that_was_a_task_when_its_process_died_is_told_as_that_task(folder: Path) -> None:
    """And its turn is decided again as it was, though nothing in the turn says that there is a task."""
    assert begin("promoted_task.py", folder, "dies").wait(timeout=120) == -signal.SIGKILL
    (folder / "work" / "go").touch()
    assert begin("promoted_task.py", folder).wait(timeout=120) == 0
    assert "promoted_to_task" in (folder / "told").read_text()
    await check_log(folder, calls=1)


async def check_log(folder: Path, *, calls: int) -> None:
    """So many turns have a call, all of the same id, and every turn is decided again as it was."""
    (place,) = folder.rglob("wakeful.db")
    store = await SqliteStore.open(place)
    try:
        rows = await store.turns()
        named = [each for row in rows for each in await calls_of(store, row)]
        assert len(named) == calls and len(set(named)) == 1, named
        for row in rows:
            report = await replay_turn(store, row)
            assert report.identical, report.divergence
    finally:
        await store.close()


async def calls_of(store: SqliteStore, row: TurnRow) -> list[str]:
    events = [entry.fact.event for entry in await store.read(row.agent_id, turn_id=row.turn_id)]
    return [part.call_id for event in events if isinstance(event, AssistantRecorded) for part in event.item.calls]
