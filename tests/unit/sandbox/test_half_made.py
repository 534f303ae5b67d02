"""A runtime is killed while bubblewrap makes a sandbox: nothing of it stays.

Bubblewrap is two processes then. The first says its number and lets the second go on, which waits for nobody else.
"""

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kit.gates.confined_commands import sandbox, until
from wakeful.sandbox.command_process import CommandPipes
from wakeful.sandbox.command_start import PreparedLine, spawn
from wakeful.sandbox.process_watch import descendants
from wakeful.sandbox.sweep import sweeping


@pytest.fixture
def holding() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def prepared(argv: list[str], root: Path, pipes: CommandPipes, holding: ExitStack) -> PreparedLine:
    where = sandbox(root, "bubblewrap")
    holding.callback(where.close)
    return await where.prepare(argv, str(root), pipes, holding)


def started(start: PreparedLine, holding: ExitStack) -> "subprocess.Popen[bytes]":
    """Its first process, which leads a group of all of them. Nothing of it outlives the test."""
    first = spawn(start, holding).process

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()

    holding.callback(end)
    return first


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_runtime_that_is_gone_before_the_first_word_leaves_nothing_of_a_sandbox(
    tmp_path: Path, holding: ExitStack
) -> None:
    pipes = CommandPipes(holding)
    start = await prepared(["touch", "begun"], tmp_path, pipes, holding)
    nothing = os.open(os.devnull, os.O_RDONLY)
    holding.callback(os.close, nothing)
    os.dup2(nothing, pipes.reads, inheritable=False)  # nobody reads what it says,
    pipes.hang_up()  # and nobody will say that the command may begin
    first = started(start, holding)
    pipes.spawned()
    assert await until(lambda: first.poll() is not None)
    assert await until(lambda: not is_there(first.pid))
    assert not (tmp_path / "begun").exists()


async def without_its_first_process(
    root: Path, holding: ExitStack, argv: tuple[str, ...] = ("sleep", "300"), *, goes_on: bool = False
) -> int:
    """A sandbox whose first process was killed while it was made: a handle of the second. That waits for the first; or
    it `goes_on`, and the word that its command may begin was said."""
    pipes = CommandPipes(holding)
    os.set_blocking(pipes.tells, False)
    with suppress(BlockingIOError):  # nobody takes anything out, so that the first will wait with its word
        while os.write(pipes.tells, b"\n" * 4096):
            pass
    os.set_blocking(pipes.tells, True)
    first = started(await prepared([*argv], root, pipes, holding), holding)
    assert await until(lambda: descendants(first.pid))
    second = os.pidfd_open(descendants(first.pid)[0])
    holding.callback(os.close, second)
    if goes_on:
        signal.pidfd_send_signal(second, signal.SIGSTOP)
        pipes.spawned()
        assert await pipes.started()
        pipes.go()
        assert await until(lambda: "State:\tS" in Path(f"/proc/{first.pid}/status").read_text())
    first.kill()
    first.wait()
    if goes_on:
        signal.pidfd_send_signal(second, signal.SIGCONT)
    return second


def has_ended(handle: int) -> bool:
    return bool(select.select([handle], [], [], 0)[0])


def sweep(root: Path) -> None:
    """As when a runtime in this workspace was killed, and nothing stands in for anything."""
    subprocess.run(sweeping(), input=json.dumps(str(root)).encode(), check=True, timeout=60)


async def test_what_waits_for_a_process_that_was_killed_with_the_runtime_is_ended(
    tmp_path: Path, holding: ExitStack
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    here = await without_its_first_process(tmp_path / "here", holding)
    elsewhere = await without_its_first_process(tmp_path / "elsewhere", holding)
    sweep(tmp_path / "here")
    assert await until(lambda: has_ended(here))
    assert not has_ended(elsewhere), "another workspace, another runtime; and it would wait for ever"
    sweep(tmp_path / "elsewhere")
    assert await until(lambda: has_ended(elsewhere))


async def test_a_command_does_not_run_on_without_its_runtime(tmp_path: Path, holding: ExitStack) -> None:
    """The kernel ends the second process with the first only where the sandbox was whole before."""
    beats = ("sh", "-c", "while :; do echo >> beats; sleep 0.1; done")
    second = await without_its_first_process(tmp_path, holding, beats, goes_on=True)
    assert await until((tmp_path / "beats").exists), "nobody is there who could end it"
    sweep(tmp_path)
    assert await until(lambda: has_ended(second))


async def test_a_sandbox_of_a_runtime_that_lives_is_left_alone(tmp_path: Path, holding: ExitStack) -> None:
    pipes = CommandPipes(holding)
    start = await prepared(["touch", "begun"], tmp_path, pipes, holding)
    first = started(start, holding)
    pipes.spawned()
    assert await pipes.started()
    assert await until(lambda: len(descendants(first.pid)) >= 2), "it is made, and waits for the word"
    sweep(tmp_path)
    pipes.go()
    assert await until(lambda: first.poll() is not None)
    assert (first.returncode, (tmp_path / "begun").exists()) == (0, True)
