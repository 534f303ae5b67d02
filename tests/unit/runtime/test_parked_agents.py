"""Agents that are paused because they cannot be run: by whom they stay so, and when they go on by themselves."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.wires.notice_receiver import passes
from wakeful import Agent, Runtime, tool, trust
from wakeful.errors import InvalidConfig
from wakeful.runtime.missing_folders import LOOK_SECONDS
from wakeful.service.living_runtime import WATCHDOG_SECONDS
from wakeful.testing import FixedClock, scripted

NOTES_SERVER = Path(__file__).parents[3] / "examples" / "notes_server.py"


@tool(effect="pure")
def look_up(order: str) -> str:
    """Find an order."""
    return f"order {order}"


async def test_an_agent_that_its_operator_paused_stays_paused_by_its_operator(tmp_path: Path) -> None:
    """It fails in the moment in which it is paused: what ends a pause for a failure does not end an operator's."""
    clock, began, goes_on = FixedClock(), asyncio.Event(), asyncio.Event()

    async def deps(context: Mapping[str, Any]) -> dict[str, str]:
        began.set()
        await goes_on.wait()
        raise InvalidConfig("no such database", "Make it.")

    factory: Any = deps
    broken = Agent("ops", scripted(["never"]), deps_type=dict[str, str], deps=factory)
    async with Runtime(tmp_path, agents=[broken], clock=clock) as rt:
        sent = await rt.send("ops", "Hello.")
        await began.wait()
        await rt.pause("ops", by="ann", reason="not now")
        goes_on.set()
        await rt.settled()
        record = await rt.agent("ops")
        assert (record.control, record.cause, record.reason) == ("paused", "operator", "not now")
    async with Runtime(tmp_path, agents=[Agent("ops", scripted(["done"]))], clock=clock) as rt:
        await passes(rt, clock, 60)
        assert (await rt.agent("ops")).control == "paused"
        await rt.resume("ops")
        assert (await rt.answer(sent)).output == "done"


async def test_an_agent_from_data_runs_again_when_a_runtime_has_its_tool_again(tmp_path: Path) -> None:
    async with Runtime(tmp_path, tools=[look_up], clock=FixedClock()) as rt:
        await rt.create({"name": "ops", "model": "scripted:demo", "tools": ["look_up"]})
    async with Runtime(tmp_path, clock=FixedClock()) as rt:
        sent = await rt.send("ops", "Hello.")
        await rt.settled()
        assert (await rt.agent("ops")).cause == "configuration"
    async with Runtime(tmp_path, tools=[look_up], clock=FixedClock()) as rt:
        assert (await rt.agent("ops")).control == "running"
        assert (await rt.answer(sent)).status == "completed"


def server_of_notes(folder: Path) -> None:
    server = {"command": sys.executable, "args": [str(NOTES_SERVER), "serve"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": server}}))


@pytest.mark.parametrize("source", ["file", "api", "code"])
async def test_an_agent_goes_on_by_itself_once_a_file_names_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """The folder is there before what is in it, as when a repository is cloned: nothing else tells of the file."""
    clock, home, folder = FixedClock(), tmp_path / "home", tmp_path / "shop"
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    folder.mkdir()
    (home / "agents").mkdir(parents=True)
    server_of_notes(folder)
    trust(folder)
    definition = {"name": "ops", "model": "scripted:demo", "workspace": str(folder), "mcp": ["notes"]}
    agents = [Agent("ops", "scripted:demo", workspace=folder, mcp=["notes"])] if source == "code" else []
    if source == "file":
        (home / "agents" / "ops.json").write_text(json.dumps(definition))
    async with Runtime(home, agents=agents, clock=clock) as rt:
        if source == "api":
            await rt.create(definition)
        folder.rename(tmp_path / "away")
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, 1)
        assert "that folder is not there" in (await rt.why("ops")).sentence
        folder.mkdir()
        await passes(rt, clock, LOOK_SECONDS)
        record = await rt.agent("ops")
        assert (record.control, record.cause) == ("paused", "configuration")
        for _ in range(3):
            await passes(rt, clock, WATCHDOG_SECONDS)
        changes = [each for each in await rt.replayed("ops") if each.envelope.kind == "agent.state_changed"]
        assert len(changes) == 1, "it is not let run in vain"
        server_of_notes(folder)
        await passes(rt, clock, WATCHDOG_SECONDS)
        assert (await rt.answer(sent)).status == "completed"
        assert (await rt.agent("ops")).control == "running"


async def test_a_file_that_was_never_right_is_read_again_once_its_server_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, home, folder = FixedClock(), tmp_path / "home", tmp_path / "shop"
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    folder.mkdir()
    (home / "agents").mkdir(parents=True)
    server_of_notes(folder)
    definition = {"name": "ops", "model": "scripted:demo", "workspace": str(folder), "mcp": ["notes"]}
    (home / "agents" / "ops.json").write_text(json.dumps(definition))
    async with Runtime(home, clock=clock) as rt:
        (problem,) = rt.problems()
        assert "which is not trusted yet" in problem.message
        sent = await rt.send("ops", "Go on.")
        await passes(rt, clock, WATCHDOG_SECONDS)
        assert (await rt.agent("ops")).cause == "configuration"
        trust(folder)
        await passes(rt, clock, WATCHDOG_SECONDS)
        assert (await rt.answer(sent)).status == "completed"
        assert rt.problems() == []
