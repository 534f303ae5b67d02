"""Commands under a supervisor: in the foreground, as a task, found again by another runtime, and ended."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import PYTHON, alive, marker, place_outside, sandbox, until
from wakeful.contracts.tasks import SupervisedEnd
from wakeful.processes import frames
from wakeful.processes.output_segments import read_output
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.processes.supervised_command import SupervisedCommand, find, read_end
from wakeful.sandbox.command_start import SpawnFailed
from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.settings import MachineLimits

MODES = pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])


class Started:
    """Starts commands in a workspace; what is left of them ends with the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "work"
        self.workspace.mkdir()
        self.commands: list[SupervisedCommand] = []
        self.places: dict[str, Sandbox] = {}

    async def __call__(self, script: str, mode: str = "bubblewrap", **options: Any) -> SupervisedCommand:
        limits = options.pop("limits", MachineLimits())
        where = self.places.setdefault(mode, sandbox(self.workspace, mode, limits=limits))
        command = await SupervisedCommand.start(where, ["sh", "-c", script], where.root, **options)
        self.commands.append(command)
        return command

    def folder(self, name: str = "task") -> str:
        """A task's folder, with its key."""
        place = self.root / name
        place.mkdir(mode=0o700)
        (place / frames.KEY).write_text(secrets.token_hex(16))
        return str(place)

    async def promoted(self, script: str, mode: str = "bubblewrap", **options: Any) -> tuple[SupervisedCommand, str]:
        """A command that has said `ready` and is a task now."""
        command = await self(script, mode, **options)
        assert await until(lambda: b"ready" in command.stdout.data)
        folder = self.folder()
        await command.promote(folder)
        assert await until(Path(folder, frames.CONTROL).exists)
        return command, folder


@pytest.fixture
async def start() -> AsyncIterator[Started]:
    with place_outside() as root:
        started = Started(root)
        yield started
        for command in started.commands:
            command.identity.kill()
            await command.end()
            assert await until(lambda command=command: not command.identity.is_alive())


async def ended(command: SupervisedCommand) -> SupervisedEnd:
    told = await command.wait()
    assert told is not None
    return told


@MODES
async def test_a_command_in_the_foreground_ends_as_it_would_without_a_supervisor(start: Started, mode: str) -> None:
    command = await start("echo out; echo err >&2; exit 3", mode)
    end = await command.ended()
    assert (end.exit_status, end.stopped, end.stdout.data, end.stderr.data) == (3, None, b"out\n", b"err\n")
    await command.end()
    assert not command.identity.is_alive()


@MODES
async def test_what_the_runtime_leaves_before_it_is_a_task_ends_with_all_it_started(start: Started, mode: str) -> None:
    name = marker()
    command = await start(f"setsid sleep {name} & sleep {name}", mode)
    assert await until(lambda: len(alive(name)) >= 2)
    await command.end()
    assert alive(name) == []
    assert not command.identity.is_alive()


@MODES
async def test_a_task_outlives_its_runtime_and_another_finds_it_and_hears_how_it_ends(
    start: Started, mode: str
) -> None:
    command, folder = await start.promoted("echo ready; read word; echo $word; exit 4", mode, accepts_input=True)
    await command.end()
    again = await find(folder, command.identity)
    assert isinstance(again, SupervisedCommand)
    assert await again.send_input(b"on\n") == 3
    end = await ended(again)
    assert (end.exit_status, end.stop_requested, end.total_bytes) == (4, False, 9)
    stored = read_output(folder, 100)
    assert stored is not None
    assert stored.head == b"ready\non\n"
    await again.end()
    assert await until(lambda: not command.identity.is_alive())
    assert await find(folder, command.identity) == end, "how it ended is read when nobody is there any more"


async def test_output_before_and_after_the_promotion_is_in_one_file(start: Started) -> None:
    command, folder = await start.promoted("echo ready; echo more >&2; read word; echo after", accepts_input=True)
    await command.send_input(b"\n")
    await ended(command)
    stored = read_output(folder, 100)
    assert stored is not None
    assert sorted(stored.head.splitlines()) == [b"after", b"more", b"ready"]


async def test_a_command_that_ended_before_it_was_promoted_leaves_how_it_ended_all_the_same(start: Started) -> None:
    command = await start("echo ready; exit 5")
    end = await ended(command)
    folder = start.folder()
    await command.promote(folder)
    assert await until(lambda: read_end(folder) is not None)
    assert read_end(folder) == end
    assert Path(folder, "output").read_bytes() == b"ready\n"


async def test_a_supervisor_that_was_not_promoted_in_time_leaves_nothing_to_be_found(start: Started) -> None:
    name = marker()
    command = await start(f"sleep {name}")
    assert await until(lambda: bool(alive(name)))
    folder = start.folder()
    ending = asyncio.ensure_future(command.end())
    assert await find(folder, command.identity) is None
    await ending
    assert alive(name) == []


@MODES
async def test_a_task_whose_supervisor_is_killed_ends_and_nobody_knows_how(start: Started, mode: str) -> None:
    name = marker()
    command, folder = await start.promoted(f"echo ready; sleep {name}", mode)
    assert command.identity.kill()
    assert await command.wait() is None
    found = await find(folder, command.identity)
    assert found is None or (isinstance(found, SupervisedCommand) and await found.wait() is None)
    if mode != "not_enforced":
        assert await until(lambda: alive(name) == [])


@MODES
async def test_a_task_that_is_stopped_is_asked_first(start: Started, mode: str) -> None:
    command, _ = await start.promoted("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done", mode)
    await command.stop()
    end = await ended(command)
    assert (end.exit_status, end.stop_requested) == (7, True)


@MODES
async def test_a_task_that_does_not_end_when_asked_is_killed_with_all_it_started(start: Started, mode: str) -> None:
    name = marker()
    script = f"trap '' TERM; setsid sleep {name} & echo ready; while :; do sleep 0.01; done"
    command, _ = await start.promoted(script, mode)
    await command.stop(0.05)
    end = await ended(command)
    assert (end.exit_status, end.stop_requested) == (137, True)
    assert await until(lambda: alive(name) == [])


@MODES
async def test_a_terminal_is_typed_into_and_its_transcript_is_one(start: Started, mode: str) -> None:
    script = "test -t 0 && echo ready; read word; echo got $word >&2"
    command, folder = await start.promoted(script, mode, tty=True, accepts_input=True)
    assert await command.send_input(b"typed\n") == 6
    assert (await ended(command)).exit_status == 0
    stored = read_output(folder, 200)
    assert stored is not None
    assert stored.head.replace(b"\r", b"") == b"ready\ntyped\ngot typed\n"


@MODES
async def test_a_command_that_takes_no_input_is_given_none(start: Started, mode: str) -> None:
    script = "echo ready; read word || echo none; while [ ! -e go ]; do sleep 0.01; done"
    command, _ = await start.promoted(script, mode)
    assert await command.send_input(b"typed\n") == 0
    (start.workspace / "go").touch()
    assert (await ended(command)).exit_status == 0


@MODES
async def test_the_end_of_input_can_be_said(start: Started, mode: str) -> None:
    command, folder = await start.promoted("echo ready; wc -c", mode, accepts_input=True)
    assert await command.send_input(b"12345") == 5
    await command.close_input()
    assert (await ended(command)).exit_status == 0
    stored = read_output(folder, 200)
    assert stored is not None
    assert stored.head.split() == [b"ready", b"5"]


async def test_a_limit_of_the_machine_holds_for_a_task(start: Started) -> None:
    name = marker()
    script = f"echo ready; read go; for i in $(seq 1 200); do sleep {name} & done; wait"
    command, _ = await start.promoted(script, limits=MachineLimits(processes=40), accepts_input=True)
    await command.send_input(b"\n")
    end = await ended(command)
    assert (end.exit_status, end.limit) == (None, "processes")
    assert await until(lambda: alive(name) == [])


async def test_a_command_that_cannot_be_started_says_so(start: Started) -> None:
    with pytest.raises(SpawnFailed, match="not found"):
        await SupervisedCommand.start(sandbox(start.workspace, "landlock"), ["/nothing/here"], str(start.workspace))


async def test_output_that_nobody_reads_makes_the_command_wait_and_is_not_lost(start: Started) -> None:
    size = 6_000_000
    command = await start(f"head -c {size} /dev/zero | tr '\\0' x; echo end >&2")
    end = await command.ended()
    assert (end.exit_status, end.stdout.total_bytes, end.stderr.data) == (0, size, b"end\n")


async def test_a_caller_without_the_key_is_shown_nothing_and_changes_nothing(start: Started) -> None:
    command, folder = await start.promoted("echo ready; read word; exit 9", accepts_input=True)

    def call(*said: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as line:
            handle = os.open(folder, os.O_RDONLY)
            line.connect(f"/proc/self/fd/{handle}/{frames.CONTROL}")
            os.close(handle)
            try:
                line.sendall(b"".join(said))
                line.shutdown(socket.SHUT_WR)
                return line.recv(1000)
            except OSError:
                return b""

    wrong = frames.message(key="0" * 32)
    attempts: list[tuple[bytes, ...]] = [
        (frames.message(stop=0),),
        (wrong, frames.message(stop=0)),
        (frames.frame(frames.INPUT, b"word\n"),),
        (b"\xff" * 5000,),
        (frames.frame(frames.MESSAGE, b"[]"),),
    ]
    for attempt in attempts:
        assert await asyncio.to_thread(call, *attempt) == b""
    assert command.identity.is_alive()
    known = frames.message(key=Path(folder, frames.KEY).read_text())
    assert b"promoted" in await asyncio.to_thread(call, known), "who has it is let in"
    assert await command.send_input(b"\n") == 1
    assert (await ended(command)).exit_status == 9


async def test_a_socket_that_another_process_listens_at_is_not_taken_for_the_supervisor(start: Started) -> None:
    folder = start.folder()
    listening = socket.socket(socket.AF_UNIX)
    handle = os.open(folder, os.O_RDONLY)
    listening.bind(f"/proc/self/fd/{handle}/{frames.CONTROL}")
    listening.listen()
    gone = ProcessIdentity.of(os.getpid())._replace(started=1)
    try:
        assert await find(folder, gone) is None
    finally:
        listening.close()
        os.close(handle)


ATTEMPT = """
import socket, sys
folder = sys.argv[1]
try:
    print("key", open(f"{folder}/key").read())
except OSError:
    print("no key")
try:
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(5)
    line.connect(f"{folder}/control")
    line.sendall(bytes.fromhex(sys.argv[2]))
    print("answer", line.recv(9))
except OSError:
    print("no socket")
"""


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("is_hidden", [True, False])
async def test_a_command_reads_no_key_of_a_task_and_gets_no_answer_at_its_socket(
    start: Started, mode: str, is_hidden: bool
) -> None:
    """Where the folder is not hidden, a command would have the key, and outside Landlock the answer too."""
    tasks = start.root / "tasks"
    tasks.mkdir(mode=0o700)
    options = {"hidden": (f"{tasks}/",)} if is_hidden else {"read_roots": (str(tasks),)}
    start.places[mode] = sandbox(start.workspace, mode, network="full", **options)
    (start.workspace / "attempt.py").write_text(ATTEMPT)
    start.root = tasks
    task, folder = await start.promoted("echo ready; read go; exit 8", mode, accepts_input=True)
    known = Path(folder, frames.KEY).read_text()
    said = frames.message(key="guess" if is_hidden else known).hex()
    attempt = [PYTHON, f"{start.places[mode].root}/attempt.py", folder, said]
    command = await SupervisedCommand.start(start.places[mode], attempt, start.places[mode].root)
    start.commands.append(command)
    heard = (await command.ended()).stdout.data.decode()
    if is_hidden:
        assert heard in ("no key\nno socket\n", "no key\nanswer b''\n")
    else:
        answer = "no socket" if mode == "landlock" else "answer b'm"
        assert heard.startswith(f"key {known}\n{answer}")
    assert await task.send_input(b"\n") == 1
    assert (await ended(task)).exit_status == 8


async def test_what_stands_in_for_places_stays_as_long_as_a_task_runs(start: Started) -> None:
    """Taken away while it is mounted over, a place could be made by the command."""
    script = "echo ready; read go; mkdir -p .wakeful; touch .wakeful/planted && echo planted"
    command, folder = await start.promoted(script, accepts_input=True)
    start.places["bubblewrap"].close()
    assert (start.workspace / ".wakeful").is_dir()
    await command.send_input(b"\n")
    await ended(command)
    stored = read_output(folder, 500)
    assert stored is not None
    assert b"planted\n" not in stored.head.replace(b"planted: ", b"")
    assert not (start.workspace / ".wakeful" / "planted").exists()


async def test_signals_to_the_supervisor_do_not_end_it_and_the_command_can_still_be_asked(start: Started) -> None:
    command, _ = await start.promoted("trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(command.identity.pid, number)
    await command.stop()
    assert (await ended(command)).exit_status == 6
