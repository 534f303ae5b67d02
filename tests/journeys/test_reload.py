"""Files of a home that change while a runtime is at work: reloaded, refused with their line, or gone."""

import asyncio
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Runtime, tool
from wakeful.errors import InvalidRequest

GOOD = "name: ops\nmodel: scripted:{script}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    (tmp_path / "agents").mkdir()
    for words in ("one", "two", "three"):
        (tmp_path / f"{words}.yaml").write_text(f"- text: {words}\n")
    return tmp_path


def write(home: Path, words: str, more: str = "", name: str = "ops") -> Path:
    path = home / "agents" / f"{name}.yaml"
    path.write_text(f"name: {name}\nmodel: scripted:{home / words}.yaml\n{more}")
    return path


async def said(rt: Runtime, agent: str = "ops") -> str:
    return str((await rt.answer(await rt.send(agent, "Hello?"))).output)


async def changed(rt: Runtime, agent: str, revisions: int) -> None:
    """Until the agent has so many revisions, by whatever noticed its file."""
    async for _ in rt.follow(agent):
        if len(await rt.revisions(agent)) >= revisions:
            return


async def test_a_changed_file_is_in_force_without_anybody_asking(home: Path) -> None:
    write(home, "one")
    async with Runtime(home) as rt:
        assert await said(rt) == "one"
        write(home, "two")
        await changed(rt, "ops", 2)
        await rt.reload()  # waits for the reading that noticed it: the revision is a fact before it is in force
        assert await said(rt) == "two"
        first, second = reversed(await rt.revisions("ops"))
        assert (first.turns, second.turns, second.in_force) == (1, 1, True), (
            "each turn names the revision it began with"
        )


async def test_a_bad_file_is_told_with_its_line_and_the_last_good_one_runs_on(home: Path) -> None:
    path = write(home, "one")
    async with Runtime(home) as rt:
        assert await said(rt) == "one"
        write(home, "two", "max_stpes: 3\n")
        (problem,) = await rt.reload()
        assert (problem.place, problem.line, problem.hint) == (str(path), 3, "did you mean max_steps or max_tokens?")
        assert await said(rt) == "one"
        (ops,) = await rt.agents()
        assert (ops.control, ops.problems) == ("running", (problem,))
        assert (await rt.agent("ops")).problems == (problem,)
        write(home, "two")
        assert await rt.reload() == []
        (ops,) = await rt.agents()
        assert ops.problems == () and await said(rt) == "two"


async def test_an_agent_whose_file_is_gone_waits_and_goes_on_when_it_is_back(home: Path) -> None:
    path = write(home, "one")
    write(home, "two", name="desk")
    async with Runtime(home) as rt:
        assert await said(rt) == "one"
        path.unlink()
        assert await rt.reload() == []
        waiting = await rt.send("ops", "Are you there?")
        ops = await rt.agent("ops")
        assert (ops.control, ops.cause) == ("paused", "configuration")
        assert ops.reason.startswith(f"{path} is gone.")
        assert "is gone" in (await rt.why("ops")).sentence
        assert await said(rt, "desk") == "two"
    async with Runtime(home) as rt:
        assert (await rt.agent("ops")).control == "paused", "a restart changes nothing about it"
        write(home, "three")
        await rt.reload()
        assert (await rt.answer(waiting)).output == "three"
        with pytest.raises(InvalidRequest, match=f"agent 'ops' is defined in {path}"):
            await rt.update("ops", instructions="x")
        with pytest.raises(InvalidRequest, match=f"{path}"):
            await rt.delete("ops")


async def test_an_agent_of_a_file_that_is_back_is_let_run_with_its_code_in_place_as_are_those_it_made(
    home: Path,
) -> None:
    """What is let go before its code is in place is begun without it, and paused for good."""
    spawn = "- calls: [{name: spawn_agent, arguments: {preset: public_named, agent_id: digger}}]\n- text: made\n"
    (home / "maker.yaml").write_text(spawn)
    more = "spawn: public_named\nbudget: {per_run: {model_calls: 20}}\n"
    path = write(home, "maker", more)
    async with Runtime(home) as rt:
        assert await said(rt) == "made"
        path.unlink()
        assert await rt.reload() == []
        await rt.send("digger", "Dig.")
        await rt.settled()
        assert {each.agent: each.cause for each in await rt.agents()} == {
            "ops": "configuration",
            "digger": "configuration",
        }
        write(home, "maker", more)
        assert await rt.reload() == []
        assert {each.agent: each.control for each in await rt.agents()} == {"ops": "running", "digger": "running"}


async def test_a_tool_that_nobody_supplies_parks_its_agent_and_a_reload_after_the_file_is_mended_frees_it(
    home: Path,
) -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look it up."""
        return "found"

    path = write(home, "one", "tools: [look, lok]\n")
    write(home, "two", name="desk")
    async with Runtime(home, tools=[look]) as rt:
        (problem,) = rt.problems()
        assert (problem.line, problem.agent) == (3, "ops") and problem.hint.startswith("did you mean look?")
        ops = await rt.agent("ops")
        assert (ops.control, ops.cause, ops.problems) == ("paused", "configuration", (problem,))
        why = (await rt.why("ops")).sentence
        assert "names the tool 'lok', which was not supplied" in why and f"{path}:3" in why
        waiting = await rt.send("ops", "Hello?")
        assert await said(rt, "desk") == "two", "the others run"
        write(home, "one", "tools: [look]\n")
        assert await rt.reload() == []
        assert (await rt.answer(waiting)).output == "one"


async def test_the_owners_file_is_reloaded_as_a_whole_or_not_at_all(home: Path) -> None:
    owner = home / "wakeful.toml"
    write(home, "one")
    async with Runtime(home) as rt:
        assert await said(rt) == "one"
        owner.write_text('[models]\ndeny = ["scripted:*"]\nofline = true\n')
        (problem,) = await rt.reload()
        assert (problem.place, problem.line, problem.hint) == (str(owner), 3, "Did you mean offline?")
        assert await said(rt) == "one", "a file with an error changes nothing"
        owner.write_text('[models]\ndeny = ["scripted:*"]\n')
        assert await rt.reload() == []
        refused = await rt.answer(await rt.send("ops", "Hello?"))
        assert refused.status == "failed"
        owner.unlink()
        assert await rt.reload() == []
        assert await said(rt) == "one"
    owner.write_text("[modles]\n")


@pytest.mark.parametrize("is_at_work", [True, False])
async def test_another_process_has_the_files_read_again_by_a_fact_in_the_store(
    home: Path, is_at_work: bool, wakeful_process: Wakeful
) -> None:
    path = write(home, "one")
    asked = ("reload", "--store", str(home / "wakeful.db"))
    async with Runtime(home) as rt:
        assert await said(rt) == "one"
        if is_at_work:
            path.write_text("name: ops\nmodel: x\n")
            done = await asyncio.to_thread(wakeful_process, *asked)
            assert done.code == 2, done
            assert f"{path}:2: error: Agent 'ops': model='x' does not name a provider" in done.out
            status = await asyncio.to_thread(wakeful_process, "status", *asked[1:])
            assert "files that are not in force" in status.out and f"{path}:2" in status.out
            write(home, "two")
            done = await asyncio.to_thread(wakeful_process, *asked)
            assert (done.code, done.out) == (0, "the files were read: no errors\n")
            assert await said(rt) == "two"
    if not is_at_work:
        write(home, "two")
        done = await asyncio.to_thread(wakeful_process, *asked)
        assert done.code == 0 and "no runtime is at work" in done.out
        async with Runtime(home) as rt:
            assert await said(rt) == "two"


@pytest.fixture
def wakeful_process(home: Path) -> Wakeful:
    import os
    import subprocess

    from kit.surfaces.command_line import Done, command_line

    def call(*arguments: str) -> Done:
        done = subprocess.run(
            command_line(*arguments),
            cwd=home,
            env={**os.environ, "COLUMNS": "300"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call
