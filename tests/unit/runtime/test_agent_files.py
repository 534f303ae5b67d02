"""Agents of files and of data, through `Runtime`: loaded, changed, broken, and kept revision by revision."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Retention, Runtime, tool
from wakeful.bootstrap.store_operations import perform
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentCreated
from wakeful.errors import AgentNameTaken, InvalidConfig, InvalidRequest, StoreLocked, UnknownTool
from wakeful.ports import AdmissionAnswer, Store
from wakeful.service.operations.runtime import TEST_NOTICE, AgentControlRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.views.runtime_records import NoticeRecord

SCRIPT = "- text: {words}\n"


def written(home: Path, name: str, words: str, **fields: Any) -> Path:
    """A file of an agent whose script says these words."""
    (home / "agents").mkdir(parents=True, exist_ok=True)
    script = home / f"{name}-{len(words)}.yaml"
    script.write_text(SCRIPT.format(words=words))
    path = home / "agents" / f"{name}.yaml"
    path.write_text(json.dumps({"name": name, "model": f"scripted:{script}", **fields}))
    return path


async def said(rt: Runtime, agent: str) -> str:
    return str((await rt.answer(await rt.send(agent, "Hello?"))).output)


async def test_the_files_of_a_home_are_agents_and_a_changed_one_is_another_revision(tmp_path: Path) -> None:
    path = written(tmp_path, "ops", "one")
    async with Runtime(tmp_path) as rt:
        assert await said(rt, "ops") == "one"
        (first,) = await rt.agents()
        assert (first.agent, first.source) == ("ops", "file")
        written(tmp_path, "ops", "second")
        assert await rt.reload() == []
        assert await said(rt, "ops") == "second"
        (second,) = await rt.agents()
        assert second.revision != first.revision
        assert (await rt.definition("ops", first.revision))["model"].endswith("ops-3.yaml"), "every revision is kept"
        assert (await rt.definition("ops"))["model"].endswith("ops-6.yaml")
        with pytest.raises(InvalidRequest, match=f"agent 'ops' is defined in {path}"):
            await rt.update("ops", instructions="Other words.")


async def test_a_bad_file_leaves_its_agent_as_it_was_and_the_others_run(tmp_path: Path) -> None:
    written(tmp_path, "ops", "one")
    written(tmp_path, "desk", "two")
    async with Runtime(tmp_path) as rt:
        assert await said(rt, "ops") == "one"
    broken = tmp_path / "agents" / "ops.yaml"
    broken.write_text("name: ops\nmodel: [unclosed\n")
    async with Runtime(tmp_path) as rt:
        (problem,) = rt.problems()
        assert (problem.place, problem.agent) == (str(broken), "ops")
        assert "is not YAML" in problem.message
        assert await said(rt, "desk") == "two"
        assert await said(rt, "ops") == "one", "its last good definition is in force"
        written(tmp_path, "ops", "mended")
        assert await rt.reload() == []
        assert await said(rt, "ops") == "mended"


@pytest.mark.parametrize("place", ["/" + 5_000 * "x", "~nobody-of-that-name/shop"], ids=["long", "nobody"])
async def test_a_workspace_that_nobody_can_look_at_stops_its_agent_alone(tmp_path: Path, place: str) -> None:
    written(tmp_path, "desk", "one", workspace=place)
    written(tmp_path, "ops", "one")
    async with Runtime(tmp_path) as rt:
        assert (await rt.agent("ops")).control == "running"
        assert await said(rt, "ops") == "one"
        with pytest.raises(InvalidConfig, match="workspace"):
            await rt.create({"name": "helper", "model": "scripted:demo", "workspace": place})
        assert {agent.agent for agent in await rt.agents()} <= {"desk", "ops"}


async def test_a_file_whose_name_is_no_text_is_a_problem_of_that_file(tmp_path: Path) -> None:
    """The runtime did not start, and did not say which file it was."""
    written(tmp_path, "ops", "one")
    for name in (b"a\xff.yaml", b"z\xff.yaml"):
        (tmp_path / "agents" / os.fsdecode(name)).write_text("name: other\nmodel: scripted:demo\n")
    async with Runtime(tmp_path) as rt:
        assert [agent.agent for agent in await rt.agents()] == ["ops"]
        assert [Path(each.place).name for each in rt.problems()] == ["a\\xff.yaml", "z\\xff.yaml"]
        assert {(each.message, each.hint) for each in rt.problems()} == {
            ("the name of the file is not UTF-8 text", "Rename it.")
        }
        assert await rt.reload() == rt.problems()


async def test_a_file_that_is_called_otherwise_than_its_agent_is_known_by_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, "postman", "one").rename(tmp_path / "agents" / "mail.yaml")
    good = path.read_text()
    async with Runtime(tmp_path) as rt:
        assert await said(rt, "postman") == "one"
        path.write_text("name: postman\nmodel: [unclosed\n")
        (problem,) = await rt.reload()
        assert (problem.place, problem.agent) == (str(path), "postman")
        assert await said(rt, "postman") == "one", "its last good definition is in force"
    async with Runtime(tmp_path) as rt:
        (problem,) = rt.problems()
        assert problem.agent == "postman"
        assert await said(rt, "postman") == "one"
        assert await rt.notices() == []
        path.write_text(good)
        assert await rt.reload() == []


@pytest.mark.parametrize("place", [".", "..", "agents"])
async def test_a_workspace_that_is_the_home_stops_its_agent_alone(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    written(home, "aaa", "one", workspace=str(home / place))
    written(home, "zzz", "two")
    async with Runtime(home) as rt:
        for _ in range(2):
            (problem,) = rt.problems()
            assert (problem.agent, problem.field) == ("aaa", "workspace")
            assert "cannot be a workspace of agent 'aaa'" in problem.message
            assert await said(rt, "zzz") == "two", "those that are read after it, too"
            assert {each.agent: each.control for each in await rt.agents()} == {"aaa": "paused", "zzz": "running"}
            await rt.reload()
        with pytest.raises(InvalidRequest, match="cannot be a workspace"):
            await rt.create({"name": "made", "model": "scripted:demo", "workspace": str(home / place)})


async def test_an_agent_whose_tool_nobody_supplies_is_parked_and_runs_once_it_is_there(tmp_path: Path) -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look it up."""
        return "found"

    written(tmp_path, "ops", "one", tools=["look"])
    written(tmp_path, "desk", "two")
    async with Runtime(tmp_path, tools=[look]) as rt:
        assert await said(rt, "ops") == "one"
    async with Runtime(tmp_path) as rt:
        (problem,) = rt.problems()
        assert "names the tool 'look', which was not supplied" in problem.message
        waiting = await rt.send("ops", "Hello?")
        assert await said(rt, "desk") == "two"
        parked = next(agent for agent in await rt.agents() if agent.agent == "ops")
        assert (parked.control, parked.cause) == ("paused", "configuration")
        assert "names the tool 'look'" in parked.reason
    async with Runtime(tmp_path, tools=[look]) as rt:
        assert (await rt.answer(waiting)).output == "one"


async def test_an_agent_made_from_data_is_there_again_after_a_restart_and_can_be_changed(tmp_path: Path) -> None:
    for words in ("one", "second"):
        (tmp_path / f"{words}.yaml").write_text(SCRIPT.format(words=words))
    async with Runtime(tmp_path) as rt:
        made = await rt.create({"name": "helper", "model": f"scripted:{tmp_path / 'one.yaml'}"}, by="ada")
        assert (made.source, made.control) == ("api", "running")
        assert await said(rt, "helper") == "one"
    async with Runtime(tmp_path) as rt:
        assert await said(rt, "helper") == "one"
        changed = await rt.update("helper", model=f"scripted:{tmp_path / 'second.yaml'}")
        assert changed.revision != made.revision
        assert await said(rt, "helper") == "second"


class Interrupted(WrappedStore):
    """Takes so many facts of agents, and then none."""

    def __init__(self, inner: Store, takes: int) -> None:
        super().__init__(inner)
        self.left = takes

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        if agent_id == "helper":
            self.left -= 1
            if self.left < 0:
                raise StoreLocked("the disk is full", "Free some room.")
        return await self.inner.admit(agent_id, facts, **options)


async def test_an_agent_is_made_with_its_times_and_addresses_at_once_or_not_at_all(tmp_path: Path) -> None:
    """A process that is killed between two of these leaves no agent that never wakes, and none that cannot be made."""
    times = [{"cron": "0 7 * * *", "say": "Look."}, {"trigger": "ci", "say": "Look."}]
    definition = {"name": "helper", "model": "scripted:demo", "wake": times}
    for takes in (0, 1):
        store = MemoryStore()
        async with Runtime(store=Interrupted(store, takes)) as rt:
            with suppress(StoreLocked):
                await rt.create(definition)
        async with Runtime(store=store) as rt:
            if not takes:
                assert await rt.agents() == []
                await rt.create(definition)
            assert len(await rt.timers("helper")) == 1
            assert [each.name for each in await rt.triggers("helper")] == ["", "ci"]
            assert await said(rt, "helper")


async def test_an_agent_that_was_left_without_a_definition_can_be_made_again(tmp_path: Path) -> None:
    """As versions before 0.2.0 left it where they were killed."""
    store = MemoryStore()
    for name in ("helper", "main"):
        kind: Any = "default" if name == "main" else "named"
        half = AgentCreated(agent_name=name, agent_kind=kind, source="api", created_by="ada")
        await store.admit(name, [Fact(half, 1)])
    async with Runtime(store=store, model="scripted:demo") as rt:
        waiting = await rt.send("helper", "Hello?")
        await rt.settled()
        assert (await rt.why("helper")).state == "paused"
        await rt.create({"name": "helper", "model": "scripted:demo"})
        assert (await rt.answer(waiting)).output
        with pytest.raises(AgentNameTaken):
            await rt.create({"name": "helper", "model": "scripted:demo"})
        assert (await rt.answer(await rt.send(None, "Hello?"))).output


async def test_the_name_of_a_deleted_agent_in_a_file_is_a_problem_of_that_file(tmp_path: Path) -> None:
    written(tmp_path, "ops", "one")
    async with Runtime(tmp_path) as rt:
        await rt.create({"name": "helper", "model": "scripted:demo"})
        await rt.delete("helper")
        with pytest.raises(AgentNameTaken, match="was deleted, and cannot be used again"):
            await rt.create({"name": "helper", "model": "scripted:demo"})
    path = written(tmp_path, "helper", "one")
    for definition in (path.read_text(), '{"name": "helper", "model": 5}'):
        path.write_text(definition)
        async with Runtime(tmp_path) as rt:
            assert await said(rt, "ops") == "one"
            (problem,) = rt.problems()
            assert problem.agent == "helper"


async def test_what_cannot_be_an_agent_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Agent("ops", scripted(["x"]))]) as rt:
        with pytest.raises(InvalidConfig, match="has no field 'modle'"):
            await rt.create({"name": "helper", "modle": "x:y"})
        with pytest.raises(UnknownTool, match="names the tool 'pay'"):
            await rt.create({"name": "helper", "model": "scripted:demo", "tools": ["pay"]})
        with pytest.raises(InvalidRequest, match="there is an agent called 'ops' already"):
            await rt.create({"name": "ops", "model": "scripted:demo"})
        with pytest.raises(InvalidRequest, match="agent 'ops' is defined in the program"):
            await rt.update("ops", instructions="Other words.")
        with pytest.raises(InvalidRequest, match="has no revision"):
            await rt.definition("ops", "sha256:0")
        assert [agent.agent for agent in await rt.agents()] == ["ops"]
        written(tmp_path, "ops", "one")
        (problem,) = await rt.reload()
        assert problem.message == "the program has an agent called 'ops'"


async def test_words_of_another_file_are_in_the_revision_and_a_workspace_begins_at_the_home(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop").mkdir()
    path = written(tmp_path, "ops", "one", instructions_file="ops.AGENTS.md", tools=["coding"], workspace="shop")
    (path.parent / "ops.AGENTS.md").write_text("Look after the backups.")
    async with Runtime(tmp_path) as rt:
        assert await said(rt, "ops") == "one"
        first = await rt.definition("ops")
        assert first["instructions"] == "Look after the backups."
        assert first["workspace"] == str(tmp_path / "shop")
        (path.parent / "ops.AGENTS.md").write_text("Look after the mail.")
        assert await rt.reload() == []
        assert len(await rt.revisions("ops")) == 2
        assert '-instructions: "Look after the backups."' in await rt.diff("ops")


async def test_notices_go_where_the_owners_file_says_that_the_name_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    told = tmp_path / "told.jsonl"
    owner = tmp_path / "wakeful.toml"
    words = f"cat >> {told}; echo >> {told}"
    owner.write_text(f"[notify.phone]\nto = ['sh', '-c', '{words}']\nquiet = '00:00-00:00'\n")
    written(tmp_path, "ops", "one", notify={"to": "phone", "on": ["failure"]})
    async with Runtime(tmp_path) as rt:
        arrived = await notice(rt, tmp_path)
        assert (arrived.state, json.loads(told.read_text())["kind"]) == ("delivered", "test")
        owner.write_text("")
        (problem,) = await rt.reload()
        assert problem.line == 1 and "there is no [notify.phone]" in problem.message
        lost = await notice(rt, tmp_path)
        assert lost.state == "pending" and "there is no [notify.phone]" in lost.error


async def notice(rt: Runtime, home: Path) -> NoticeRecord:
    """Ask for a test notice and wait until it was tried."""
    tried = len(await rt.notices("ops")) + 1
    await perform(TEST_NOTICE, AgentControlRequest("ops"), home / "wakeful.db")
    async for event in rt.follow("ops"):
        tried -= event.type == "notice.attempted"
        if not tried:
            break
    return (await rt.notices("ops"))[0]


async def test_a_reload_takes_retention_over_and_warns_of_what_counts_from_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    owner = tmp_path / "wakeful.toml"
    written(tmp_path, "ops", "one")
    async with Runtime(tmp_path) as rt:
        assert rt._here.retention() == Retention()
        owner.write_text("[retention]\nturns = 7\n[log]\nformat = 'json'\n")
        (warning,) = await rt.reload()
        assert rt._here.retention() == Retention(turns=7)
        assert (warning.level, warning.field, warning.place) == ("warning", "log", str(owner))
        assert "wakeful daemon restart" in warning.hint
        assert [each.field for each in await rt.reload()] == ["log"], "as long as it differs"
        owner.write_text("[retention]\nturns = 'long'\n")
        (problem,) = await rt.reload()
        assert (problem.level, rt._here.retention()) == ("error", Retention(turns=7))
        owner.write_text("")
        assert await rt.reload() == []
    async with Runtime(tmp_path, retention=Retention(turns=3)) as rt:
        owner.write_text("[retention]\nturns = 7\n")
        await rt.reload()
        assert rt._here.retention() == Retention(turns=3), "the program's word"
