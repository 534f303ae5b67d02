"""Hooks that are commands, from the owner's file and from nowhere else."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, RunResult, run, tool
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import HookFailed, ToolFailed, ToolResult, WarningIssued
from wakeful.service.owner_hooks import owner_hooks
from wakeful.testing import scripted

SAYS_NO = """
import json, sys
call = json.load(sys.stdin)
print(json.dumps({"decision": "deny", "reason": "not " + call["tool"]}))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WAKEFUL_CONFIG", raising=False)
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def write(home: Path, program: str, **more: Any) -> None:
    """One hook, whose command is a Python program in the owner's folder."""
    (home / "hook.py").write_text(program)
    lines = {"command": [sys.executable, "hook.py"], "name": "checks", **more}
    body = "\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items())
    (home / "wakeful.toml").write_text(f"[[hooks]]\n{body}\n")


async def go(**more: Any) -> RunResult[str]:
    @tool(effect="pure")
    def look(place: str) -> str:
        """Look."""
        return f"seen {place}"

    agent = Agent("a", scripted([calls(("look", {"place": "attic"})), "done"], **more), tools=[look])
    return await run(agent, "go")


async def test_a_command_of_the_owners_file_is_asked_and_may_deny(home: Path) -> None:
    write(home, SAYS_NO)
    result = await go()
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.error_category, failed.status) == ("hook_blocked", "denied") and "not look" in failed.message
    (home / "wakeful.toml").unlink()  # without the file nothing holds it
    assert not of_kind(await go(), ToolFailed)


async def test_a_command_rewrites_arguments_and_replaces_outputs(home: Path) -> None:
    write(home, 'print(\'{"arguments": {"place": "cellar"}}\')')
    (done,) = of_kind(await go(), ToolResult)
    assert done.item.text == "seen cellar"
    write(home, 'print(\'{"output": "seen something"}\')', point="post_tool_use")
    (done,) = of_kind(await go(), ToolResult)
    assert done.item.text == "seen something"


@pytest.mark.parametrize(
    ("program", "category"),
    [
        ("import sys; sys.stderr.write('no database'); sys.exit(3)", "raised"),
        ("print('fine')", "invalid_answer"),
        ("print('[]')", "invalid_answer"),
        ('print(\'{"verdict": "allow"}\')', "invalid_answer"),
        ("print('x' * 1_000_000)", "invalid_answer"),
        ("import time; time.sleep(600)", "timeout"),
    ],
)
async def test_a_command_that_fails_has_denied_unless_it_only_looks(home: Path, program: str, category: str) -> None:
    seconds = 1.0 if category == "timeout" else 60.0
    write(home, program, timeout=seconds)
    result = await go()
    (failed,) = of_kind(result, HookFailed)
    assert (failed.error_category, failed.fail_mode) == (category, "closed") and of_kind(result, ToolFailed)
    write(home, program, timeout=seconds, on_error="open")
    result = await go()
    assert of_kind(result, WarningIssued) and not of_kind(result, ToolFailed)


async def test_a_command_that_is_not_there_has_denied(home: Path) -> None:
    write(home, "", command=["no-such-program-at-all"])
    result = await go()
    assert of_kind(result, ToolFailed) and "could not be started" in of_kind(result, HookFailed)[0].message


async def test_nothing_that_a_command_started_outlives_its_time(home: Path) -> None:
    program = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open("new", "w").write(f"{os.getpid()} {child.pid}")
os.rename("new", "pids")
time.sleep(600)
"""
    for seconds in (5.0, 20.0, 60.0):  # on a busy machine it may have been ended before it had started anything
        write(home, program, timeout=seconds)
        result = await go()
        assert of_kind(result, HookFailed)[0].error_category == "timeout"
        if (home / "pids").exists():
            break
    pids = [int(pid) for pid in (home / "pids").read_text().split()]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_command_gets_no_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("SOME_SECRET", "s")
    write(home, "import json, os; open('env', 'w').write(json.dumps(dict(os.environ)))")
    await go()
    environment = json.loads((home / "env").read_text())
    assert "PATH" in environment
    assert not {"OPENAI_API_KEY", "SOME_SECRET", "WAKEFUL_HOME"} & environment.keys()


async def test_a_workspaces_file_is_not_read(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked_out = tmp_path / "repository"
    checked_out.mkdir()
    write(checked_out, SAYS_NO)
    monkeypatch.chdir(checked_out)
    assert not of_kind(await go(), ToolFailed)
    monkeypatch.setenv("WAKEFUL_CONFIG", str(checked_out / "wakeful.toml"))  # named by its owner, it counts
    assert of_kind(await go(), ToolFailed)


async def test_a_file_that_cannot_be_read_lets_nothing_run(home: Path) -> None:
    (home / "wakeful.toml").write_text("[[hooks]\n")
    with pytest.raises(InvalidConfig, match="not TOML"):
        await go(leftover="ignore")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('command = "x"\npiont = "pre_tool_use"', "hooks\\[0\\].*piont"),
        ("command = []", "command"),
        ("", "command"),
        ('command = "x"\npoint = "before"', "no such point"),
        ('command = "x"\ntimeout = 0', "timeout"),
        ('command = "x"\non_error = "ignore"', "on_error"),
        ('command = "x"\nmatch = ""', "match"),
    ],
)
def test_a_mistake_is_told_with_its_place(home: Path, table: str, words: str) -> None:
    (home / "wakeful.toml").write_text(f"[[hooks]]\n{table}\n")
    with pytest.raises(InvalidConfig, match=words):
        owner_hooks({"WAKEFUL_HOME": str(home)}, frozenset)


def test_a_file_is_read_again_only_when_it_is_another(home: Path) -> None:
    write(home, SAYS_NO)
    first = owner_hooks({"WAKEFUL_HOME": str(home)}, frozenset)
    assert owner_hooks({"WAKEFUL_HOME": str(home)}, frozenset) is first
    write(home, SAYS_NO, match="look", timeout=7)
    (changed,) = owner_hooks({"WAKEFUL_HOME": str(home)}, frozenset)
    assert (changed.match, changed.timeout) == ("look", 7)
