"""A hostile agent plants programs where the runtime might look for them: none of them is started outside a sandbox.

An activated virtual environment in the workspace is the usual way for such a folder to come first on the PATH.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.gates.confined_commands import level, place_outside, said, sandbox, sh
from kit.gates.hostile_model import command
from kit.gates.planted import path_without_bubblewrap, plant, run_program
from kit.surfaces.command_line import command_line
from wakeful import from_mcp, programs
from wakeful.sandbox import level_probe
from wakeful.tools.command_hooks import CommandFailed, CommandHook
from wakeful.tools.hooks import HookInput
from wakeful.workspaces.git import run_git

NAMES = ("setsid", "bwrap", "git", "sh", "bash", "python", "python3", "env", "true")

SESSION = """
import asyncio, json
from wakeful import Agent, run
from wakeful.testing import scripted
steps = json.load(open("steps.json"))
agent = Agent("hostile", scripted([*steps, "done"], leftover="ignore"), workspace="work")
result = asyncio.run(run(agent, "go", store="work/runs.db"))
held = {entry.fact.event.mode for entry in result.facts() if entry.fact.event.kind == "sandbox.applied"}
print(result.status, held, [call.result or call.error for call in result.calls()])
"""


def on_path(folder: Path) -> str:
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("confined_by", ["bubblewrap", "landlock"])
def test_a_program_planted_in_the_workspace_is_started_neither_in_this_session_nor_in_the_next(
    confined_by: str,
) -> None:
    level(confined_by)
    with place_outside() as owner, path_without_bubblewrap() as without:
        work, mark = owner / "work", owner / "mark"
        bin_folder = work / ".venv/bin"
        bin_folder.mkdir(parents=True)
        planting = "; ".join(
            f"printf '#!/bin/sh\\ntouch {mark}\\n' > .venv/bin/{name} && chmod +x .venv/bin/{name}" for name in NAMES
        )
        calls = [command(planting), command("echo plain"), command("echo in a terminal", tty=True)]
        steps = [{"calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
        (owner / "steps.json").write_text(json.dumps(steps))
        path = f"{bin_folder}:{os.environ['PATH'] if confined_by == 'bubblewrap' else without}"
        for session in ("this", "next"):
            done = run_program(sys.executable, SESSION, owner, path)
            assert done.returncode == 0, done.stderr
            assert f"completed {{'{confined_by}'}}" in done.stdout, (session, done.stdout)
            assert "plain" in done.stdout, (session, done.stdout, done.stderr)
            assert "in a terminal" in done.stdout, (session, done.stdout)
            assert not mark.exists(), session
        assert sorted(each.name for each in bin_folder.iterdir()) == sorted(NAMES), "they are there"
        found = shutil.which("setsid", path=path)
        assert found == str(bin_folder / "setsid"), "a plain search finds what was planted"
        subprocess.run([found], check=True)
        assert mark.exists(), "and it would have run"


async def test_no_program_of_the_runtime_is_taken_from_a_write_root_or_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = level("bubblewrap").program
    with place_outside() as work:
        mark = work / "mark"
        for folder in (work / "bin", tmp_path):
            for name in ("git", "bwrap", "server", "hook"):
                plant(folder, name, mark)
        monkeypatch.setenv("PATH", f"{work / 'bin'}:{tmp_path}:relative:{os.environ['PATH']}")
        assert programs.find("server") == str(work / "bin/server"), "nobody may write there yet"
        where = sandbox(work, "bubblewrap")
        assert programs.find("server") is None
        assert programs.find("git") == str(Path("/usr/bin/git").resolve())
        assert [folder for folder in programs.search_path().split(":") if str(work) in folder] == []
        assert level_probe.bubblewrap().program == real
        run_git(["--version"], work)
        source = from_mcp("odd", command=["server"])
        withheld = (await source.offer()).withheld
        await source.close()
        assert f"{work}/bin/server is where an agent may write; name it with its path" in str(withheld)
        with pytest.raises(CommandFailed, match=r"hook could not be started: .* only where an agent may write"):
            await CommandHook(("hook",), str(work), lambda: dict(os.environ))(
                HookInput(point="pre_tool_use", tool="t", arguments={})
            )
        assert said(await sh(where, "echo x")) == "x\n"
        assert not mark.exists()


MAKE_HOME = """
import asyncio, os
os.environ["WAKEFUL_HOME"] = os.path.abspath("home")
from wakeful import Agent, Runtime
from wakeful.testing import scripted

async def once():
    async with Runtime("home", agents=[Agent("ops", scripted(["fine"]))]):
        pass

asyncio.run(once())
"""


@contextmanager
def owner_with_planted_programs() -> Iterator[tuple[Path, Callable[..., str]]]:
    """An owner's folder with a home, and a command that runs with a planted program of every name first on the PATH."""
    with place_outside() as owner:
        assert run_program(sys.executable, MAKE_HOME, owner, os.environ["PATH"]).returncode == 0

        def call(*words: str, bin_folder: Path, cwd: Path, virtual_env: Path | None = None) -> str:
            for name in NAMES:
                plant(bin_folder, name, owner / "mark")
            activated = {"VIRTUAL_ENV": str(virtual_env)} if virtual_env is not None else {}
            done = subprocess.run(
                command_line(*words),
                cwd=cwd,
                env={"PATH": on_path(bin_folder), "HOME": str(owner), "WAKEFUL_HOME": f"{owner}/home", **activated},
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield owner, call


@pytest.mark.parametrize("words", [("doctor",), ("workspace", "attach", "ops", "."), ("workspace", "list", "ops")])
@pytest.mark.parametrize("place", ["activated environment", "folder below the current one"])
def test_no_command_starts_a_program_of_the_place_where_its_user_works(words: tuple[str, ...], place: str) -> None:
    level("bubblewrap")
    with owner_with_planted_programs() as (owner, call):
        work, elsewhere = owner / "work", owner / "elsewhere"
        work.mkdir()
        if place == "activated environment":
            elsewhere.mkdir()
            call(*words, bin_folder=work / ".venv/bin", cwd=elsewhere, virtual_env=work / ".venv")
        else:
            call(*words, bin_folder=work / "node_modules/.bin", cwd=work)
        assert not (owner / "mark").exists()
        subprocess.run([shutil.which("bwrap", path=on_path(next(work.glob("*/*bin"))))], check=True)  # type: ignore[list-item]
        assert (owner / "mark").exists(), "a plain search finds it, and it would have run"


def test_no_command_starts_a_program_of_a_workspace_that_is_attached_in_the_store() -> None:
    level("bubblewrap")
    with owner_with_planted_programs() as (owner, call):
        work, elsewhere, tools = owner / "work", owner / "elsewhere", owner / "tools"
        for folder in (work, elsewhere, tools):
            folder.mkdir()
        assert "where an agent may write" not in call("doctor", bin_folder=tools, cwd=elsewhere)
        assert (owner / "mark").exists(), "a folder of the owner's own is a place for programs"
        (owner / "mark").unlink()
        call("workspace", "attach", "ops", str(work), bin_folder=work / "bin", cwd=elsewhere)
        told = call("doctor", bin_folder=work / "bin", cwd=elsewhere)
        assert "bubblewrap" in told
        assert not (owner / "mark").exists()


def test_the_root_and_a_home_are_no_place_where_agents_work_only_because_somebody_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with place_outside() as home:
        program = plant(home / "bin", "tool", home / "mark")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PATH", on_path(home / "bin"))
        monkeypatch.chdir("/")
        assert programs.find("tool") == str(program)
        monkeypatch.chdir(home)
        assert programs.find("tool") == str(program)
        monkeypatch.chdir(home / "bin")
        assert programs.find("tool") is None
        assert programs.find_guarded("tool").problem == f"{program} is not used: it is where an agent may write"
        monkeypatch.chdir("/")
        monkeypatch.setenv("VIRTUAL_ENV", str(home / "bin/.."))
        assert programs.find("tool") == str(program), "a home as it may be written"
        monkeypatch.setenv("VIRTUAL_ENV", str(home / "bin"))
        assert programs.find("tool") is None


def test_a_link_from_elsewhere_into_a_write_root_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with place_outside() as folder:
        work, tools = folder / "work", folder / "tools"
        program = plant(work, "setsid", folder / "mark")
        tools.mkdir()
        (tools / "setsid").symlink_to(program)
        (folder / "bin").symlink_to(work)
        monkeypatch.setenv("PATH", f"{tools}:{folder / 'bin'}:{os.environ['PATH']}")
        assert programs.find("setsid") == str(tools / "setsid"), "as long as no agent may write there"
        sandbox(work, "not_enforced")
        assert programs.find("setsid") == str(Path("/usr/bin/setsid").resolve())


def test_what_an_owner_configured_may_come_from_the_environment_that_wakeful_runs_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read-only for agents, and whoever could write it would not need a program there."""
    with place_outside() as work:
        (work / ".venv/bin").mkdir(parents=True)
        for name in ("server", "bwrap"):
            plant(work / ".venv/bin", name, work / "mark")
        monkeypatch.setenv("PATH", on_path(work / ".venv/bin"))
        sandbox(work, "not_enforced")
        assert programs.find("server", owners=True) is None, "another environment is the agent's to write"
        monkeypatch.setattr(sys, "prefix", str(work / ".venv"))
        assert programs.find("server", owners=True) == str(work / ".venv/bin/server")
        assert programs.find("server") is None
        assert programs.find_guarded("bwrap").path == level("bubblewrap").program


def looser(folder: Path) -> dict[str, Path]:
    return {"the program": folder / "bin/bwrap", "its folder": folder / "bin", "a folder above": folder}


@pytest.mark.parametrize("what", ["the program", "its folder", "a folder above"])
def test_a_bubblewrap_that_other_users_could_exchange_is_not_used(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    with place_outside() as folder:
        folder.chmod(0o755)
        real = Path(level("bubblewrap").program)
        (folder / "bin").mkdir()
        shutil.copy2(real, folder / "bin/bwrap")
        monkeypatch.setenv("PATH", str(folder / "bin"))
        assert programs.find_guarded("bwrap").path == str(folder / "bin/bwrap"), "as it is, it may be used"
        place = looser(folder)[what]
        place.chmod(place.stat().st_mode | 0o002)
        assert programs.find_guarded("bwrap").path == ""
        reason = level_probe.bubblewrap().reason
        assert f"{folder}/bin/bwrap is not used: other users may write {place}" in reason
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{real.parent}")
        assert programs.find_guarded("bwrap").path == str(real), "the next one on the PATH is"


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])
async def test_a_command_in_a_terminal_has_it_for_its_own(tmp_path: Path, mode: str) -> None:
    ended = await sh(sandbox(tmp_path, mode), "echo to the terminal > /dev/tty && test -t 0 && echo yes", tty=True)
    assert ended.stdout.data.decode().split() == ["to", "the", "terminal", "yes"]


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_the_terminal_of_another_program_is_out_of_reach(tmp_path: Path, mode: str) -> None:
    """A person may be asked there: a command neither writes what they read nor reads what they type."""
    ours, theirs = os.openpty()
    try:
        attempt = f"echo APPROVED > {os.ttyname(theirs)}"
        ended = await sh(sandbox(tmp_path, mode), attempt)
        assert ended.exit_status != 0
        os.set_blocking(ours, False)
        with pytest.raises(BlockingIOError):
            os.read(ours, 100)
        await sh(sandbox(tmp_path, "not_enforced"), attempt)
        assert b"APPROVED" in os.read(ours, 100), "without a sandbox it is written there"
    finally:
        os.close(ours)
        os.close(theirs)
