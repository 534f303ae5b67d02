"""The folder that an agent works in goes away and comes back: what waits begins within seconds of that."""

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wakeful import Agent, Runtime, open_store, trust
from wakeful.errors import InvalidConfig
from wakeful.runtime.missing_folders import LOOK_SECONDS
from wakeful.surfaces.cli.main import main
from wakeful.testing import FixedClock, scripted

NOON = datetime(2040, 1, 2, 12, tzinfo=UTC)
HOUR = 3600.0
NOTES_SERVER = Path(__file__).parents[3] / "examples" / "notes_server.py"


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def deferrals(rt: Runtime) -> list[str]:
    """Why messages of the agent were set aside, or made due again."""
    found = []
    async for event in rt.follow("ops"):
        if event.type == "message.deferred":
            found.append(str(event.payload["reason"]))
        if event.type == "turn.completed":
            break
    return found


async def test_a_folder_that_comes_back_is_noticed_within_seconds_however_long_it_was_away(tmp_path: Path) -> None:
    clock, folder = FixedClock(NOON), tmp_path / "shop"
    folder.mkdir()
    agent = Agent("ops", scripted(["done"]), workspace=folder)
    async with Runtime(tmp_path / "home", agents=[agent], clock=clock) as rt:
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        for _ in range(4):
            await passes(rt, clock, HOUR)
        assert "that folder is not there" in str(await rt.why("ops"))
        (tmp_path / "away").rename(folder)
        await passes(rt, clock, LOOK_SECONDS)
        assert (await rt.answer(sent)).output == "done"
        assert (await deferrals(rt))[-1] == "the folder is back"
        assert clock.now() - NOON.timestamp() * 1e6 < (4 * HOUR + 60) * 1e6


async def test_an_agent_that_works_elsewhere_by_now_does_not_wait_for_the_folder(tmp_path: Path) -> None:
    clock, folder, other = FixedClock(NOON), tmp_path / "shop", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    async with Runtime(
        tmp_path / "home", agents=[Agent("ops", scripted(["one"]), workspace=folder)], clock=clock
    ) as rt:
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, 1)
        for _ in range(4):
            await passes(rt, clock, HOUR)
        await rt.use_workspace("ops", other)
        await passes(rt, clock, LOOK_SECONDS)
        assert (await rt.answer(sent)).output == "one"


@pytest.mark.parametrize("is_back", [True, False], ids=["back before the start", "back after it"])
async def test_a_runtime_that_is_started_again_knows_what_waits_for_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_back: bool
) -> None:
    clock, folder = FixedClock(NOON), tmp_path / "shop"
    folder.mkdir()
    ops = Agent("ops", scripted(["done"]), workspace=folder)
    async with Runtime(tmp_path / "home", agents=[ops], clock=clock) as rt:
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        for _ in range(4):
            await passes(rt, clock, HOUR)
    with pytest.raises(SystemExit):
        await asyncio.to_thread(main, ["why", "ops", "--json", "--store", str(tmp_path / "home" / "wakeful.db")])
    assert f"ops waits for the folder {folder}, which was missing" in capsys.readouterr().out
    if is_back:
        (tmp_path / "away").rename(folder)
    async with Runtime(tmp_path / "home", agents=[ops], clock=clock) as rt:
        await rt.settled()
        if not is_back:
            assert f"ops is held up: agent 'ops' works in {folder}" in (await rt.why("ops")).sentence
            (tmp_path / "away").rename(folder)
            await passes(rt, clock, LOOK_SECONDS)
        assert (await rt.answer(sent)).output == "done"
        assert (await deferrals(rt))[-1] == "the folder is back"
    assert clock.now() - NOON.timestamp() * 1e6 < (4 * HOUR + 60) * 1e6


@pytest.mark.parametrize("source", ["file", "api"])
async def test_an_agent_whose_folder_is_missing_when_the_runtime_starts_waits_for_it_and_is_not_parked(
    tmp_path: Path, source: str
) -> None:
    clock, home, folder = FixedClock(NOON), tmp_path / "home", tmp_path / "shop"
    folder.mkdir()
    (home / "agents").mkdir(parents=True)
    definition = {"name": "ops", "model": "scripted:demo", "workspace": str(folder)}
    async with Runtime(home, clock=clock) as rt:
        if source == "file":
            (home / "agents" / "ops.json").write_text(json.dumps(definition))
            await rt.reload()
        else:
            await rt.create(definition)
    folder.rename(tmp_path / "away")
    async with Runtime(home, clock=clock) as rt:
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, HOUR)
        assert "is held up" in (await rt.why("ops")).sentence
        record = await rt.agent("ops")
        assert (record.control, record.problems) == ("running", ())
        (tmp_path / "away").rename(folder)
        await passes(rt, clock, LOOK_SECONDS)
        assert (await rt.answer(sent)).status == "completed"


async def test_a_server_that_a_missing_folder_names_parks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, home, folder = FixedClock(NOON), tmp_path / "home", tmp_path / "shop"
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    folder.mkdir()
    (home / "agents").mkdir(parents=True)
    server = {"command": sys.executable, "args": [str(NOTES_SERVER), "serve"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": server}}))
    trust(folder)
    definition = {"name": "ops", "model": "scripted:demo", "workspace": str(folder), "mcp": ["notes"]}
    (home / "agents" / "ops.json").write_text(json.dumps(definition))
    folder.rename(tmp_path / "away")
    async with Runtime(home, clock=clock) as rt:
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, 1)
        record = await rt.agent("ops")
        assert (record.control, record.problems) == ("running", ())
        (tmp_path / "away").rename(folder)
        await passes(rt, clock, LOOK_SECONDS)
        result = await rt.answer(sent)
    assert result.status == "completed"
    async with open_store(home / "wakeful.db") as store:
        assert "read_note" in str(await store.tools(result.turn_id)), "the server of the folder was found"


async def test_an_agent_with_a_model_of_its_operators_waits_for_its_folder_too(tmp_path: Path) -> None:
    clock, folder = FixedClock(NOON), tmp_path / "shop"
    folder.mkdir()
    ops = Agent("ops", scripted(["never asked"]), workspace=folder)
    async with Runtime(tmp_path / "home", agents=[ops], clock=clock) as rt:
        await rt.set_model("ops", "scripted:demo")
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, 1)
        assert (await rt.agent("ops")).control == "running"
        (tmp_path / "away").rename(folder)
        await passes(rt, clock, LOOK_SECONDS)
        assert (await rt.answer(sent)).status == "completed"


async def test_a_new_agent_cannot_name_a_folder_that_is_not_there(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "home") as rt:
        with pytest.raises(InvalidConfig, match="gone is not a folder"):
            await rt.create({"name": "ops", "model": "scripted:demo", "workspace": str(tmp_path / "gone")})
        assert await rt.agents() == []
