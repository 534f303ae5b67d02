"""Stores on a file system that cannot be written: everything that reads works there, and says the same.

The file system is a read-only mount, which holds for root too. Nothing can be made in it, not even for a moment.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kit.surfaces.command_line import Done, Wakeful, command_line

READERS = (
    "events", "unknown", "doctor", "replay TURN", "tree", "status", "cost", "budget", "approvals", "approvals rules",
    "requests", "context", "events TURN", "events validate", "workflow list", "task list", "debug latency",
    "debug prompt --turn TURN", "tools --turn TURN", "resume --list",
)  # fmt: skip


EACH_IN_A_CHILD = """
import json, os, sys
import wakeful.bootstrap.engines, wakeful.bootstrap.store_operations
from wakeful.surfaces.cli.main import main
ended = []
for arguments in json.load(sys.stdin):
    said = [os.memfd_create(name) for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        os.dup2(said[0], 1), os.dup2(said[1], 2)
        sys.argv = ["wakeful", *arguments]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended.append([code, *(os.pread(handle, 1 << 24, 0).decode() for handle in said)])
print(json.dumps(ended))
"""


def ageless(listed: str) -> str:
    """A list without the column that says how old each row is: it is another one a moment later."""
    return re.sub(r" +\d+ (?:s|min|h|d)\b *", " <age> ", re.sub("AGE +", "AGE ", listed))


def read_only(folder: Path, *arguments: str, temporary: str = "/dev/shm") -> Done:
    """A command, where every file system but a little memory is read-only."""
    done = _where_nothing_is_written(folder, command_line(*arguments), temporary)
    return Done(done.returncode, done.stdout, done.stderr)


def each_read_only(folder: Path, commands: Sequence[Sequence[str]]) -> list[Done]:
    """Commands one after the other, each in a child of a process there which has loaded what they need."""
    line = [sys.executable, "-P", "-c", EACH_IN_A_CHILD]
    done = _where_nothing_is_written(folder, line, "/dev/shm", json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [Done(*ended) for ended in json.loads(done.stdout)]


def _where_nothing_is_written(
    folder: Path, line: list[str], temporary: str, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("needs bubblewrap, to mount a file system read-only")
    mounts = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--chdir", str(folder)]
    if subprocess.run([*mounts, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("bubblewrap cannot mount anything here")
    environ = {**os.environ, "TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*mounts, *line], input=stdin, capture_output=True, text=True, timeout=120, check=False, env=environ
    )


@pytest.fixture
def cut_off(wakeful: Wakeful, process: Wakeful, folder: Path) -> str:
    """A turn that was killed inside a call. What it wrote is in the write-ahead log alone; a copy is beside it."""
    process("run", "ship it", "--model", "scripted:ship.yaml", "--tools", "shop:ship", "--store", "runs.db", crash=True)
    assert (folder / "runs.db-wal").stat().st_size > 0
    (folder / "runs.db-shm").unlink(missing_ok=True)
    (folder / "copy").mkdir()
    for file in folder.glob("runs.db*"):
        if file.is_file():
            shutil.copy(file, folder / "copy")
    listed = wakeful("events", "--store", "copy/runs.db").out
    return next(word for word in listed.split() if word.startswith("turn_"))


def test_after_a_kill_every_reading_command_says_what_it_says_on_a_copy(
    wakeful: Wakeful, folder: Path, cut_off: str
) -> None:
    before = {file.name: file.read_bytes() for file in folder.glob("runs.db*") if file.is_file()}
    commands = [command.replace("TURN", cut_off).split() for command in READERS]
    ended = each_read_only(folder, [[*arguments, "--store", "runs.db"] for arguments in commands])
    for command, arguments, done in zip(READERS, commands, ended, strict=True):
        there = wakeful(*arguments, "--store", "copy/runs.db")
        assert (done.code, done.err) == (there.code, there.err.replace("copy/runs.db", "runs.db")), command
        assert bool(done.out) == bool(there.out), command
    assert {file.name: file.read_bytes() for file in folder.glob("runs.db*") if file.is_file()} == before


def test_after_a_clean_end_they_say_it_too_and_a_run_says_why_it_cannot(wakeful: Wakeful, folder: Path) -> None:
    wakeful("run", "hello", "--store", "runs.db")
    assert not (folder / "runs.db-wal").exists()
    listed = wakeful("events", "--store", "runs.db").out
    turn = next(word for word in listed.split() if word.startswith("turn_"))
    assert ageless(read_only(folder, "events", "--store", "runs.db").out) == ageless(listed)
    assert (
        read_only(folder, "events", turn, "--store", "runs.db").out == wakeful("events", turn, "--store", "runs.db").out
    )
    healthy = read_only(folder, "doctor", "--store", "runs.db")
    assert healthy.code == 0 and "every event is unchanged" in healthy.out
    assert read_only(folder, "replay", turn, "--store", "runs.db").code == 0
    refused = read_only(folder, "run", "hello", "--store", "runs.db")
    assert refused.code == 1 and "cannot be opened for writing" in refused.err
    cancelled = read_only(folder, "cancel", turn, "--store", "runs.db")
    assert cancelled.code == 1 and "cannot be opened for writing" in cancelled.err


def test_a_lost_end_is_found_there_too(folder: Path, cut_off: str) -> None:
    (folder / "runs.db-wal").unlink()
    done = read_only(folder, "events", "--store", "runs.db")
    assert done.code == 1 and "has lost the end of its log" in done.err


def test_without_a_temporary_folder_what_needs_no_copy_is_read_and_the_rest_says_so(
    wakeful: Wakeful, folder: Path, cut_off: str
) -> None:
    refused = read_only(folder, "events", "--store", "runs.db", temporary="/nowhere")
    assert refused.code == 1 and "there is no temporary folder" in refused.err and "TMPDIR" in refused.err
    wakeful("run", "hello", "--store", "clean.db")
    done = read_only(folder, "events", "--store", "clean.db", temporary="/nowhere")
    assert (done.code, ageless(done.out)) == (0, ageless(wakeful("events", "--store", "clean.db").out))
