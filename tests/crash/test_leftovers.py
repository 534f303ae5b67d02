"""A runtime that is killed leaves nothing in the workspace: no stand-ins, no staged files, no repository with holes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crash import leftover_process
from crash.forked import run_forked
from kit.gates.confined_commands import level, until

PATCH = "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+one\n--- a/two\n+++ b/two\n@@ -1 +1 @@\n-2\n+two\n"
EDITS = [
    {"calls": [{"name": "wakeful/write_file", "arguments": {"path": "new/file", "content": "x"}}]},
    {"calls": [{"name": "wakeful/apply_patch", "arguments": {"patch": PATCH}}]},
    "Done.",
]


def started(root: Path, store: Path, steps: object) -> "subprocess.Popen[str]":
    """In a process of its own, to be killed from outside."""
    line = [sys.executable, leftover_process.__file__, str(root), str(store), json.dumps(steps)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def staged(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.name.endswith(".tmp")]


def test_killed_at_every_step_of_an_edit_and_resumed_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    were_left, die_at = 0, 1
    while True:
        root = tmp_path / str(die_at)
        root.mkdir()
        (root / "one").write_text("1\n")
        (root / "two").write_text("2\n")
        store = tmp_path / f"{die_at}.db"
        first = run_forked(leftover_process.main, root, store, EDITS, die_at)
        if first.returncode == 0:
            assert first.said == "completed\n"
            break
        assert first.returncode == -signal.SIGKILL, first.said
        were_left += bool(staged(root))
        assert run_forked(leftover_process.main, root, store, EDITS).said == "completed\n"
        assert staged(root) == [], f"killed at step {die_at}"
        assert [(root / name).read_text() for name in ("one", "two", "new/file")] == ["one\n", "two\n", "x"]
        die_at += 1
    assert were_left > 3, "the kills did leave something, and it was cleared away"


def asleep(name: str, cmd: str) -> list[object]:
    return [
        {"calls": [{"name": "wakeful/exec_command", "arguments": {"cmd": f"{cmd}; touch {name}; sleep 300"}}]},
        "Done.",
    ]


async def test_killed_while_a_command_runs_no_empty_folder_is_left(tmp_path: Path) -> None:
    level("bubblewrap")
    root = tmp_path / "workspace"
    root.mkdir()
    runtime = started(root, tmp_path / "s.db", asleep("begun", "true"))
    assert await until((root / "begun").exists)
    assert (root / ".git").is_dir(), "something stands in for it"
    runtime.kill()
    runtime.communicate()
    assert await until(lambda: [path.name for path in root.iterdir()] == ["begun"])


async def test_of_two_runtimes_one_that_is_killed_takes_nothing_from_the_other(tmp_path: Path) -> None:
    level("bubblewrap")
    root = tmp_path / "workspace"
    root.mkdir()
    runtimes = [started(root, tmp_path / f"{name}.db", asleep(name, "true")) for name in ("one", "two")]
    assert await until(lambda: (root / "one").exists() and (root / "two").exists())
    runtimes[0].kill()
    runtimes[0].communicate()
    assert not await until(lambda: not (root / ".git").exists(), seconds=3), "the other one needs it"
    runtimes[1].kill()
    runtimes[1].communicate()
    assert await until(lambda: not (root / ".git").exists())


@pytest.mark.parametrize("loses", ["rm -rf .git", "git branch -D side; rm -rf .git/logs; git gc -q --prune=now"])
async def test_history_that_a_command_lost_before_the_runtime_was_killed_is_back_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses: str
) -> None:
    level("bubblewrap")
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "state"))
    root = tmp_path / "workspace"
    git = ["git", "-C", str(root), "-c", "user.name=o", "-c", "user.email=o@example.com"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "checkout", "-q", "-b", "side"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "second"], check=True)
    tip = subprocess.run([*git, "rev-parse", "side"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([*git, "checkout", "-q", "main"], check=True)
    runtime = started(root, tmp_path / "s.db", asleep("begun", loses))
    assert await until((root / "begun").exists)
    runtime.kill()
    runtime.communicate()
    look = [*git, "rev-list", "--all", "--reflog"]
    known = subprocess.run(look, capture_output=True, text=True, check=False).stdout.split()
    assert tip not in known, "it is lost"
    steps = [{"calls": [{"name": "wakeful/exec_command", "arguments": {"cmd": "git log -1"}}]}, "Done."]
    said, _ = started(root, tmp_path / "t.db", steps).communicate()
    assert said == "completed\n"
    assert tip in subprocess.run(look, capture_output=True, text=True, check=True).stdout.split()
    assert os.listdir(tmp_path / "state/repositories") == []  # noqa: PTH208


async def test_a_repository_that_is_gone_altogether_is_found_by_what_was_recorded_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "state"))
    root = tmp_path / "workspace"
    nested = root / "vendor/lib"
    subprocess.run(["git", "init", "-q", str(nested)], check=True)
    git = ["git", "-C", str(nested), "-c", "user.name=o", "-c", "user.email=o@example.com"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    runtime = started(root, tmp_path / "s.db", asleep("begun", "rm -rf vendor/lib/.git"))
    assert await until((root / "begun").exists)
    runtime.kill()
    runtime.communicate()
    assert not (nested / ".git").exists()
    steps = [{"calls": [{"name": "wakeful/exec_command", "arguments": {"cmd": "true"}}]}, "Done."]
    said, _ = started(root, tmp_path / "t.db", steps).communicate()
    assert said == "completed\n"
    told = subprocess.run([*git, "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert told.stdout == "first\n"
