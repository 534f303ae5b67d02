"""One command from its start to its end: spawned, read, bounded, and gone with everything it started.

Whatever ends the wait (its own end, the time, a limit, a cancel), no process of the command is left when `run` returns
or raises. When the runtime itself is killed, the kernel or the launcher ends the command; nothing here is needed.
"""

import asyncio
import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.sandbox.capture import StreamCapture
from wakeful.sandbox.level_probe import HEAR_OF_CHILDREN, hearing_of_children, interpreter
from wakeful.sandbox.process_watch import Growth, ProcessWatch

GRACE_SECONDS = 5.0
"""How long a tree that was ordered to end may take."""
_SIZE_OF_TERMINAL = (40, 120)
_TAKE_TERMINAL = f"""import fcntl, os, signal, termios
{HEAR_OF_CHILDREN}os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.dup2(int(sys.argv[1]), 0)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A child of ours that makes the terminal its own and then turns into what holds the command; no other program is
asked to do it."""

Stopped: TypeAlias = Literal["timeout", "processes", "memory", "growth"]
ShowOutput: TypeAlias = Callable[[Literal["stdout", "stderr"], str], None]


class SpawnFailed(Exception):
    """The command never began; the text says why."""


@dataclass(frozen=True, slots=True)
class PreparedLine:
    """A prepared line. `tells` is the status pipe's end for the child, `hears` the end of the pipe it waits on."""

    line: Sequence[str]
    environment: Mapping[str, str]
    tty: bool
    tells: int
    hears: int
    hears_as_stdin: bool
    passed: tuple[int, ...]
    tasks: int
    memory_bytes: int
    growth: Growth
    shared: str | None
    """A folder in memory, as the command sees it, that counts as memory."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended. The status is a shell's: 128 and the signal for one that was killed."""

    exit_status: int | None
    """None for one that was stopped, and for one that what holds it cannot tell about: then nobody knows how far it
    came."""
    stopped: Stopped | None
    stdout: StreamCapture
    stderr: StreamCapture
    duration_ms: float


class CommandPipes:
    """The pipes between the runtime and what holds a command: status one way, a word and a sign of life the other."""

    def __init__(self, holding: ExitStack) -> None:
        self._reads, self.tells = os.pipe()
        self.hears, self._says = os.pipe()
        for end in (self._reads, self._says):
            holding.callback(self._close, end)
        self._open = {self._reads, self._says, self.tells, self.hears}
        holding.callback(self.spawned)
        self._rest = b""
        self.said: dict[str, Any] = {}

    def spawned(self) -> None:
        """The child has its ends; ours are not needed."""
        self._close(self.tells)
        self._close(self.hears)

    async def started(self) -> bool:
        """Wait until the command's process is there; False when the other side ended before."""
        while "child-pid" not in self.said and "spawn-error" not in self.said:
            if not await self._more():
                return False
        return "child-pid" in self.said

    async def rest(self) -> None:
        """Read what else was said."""
        while await self._more():
            pass

    def go(self) -> None:
        try:
            os.write(self._says, b"go\n")
        except BrokenPipeError:
            pass

    def hang_up(self) -> None:
        self._close(self._says)

    async def _more(self) -> bool:
        await _readable(self._reads)
        piece = os.read(self._reads, 4096)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.strip():
                self.said.update(json.loads(line))
        return bool(piece)

    def _close(self, end: int) -> None:
        if end in self._open:
            self._open.discard(end)
            os.close(end)


async def run(
    start: PreparedLine, line: CommandPipes, *, timeout: float, show: ShowOutput, kept_bytes: int
) -> CommandEnd:
    """Run a prepared command to its end. Raises SpawnFailed."""
    began = time.monotonic()
    stdout = StreamCapture(lambda text: show("stdout", text), kept_bytes)
    stderr = StreamCapture(lambda text: show("stderr", text), kept_bytes)
    with ExitStack() as holding:
        process, streams = _spawn(start, holding)
        line.spawned()
        reading = [taken.read(of) for taken, of in zip((stdout, stderr), streams, strict=False)]
        tree = _Tree(process, line, reading, namespaced=start.hears_as_stdin)
        stopped: Stopped | None = None
        try:
            async with asyncio.timeout(timeout):
                if await line.started():
                    tree.began(start)
                await tree.ended()
        except TimeoutError:
            stopped = "timeout"
        finally:
            if not tree.is_gone:
                await asyncio.shield(asyncio.ensure_future(tree.end()))
            tree.close()
        await line.rest()
    if stopped is None and "child-pid" not in line.said:
        why = line.said.get("spawn-error") or stderr.data.decode(errors="replace").strip()
        raise SpawnFailed(why or "it ended before the command began")
    stopped = tree.too_heavy or stopped
    status = line.said.get("exit-code") if stopped is None else None
    return CommandEnd(status, stopped, stdout, stderr, (time.monotonic() - began) * 1000)


class _Tree:
    """The command's processes, as one thing that can be waited for and ended."""

    def __init__(
        self, process: "_Process", line: CommandPipes, reading: "Sequence[asyncio.Future[None]]", *, namespaced: bool
    ) -> None:
        self._process = process
        self._line = line
        self._reading = reading
        self._namespaced = namespaced
        self._lock = threading.Lock()
        self._first: int | None = None
        self._watch: ProcessWatch | None = None
        self.too_heavy: Stopped | None = None
        self.is_gone = False

    def began(self, start: PreparedLine) -> None:
        """The word: from here on the command runs."""
        top = int(self._line.said["child-pid"])
        if self._namespaced:
            self._first = os.pidfd_open(top)  # it waits for the word: it is still what it was
        loop = asyncio.get_running_loop()

        def heavy(why: Any) -> None:
            self.too_heavy = why
            self._kill()  # at once, from the thread that looks: the loop may be busy
            try:
                loop.call_soon_threadsafe(self._line.hang_up)
            except RuntimeError:
                pass  # the loop is closed, and the command ends with it

        self._watch = ProcessWatch(
            top,
            tasks=start.tasks,
            memory_bytes=start.memory_bytes,
            too_heavy=heavy,
            shared=start.shared,
            growth=start.growth,
        )
        self._line.go()

    async def ended(self) -> None:
        """Wait until all of it has ended and everything it said is read."""
        await self._process.wait()
        if self._first is not None:
            await _readable(self._first)  # the first process of a namespace ends after all others
        for stream in self._reading:
            await stream
        self.is_gone = True

    async def end(self) -> None:
        """Whatever is left, ends."""
        self._line.hang_up()
        self._kill()
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self.ended()
        except (TimeoutError, asyncio.CancelledError):
            self._process.kill()
            await self._process.wait()

    def close(self) -> None:
        """Nothing is watched, read or held open any more."""
        if self._watch is not None:
            self._watch.stop()
        for stream in self._reading:
            stream.cancel()
        with self._lock:
            if self._first is not None:
                os.close(self._first)
                self._first = None

    def _kill(self) -> None:
        if not self._namespaced:
            return  # the launcher ends them all when its line is hung up
        try:
            with self._lock:  # the descriptor must not be closed, and its number somebody else's, in between
                if self._first is not None:
                    signal.pidfd_send_signal(self._first, signal.SIGKILL)
                elif not self.is_gone:
                    self._process.kill()
        except ProcessLookupError:
            pass


def _spawn(start: PreparedLine, holding: ExitStack) -> "tuple[_Process, list[int]]":
    """Start it: the process, and where its output comes from."""
    terminal = _terminal() if start.tty else None
    line, passed = hearing_of_children(list(start.line)), start.passed
    stdin = start.hears if start.hears_as_stdin else subprocess.DEVNULL
    output = subprocess.PIPE
    if terminal is not None:
        stdin = output = terminal[1]
        if start.hears_as_stdin:
            line = [*interpreter(_TAKE_TERMINAL), str(start.hears), *line]
            passed = (*passed, start.hears)
    try:
        # Not asyncio's own: that one starts a thread for every process to wait for it.
        process = subprocess.Popen(
            line,
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=dict(start.environment),
            cwd="/",
            pass_fds=passed,
            start_new_session=terminal is None,
            bufsize=0,
        )
    except (OSError, ValueError) as problem:
        for end in terminal or ():
            os.close(end)
        raise SpawnFailed(f"{line[0]}: {problem}") from problem
    if terminal is not None:
        os.close(terminal[1])
        holding.callback(os.close, terminal[0])
        return _Process(process), [terminal[0]]
    assert process.stdout is not None
    assert process.stderr is not None
    for pipe in (process.stdout, process.stderr):
        holding.callback(pipe.close)
    return _Process(process), [process.stdout.fileno(), process.stderr.fileno()]


class _Process:
    """A child that can be awaited."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None

    async def wait(self) -> int:
        """Its status. It may be waited for more than once."""
        if self._process.returncode is None:
            if self._handle is not None:
                await _readable(self._handle)
            else:
                await asyncio.to_thread(self._process.wait)
            self._process.wait()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()  # does nothing for one that has been waited for


def _terminal() -> tuple[int, int]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE_OF_TERMINAL, 0, 0))
    return ours, theirs


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, tell)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
