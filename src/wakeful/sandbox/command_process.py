"""One command from its start to its end: spawned, read, bounded, and gone with everything it started.

Whatever ends the wait (its own end, the time, a limit, a cancel), no process of the command is left when `run` returns
or raises. When the runtime itself is killed, the kernel or the launcher ends the command, and `sweep` ends what the
kernel leaves; nothing here is needed.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.sandbox.capture import StreamCapture
from wakeful.sandbox.command_start import PreparedLine, SpawnFailed, kill_all, spawn
from wakeful.sandbox.level_probe import hearing_of_children
from wakeful.sandbox.process_watch import Growth, ProcessWatch

GRACE_SECONDS = 5.0
"""How long a tree that was ordered to end may take."""

Stopped: TypeAlias = Literal["timeout", "processes", "memory", "growth", "request"]
ShowOutput: TypeAlias = Callable[[Literal["stdout", "stderr"], str], None]


class ShownOutput:
    """What a command says, for whoever watches. What may be the words of a sandbox that could not be made is held back
    until it is certain whose they are: the sandbox is made again then, and nobody is to read them."""

    def __init__(self, show: ShowOutput) -> None:
        self._show = show
        self._held: list[tuple[Literal["stdout", "stderr"], str]] = []
        self._is_certain = False

    def __call__(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        if not self._is_certain and (self._held or text.startswith("bwrap: ")):
            self._held.append((stream, text))
            return
        self._is_certain = True
        self._show(stream, text)

    def release(self) -> None:
        """It was the command."""
        self._is_certain, held, self._held = True, self._held, []
        for stream, text in held:
            self._show(stream, text)


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
        self.reads, tells = os.pipe()
        self.tells = _with_a_reader(tells)
        self.hears, self.says = os.pipe()
        for end in (self.reads, self.says):
            holding.callback(self._close, end)
        self._open = {self.reads, self.says, self.tells, self.hears}
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
            os.write(self.says, b"go\n")
        except BrokenPipeError:
            pass

    def hang_up(self) -> None:
        self._close(self.says)

    async def _more(self) -> bool:
        await readable(self.reads)
        piece = os.read(self.reads, 4096)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.strip():
                self.said.update(json.loads(line))
        return bool(piece)

    def _close(self, end: int) -> None:
        if end in self._open:
            self._open.discard(end)
            os.close(end)


def _with_a_reader(writes: int) -> int:
    """The writing end of a pipe as one that can also read, so that nobody who has it is killed for writing to a pipe
    that nobody reads. When the runtime is killed, bubblewrap may be about to say its first word: it is two processes
    then, and if the one that speaks were killed for it, the other one would wait for it for ever."""
    try:
        both = os.open(f"/proc/self/fd/{writes}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return writes  # no bubblewrap here either
    os.close(writes)
    return both


async def run(
    start: PreparedLine, line: CommandPipes, *, timeout: float, show: ShowOutput, kept_bytes: int
) -> CommandEnd:
    """Run a prepared command to its end. Raises SpawnFailed."""
    began = time.monotonic()
    stdout = StreamCapture(lambda text: show("stdout", text), kept_bytes)
    stderr = StreamCapture(lambda text: show("stderr", text), kept_bytes)
    with ExitStack() as holding:
        if start.private is not None:
            holding.callback(shutil.rmtree, start.private, ignore_errors=True)
        started = spawn(start, holding, hearing_of_children(list(start.line)))
        line.spawned()
        reading = [taken.read(of) for taken, of in zip((stdout, stderr), started.output, strict=False)]
        tree = _Tree(ChildProcess(started.process), line, reading, namespaced=start.hears_as_stdin)
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
        self,
        process: "ChildProcess",
        line: CommandPipes,
        reading: "Sequence[asyncio.Future[None]]",
        *,
        namespaced: bool,
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
            try:
                self._first = os.pidfd_open(top)  # it waits for the word: it is still what it was
            except ProcessLookupError:
                return  # its sandbox could not be made, and it ended before the word
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
            growth=Growth(start.write_roots, start.growth_bytes),
        )
        self._line.go()

    async def ended(self) -> None:
        """Wait until all of it has ended and everything it said is read."""
        await self._process.wait()
        if self._first is not None:
            await readable(self._first)  # the first process of a namespace ends after all others
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


class ChildProcess:
    """A child that can be awaited."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None

    async def wait(self) -> int:
        """Its status. It may be waited for more than once."""
        if self._process.returncode is None:
            if self._handle is not None:
                await readable(self._handle)
            else:
                await asyncio.to_thread(self._process.wait)
            self._process.wait()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        return self._process.returncode

    def kill(self) -> None:
        kill_all(self._process)

    def leave(self) -> None:
        """It runs on and nobody here waits for it: its remains are taken off the table when it has ended."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        threading.Thread(target=self._process.wait, name="wakeful-left", daemon=True).start()


async def readable(descriptor: int) -> None:
    """Wait until something can be read there, or until its other end is gone."""
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
