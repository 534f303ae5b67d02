"""The runtime's end of a supervisor: a command that is started, read, promoted to a task, told things, and found again.

As long as it is in the foreground its output comes here, and it ends when `end` is called or this process does. After
`promote` it goes on whatever happens here; `find` in another process gets it back, or how it ended.
"""

import asyncio
import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from wakeful.contracts.tasks import SupervisedEnd
from wakeful.processes.frames import (
    CONTROL,
    END,
    INPUT,
    KEY,
    MESSAGE,
    STDERR,
    STDOUT,
    BadFrame,
    FrameReader,
    frame,
    message,
    read_message,
)
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.sandbox.capture import KEPT_BYTES, StreamCapture
from wakeful.sandbox.command_process import (
    GRACE_SECONDS,
    ChildProcess,
    CommandEnd,
    CommandPipes,
    ShownOutput,
    ShowOutput,
    Stopped,
)
from wakeful.sandbox.command_start import PreparedLine, SpawnFailed
from wakeful.sandbox.confinement import MADE_AGAIN, SOCKETS_COME_AND_GO, Sandbox, lost_a_socket
from wakeful.sandbox.level_probe import interpreter
from wakeful.sandbox.package_files import held_package

STOP_GRACE_SECONDS = 5.0
"""How long a task may take to end by itself after it was asked to."""
_LOOK_AGAIN = 0.02
_ANSWER_SECONDS = 30.0
"""How long a supervisor that runs and was not promoted may take to end."""
_PEER = struct.Struct("iII")
_LIMITS: Mapping[str, Stopped] = {"processes": "processes", "memory": "memory", "growth": "growth"}


class SupervisedCommand:
    """One command under its supervisor."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        identity: ProcessIdentity,
        process: ChildProcess | None = None,
        *,
        line: Sequence[str] = (),
        show: ShowOutput = lambda stream, text: None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._writer = writer
        self._process = process
        """The supervisor, where it is a child of this process."""
        self.identity = identity
        self.line = line
        """The whole line that was started, with the sandbox."""
        self.stdout = StreamCapture(lambda text: show("stdout", text), kept_bytes)
        self.stderr = StreamCapture(lambda text: show("stderr", text), kept_bytes)
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[SupervisedEnd | None] = loop.create_future()
        self._answers: asyncio.Queue[int | None] = asyncio.Queue()
        self._talking = asyncio.Lock()
        self._made = asyncio.Event()
        """It runs in its sandbox."""
        self.folder: str | None = None
        """Of the task, once it is one."""
        self._listening = loop.create_task(self._listen(reader))

    @classmethod
    async def start(
        cls,
        sandbox: Sandbox,
        argv: Sequence[str],
        cwd: str,
        *,
        tty: bool = False,
        accepts_input: bool = False,
        show: ShowOutput = lambda stream, text: None,
        kept_bytes: int = KEPT_BYTES,
    ) -> "SupervisedCommand":
        """Start a command, held as the sandbox says. It runs in its sandbox on return, or has ended. Raises SpawnFailed
        and NotConfined, as the sandbox does; nothing is left of it then, also where nobody waits any more."""
        for _ in range(MADE_AGAIN):
            shown = ShownOutput(show)
            command = await cls._begin(sandbox, argv, cwd, tty, accepts_input, shown, kept_bytes)
            try:
                if await command._is_made_or_over():
                    shown.release()
                    return command
            except BaseException:
                await asyncio.shield(asyncio.ensure_future(command.end()))
                raise
            await command.end()
        raise SpawnFailed(SOCKETS_COME_AND_GO)

    @classmethod
    async def _begin(
        cls,
        sandbox: Sandbox,
        argv: Sequence[str],
        cwd: str,
        tty: bool,
        accepts_input: bool,
        show: ShowOutput,
        kept_bytes: int,
    ) -> "SupervisedCommand":
        package = held_package()
        if package is not None and package.changed():  # its supervisor would be of another version than this process
            raise SpawnFailed(package.words())
        with ExitStack() as holding:
            pipes = CommandPipes(holding)
            start = await sandbox.prepare(argv, cwd, pipes, holding, tty=tty, accepts_input=accepts_input)
            ours, process = _spawned(start, pipes)
        reader, writer = await asyncio.open_connection(sock=ours)
        identity = ProcessIdentity.of(process.pid)
        command = cls(
            reader, writer, identity, ChildProcess(process), line=start.line, show=show, kept_bytes=kept_bytes
        )
        await command._send(message(start={**start._asdict(), "pipes": {"reads": pipes.reads, "says": pipes.says}}))
        return command

    async def _is_made_or_over(self) -> bool:
        """False: a socket that had to be covered went away before the sandbox was made; it may be tried again."""
        made: asyncio.Future[Any] = asyncio.ensure_future(self._made.wait())
        either: set[asyncio.Future[Any]] = {made, self._ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            made.cancel()
        return self._made.is_set() or not lost_a_socket(await self.ended(), self.line)

    async def wait(self) -> SupervisedEnd | None:
        """How it ended, once it has; None: its supervisor was ended, and with it the command."""
        return await asyncio.shield(self._ended)

    async def ended(self) -> CommandEnd:
        """The same for a command in the foreground, with what it said. Raises SpawnFailed where it never began."""
        told = await self.wait()
        end = told if told is not None else SupervisedEnd()
        if end.spawn_error or not end.was_begun:
            why = end.spawn_error or self.stderr.data.decode(errors="replace").strip()
            raise SpawnFailed(why or "it ended before the command began")
        stopped = _LIMITS.get(end.limit or "") or ("request" if end.stop_requested else None)
        return CommandEnd(end.exit_status, stopped, self.stdout, self.stderr, end.duration_ms)

    async def promote(self, folder: str) -> None:
        """Let it outlive this process. The folder is the task's, and has its key in it."""
        self.folder = folder
        await self._send(message(promote=folder))

    async def stop(self, grace: float = STOP_GRACE_SECONDS) -> None:
        """Ask it to end; what has not after so many seconds is killed. 0: it is killed at once."""
        await self._send(message(stop=grace))

    async def send_input(self, data: bytes) -> int:
        """Give it input; how many bytes it took. 0: it takes none, or it has ended."""
        async with self._talking:
            await self._send(frame(INPUT, data))
            taken = await self._answers.get()
        return taken or 0

    async def close_input(self) -> None:
        await self._send(message(close_input=True))

    async def end(self) -> None:
        """Leave it. In the foreground the command ends with everything it started, and is gone on return; a task goes
        on. A supervisor that has ended is taken off the table."""
        goes_on = self.folder is not None and not self._ended.done()
        self._writer.close()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        process, self._process = self._process, None
        if process is None:
            return
        if goes_on:
            process.leave()
            return
        try:
            async with asyncio.timeout(GRACE_SECONDS * 2):
                await process.wait()
        except (TimeoutError, asyncio.CancelledError):
            process.kill()
            await process.wait()

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (ConnectionError, RuntimeError):
            pass  # it has ended: whoever waits for it hears of that

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        try:
            while data := await reader.read(65_536):
                for kind, content in frames.feed(data):
                    self._take(kind, content)
        except (OSError, BadFrame):
            pass
        except asyncio.CancelledError:  # it was left
            self._ended.cancel()
            raise
        finally:
            self.stdout.end()
            self.stderr.end()
            self._answers.put_nowait(None)
            if not self._ended.done():
                self._ended.set_result(None if self.folder is None else read_end(self.folder))

    def _take(self, kind: bytes, content: bytes) -> None:
        if kind == STDOUT:
            self.stdout.take(content)
        elif kind == STDERR:
            self.stderr.take(content)
        elif kind == MESSAGE:
            said = read_message(content)
            if "made" in said:
                self._made.set()
            if "input" in said:
                self._answers.put_nowait(int(said["input"]))
            if "ended" in said and not self._ended.done():
                self._ended.set_result(SupervisedEnd.read(said["ended"]))


async def find(folder: str, identity: ProcessIdentity) -> SupervisedCommand | SupervisedEnd | None:
    """The command of a task's folder: it runs on, or this is how it ended; None: nobody will ever know.

    A supervisor that runs and has no socket was not promoted before its runtime went: it ends by itself.
    """
    until = time.monotonic() + _ANSWER_SECONDS
    while True:
        if (end := read_end(folder)) is not None:
            return end
        is_alive = identity.is_alive()
        if (command := await _attached(folder, identity)) is not None:
            return command
        if not is_alive:
            return read_end(folder)  # it may have ended between the two looks
        if time.monotonic() > until:
            identity.kill()
        await asyncio.sleep(_LOOK_AGAIN)


def read_end(folder: str) -> SupervisedEnd | None:
    """What the supervisor left about the end; None: there is nothing, or nothing that can be read."""
    try:
        with open(os.path.join(folder, END), "rb") as file:
            said = json.load(file)
    except (OSError, ValueError):
        return None
    return SupervisedEnd.read(said) if isinstance(said, dict) else None


async def _attached(folder: str, identity: ProcessIdentity) -> SupervisedCommand | None:
    """At the socket of the folder, if it is this very supervisor that listens there."""
    try:
        key = _read_key(folder)
        with _short_name(folder) as name:
            reader, writer = await asyncio.open_unix_connection(name)
    except OSError:
        return None
    if not _is_peer(writer.get_extra_info("socket"), identity):
        writer.close()
        return None
    command = SupervisedCommand(reader, writer, identity)
    command.folder = folder
    await command._send(message(key=key))
    return command


def _read_key(folder: str) -> str:
    with open(os.path.join(folder, KEY), encoding="ascii") as file:
        return file.read()


class _short_name:  # noqa: N801 (used like a function)
    """A name for the socket that is short enough for the kernel, wherever the folder is."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> str:
        self._handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        through = f"/proc/self/fd/{self._handle}"
        return f"{through}/{CONTROL}" if os.path.isdir(through) else os.path.join(self._folder, CONTROL)

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _is_peer(line: socket.socket, identity: ProcessIdentity) -> bool:
    """Does the process listen here that is meant? Where the system cannot say, the key alone decides."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    pid, uid, _ = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid == identity.pid and uid == os.getuid() and identity.is_alive()


def _spawned(start: PreparedLine, pipes: CommandPipes) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    ours, theirs = socket.socketpair()
    passed = {theirs.fileno(), pipes.reads, pipes.says, start.tells, start.hears, *start.passed}
    line = [*interpreter("from wakeful.processes.supervisor import main; main()"), str(theirs.fileno())]
    try:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            cwd="/",
            pass_fds=tuple(passed),
            start_new_session=True,
        )
    except OSError as problem:
        ours.close()
        raise SpawnFailed(f"{line[0]}: {problem}") from problem
    finally:
        theirs.close()
    return ours, process
