"""An agent whose workspace is its home plants there what the runtime itself reads and writes: memory, plans, skills."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from unit.runtime.test_memory import AGENT, Mind, ask, searching
from unit.runtime.test_memory import home as home  # the fixture
from wakeful import Agent, Runtime, trust
from wakeful.errors import InvalidConfig, InvalidRequest
from wakeful.runtime.agent_templates import make_home, read_template, seed_templates
from wakeful.testing import FixedClock, scripted

SECRET = "PRIVATE KEY zebra"
NOT_READ = {
    "file": "'memory/self.md' is a link, or leads through one, and none is followed there",
    "inside": "'memory/self.md' is a link, or leads through one, and none is followed there",
    "folder": "'memory/self.md' is a link, or leads through one, and none is followed there",
    "pipe": "'memory/self.md' is neither a file nor a directory",
    "directory": "'memory/self.md' is a directory",
}


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A folder of the user's, which no agent was given."""
    folder = tmp_path / "users"
    folder.mkdir()
    for name in ("self.md", "plan.md", "id_rsa"):
        (folder / name).write_text(f"# Mine\n{SECRET}\n")
    return folder


def kept(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def plant(what: str, place: Path, users: Path) -> None:
    """What a command of the agent may do in its home. `place` is where the runtime has its file."""
    if what == "folder":
        place.parent.rmdir()
        place.parent.symlink_to(users)
    elif what == "inside":
        (place.parent / "other").write_text(f"# Other\n{SECRET}\n")
        place.symlink_to("other")
    elif what == "pipe":
        os.mkfifo(place)
    elif what == "directory":
        place.mkdir()
    else:
        place.symlink_to(users / "id_rsa")


@pytest.mark.parametrize("what", NOT_READ)
async def test_what_is_planted_in_the_place_of_a_memory_file_is_neither_found_nor_waited_for(
    tmp_path: Path, home: Path, users: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    plant(what, home / "memory" / "self.md", users)
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        for _ in range(2):
            told = await ask(rt, "find zebra")
            assert told["results"] == [] and f"left out: {NOT_READ[what]}" in told["index"]
        assert await rt.memory(AGENT).list("zebra PRIVATE KEY") == [], "what was asked is no brief with these words"
        assert NOT_READ[what] in caplog.text, "a person is told, too"


async def test_inversion_the_same_words_in_a_plain_file_are_found(tmp_path: Path, home: Path, users: Path) -> None:
    (home / "memory" / "self.md").write_text((users / "id_rsa").read_text())
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        told = await ask(rt, "find zebra")
        assert [each["snippet"] for each in told["results"]] == [f"# Mine {SECRET}"] and "index" not in told


async def test_pipes_of_one_agent_hold_up_no_other_and_not_the_end(tmp_path: Path, home: Path) -> None:
    os.mkfifo(home / "memory" / "self.md")
    os.mkfifo(home / "memory" / "operator.md")
    ada, desk = Mind(searching).agent(), Agent("desk", scripted(Mind(searching)), memory=True)
    async with Runtime(tmp_path / "rt", agents=[ada, desk], clock=FixedClock()) as rt:
        sent = [await rt.send(AGENT, "find zebra", thread=f"t{number}") for number in range(40)]
        assert (await rt.answer(await rt.send("desk", "hello"))).output == "Noted: hello"
        answers = await asyncio.gather(*(rt.answer(each) for each in sent))
        assert {each.status for each in answers} == {"completed"}


@pytest.mark.parametrize("what", ["file", "folder", "pipe"])
async def test_a_persons_edit_writes_nowhere_else(tmp_path: Path, home: Path, users: Path, what: str) -> None:
    memory = home / "memory"
    memory.joinpath("self.md").write_text("# Whale\nIt is an orca.\n")
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        (entry,) = await rt.memory(AGENT).list("orca")
        memory.joinpath("self.md").unlink()
        plant(what, memory / "self.md", users)
        with pytest.raises(InvalidRequest, match="has no memory entry"):
            await rt.memory(AGENT).edit(entry.source_ref, "It is a beluga.")
    assert kept(users) == dict.fromkeys(("self.md", "plan.md", "id_rsa"), f"# Mine\n{SECRET}\n")


async def test_a_persons_edit_goes_through_no_name_that_was_waiting_for_it(
    tmp_path: Path, home: Path, users: Path
) -> None:
    """Also inversion: the plain file is changed."""
    memory = home / "memory"
    memory.joinpath("self.md").write_text("# Whale\nIt is an orca.\n")
    async with Runtime(tmp_path / "rt", agents=[Mind(searching).agent()], clock=FixedClock()) as rt:
        (entry,) = await rt.memory(AGENT).list("orca")
        await rt.memory(AGENT).edit(entry.source_ref, "It is an orca still.")
        for name in (".self.md.new", "self.md.new"):
            (memory / name).symlink_to(users / "id_rsa")
        await rt.memory(AGENT).edit(entry.source_ref, "It is a beluga.")
    assert memory.joinpath("self.md").read_text() == "# Whale\nIt is a beluga.\n"
    assert kept(users) == dict.fromkeys(("self.md", "plan.md", "id_rsa"), f"# Mine\n{SECRET}\n")
    assert sorted(each.name for each in memory.iterdir()) == [".self.md.new", "self.md", "self.md.new"], "none is left"


def planning(plant_now: Callable[[str], None]) -> Callable[[str, list[Any]], Any]:
    """Creates an item with a plan, plants something in the place of it, and looks at it."""

    def say(text: str, results: list[Any]) -> Any:
        if not results:
            return calls(("create_work_item", {"objective": "Feed the whale.", "plan": "1. Fish."}))
        if len(results) == 1 and "work_item_id" in results[0]:
            plant_now(results[0]["work_item_id"])
            return calls(("get_work_item", {"work_item_id": results[0]["work_item_id"]}))
        return json.dumps(results[-1])

    return say


@pytest.mark.parametrize("what", ["file", "folder", "pipe", "inside"])
async def test_a_plan_that_is_planted_is_not_read(tmp_path: Path, home: Path, users: Path, what: str) -> None:
    def now(item: str) -> None:
        (home / "work-items" / item / "plan.md").unlink()
        plant(what, home / "work-items" / item / "plan.md", users)

    async with Runtime(tmp_path / "rt", agents=[Mind(planning(now)).agent(work_items=True)], clock=FixedClock()) as rt:
        told = (await ask(rt, "go"))["plan_artifact"]
        assert told["preview"].startswith("[The plan cannot be read: 'work-items/wi_"), told
        assert (told["hash"], told["bytes"], SECRET in json.dumps(told)) == ("", 0, False)


async def test_inversion_the_plan_that_the_agent_wrote_is_read(tmp_path: Path, home: Path) -> None:
    def now(item: str) -> None:
        (home / "work-items" / item / "plan.md").write_text("1. Krill.")

    async with Runtime(tmp_path / "rt", agents=[Mind(planning(now)).agent(work_items=True)], clock=FixedClock()) as rt:
        assert (await ask(rt, "go"))["plan_artifact"]["preview"] == "1. Krill."


async def test_a_plan_is_written_nowhere_else(tmp_path: Path, home: Path, users: Path) -> None:
    (home / "work-items").symlink_to(users)
    mind = Mind(planning(lambda item: None))
    async with Runtime(tmp_path / "rt", agents=[mind.agent(work_items=True)], clock=FixedClock()) as rt:
        told = await ask(rt, "go")
        assert told["kind"] == "invalid_path" and "is a link, or leads through one" in told["message"], told
        assert [item async for item in _items(rt)] == []
    assert sorted(kept(users)) == ["id_rsa", "plan.md", "self.md"]


async def _items(rt: Runtime) -> Any:
    for each in await rt._here.engine.store.open_work_items(AGENT):
        yield each


async def test_a_home_is_completed_nowhere_else(tmp_path: Path, users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    seed_templates()
    home = tmp_path / "rt" / "agents" / "main"
    home.mkdir(parents=True)
    for name in ("skills", "memory", "notes"):
        (home / name).symlink_to(users)
    (users / "self.md").unlink()
    assert not make_home(home, read_template("wakeful-default"), 0)
    assert (home / "AGENTS.md").is_file() and sorted(kept(users)) == ["id_rsa", "plan.md"]


def test_a_pipe_is_not_trusted_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    with pytest.raises(InvalidConfig, match="it is not a plain file"):
        trust(tmp_path / "AGENTS.md")


async def test_guidance_that_is_a_pipe_holds_up_nobody(tmp_path: Path, home: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def say(text: str, results: list[Any]) -> Any:
        if not results:
            os.mkfifo(work / "AGENTS.md")
            return calls(("wakeful/read_file", {"path": "AGENTS.md"}))
        return json.dumps(results[-1])

    agent = Mind(say).agent(workspace=work, profile="coding")
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        assert (await ask(rt, "go"))["kind"] == "not_a_file"
