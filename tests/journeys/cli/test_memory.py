"""`wakeful memory`: a person lists, shows, corrects and forgets what an agent remembers, without its process."""

import asyncio
import json
from pathlib import Path

import pytest

from kit.runs.engine_runs import calls
from kit.surfaces.command_line import ME, Wakeful
from wakeful import Agent, Runtime
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


@pytest.fixture
def home(folder: Path) -> Path:
    """A home whose agent has a note, and a turn behind it that looked something up."""
    notes = folder / "rt" / "agents" / "ops" / "memory"
    notes.mkdir(parents=True)
    (notes / "self.md").write_text("# Server\nThe backup server is orca.\n")

    def answer(request: ModelRequest) -> object:
        if request.history[-1].role == "tool":
            return "It is orca."
        return calls(("memory_search", {"query": "backup server"}))

    async def live() -> None:
        async with Runtime(folder / "rt", agents=[Agent("ops", scripted(answer), memory=True)]) as rt:
            await rt.answer(await rt.send("ops", "Which server?"))

    asyncio.run(live())
    return folder


def test_memory_is_listed_shown_corrected_and_forgotten(wakeful: Wakeful, home: Path) -> None:
    store = ("--store", "rt/wakeful.db")
    table = wakeful("memory", "list", "ops", *store).out
    assert table.split()[:6] == ["REF", "KIND", "WRITTEN", "USED", "FROM", "TITLE"]
    assert "It is orca." in table and "Server" in table
    (entry,) = json.loads(wakeful("memory", "list", "ops", "--find", "backup", "--json", *store).out)
    assert (entry["kind"], entry["source_path"], entry["uses"]) == ("self", "memory/self.md", 1)
    ref = entry["source_ref"]
    shown = wakeful("memory", "show", "ops", ref[:12], *store).out
    assert "memory/self.md" in shown and "used 1 times" in shown and "The backup server is orca." in shown
    edited = wakeful("memory", "edit", "ops", ref, "The backup server is beluga.", *store).out
    assert "has the new text" in edited
    assert json.loads(wakeful("memory", "show", "ops", ref, "--json", *store).out)["edited_by"] == ME
    assert "forgotten: Server" in wakeful("memory", "forget", "ops", ref, *store).out
    assert "remembers nothing with these words" in wakeful("memory", "list", "ops", "--find", "beluga", *store).out
    working = wakeful("memory", "show", "ops", *store).out
    assert "revision 1; prompts begin with" in working and "result: It is orca." in working
    why = wakeful("why", "call_1_1", *store).out
    assert f"these entries were shown: {ref}" in why.replace("\n", " ")


def test_a_wrong_agent_or_entry_is_told_with_what_there_is(wakeful: Wakeful, home: Path) -> None:
    store = ("--store", "rt/wakeful.db")
    wrong = wakeful("memory", "show", "ops", "mem_nothing", *store)
    assert "agent 'ops' has no memory entry 'mem_nothing'" in wrong.err and "wakeful memory list ops" in wrong.err
    wrong = wakeful("memory", "list", "nobody", *store)
    assert "has no agent 'nobody'" in wrong.err and "ops" in wrong.err
