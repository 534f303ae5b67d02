"""The process above one command: it starts it, takes its output, holds it to its limits and knows how it ended.

It is told what to start on a socket whose other end only the runtime has. When that end is gone and the command was not
promoted to a task, the command is ended with everything it started. Once it was promoted, output and the way it ended
are in files of the task's folder, and a socket there takes messages from whichever runtime comes next.

It runs in an interpreter of its own that loads the standard library and nothing else, so that it starts quickly. What
it promises: it never ends before its command, it says how the command ended exactly once, and where it was promoted the
file that says so is whole or not there.
"""

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from wakeful.processes.command_tree import CommandTree
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
from wakeful.processes.output_segments import OutputSegments
from wakeful.sandbox.command_start import PreparedLine, SpawnFailed

_PIECE = 65_536
MOST_UNSENT = 1024 * 1024
"""Bytes that wait for a slow runtime before the command has to wait too."""
MOST_CALLERS = 8
_LOOK_EVERY = 0.005
"""Seconds, until what holds the command is made."""
_ASK_EVERY = 0.05
"""Seconds, on a system that does not tell when a process has ended."""
_TRY_AGAIN = 1.0
"""Seconds between two tries to write how the command ended, where the disk is full."""


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # not ignored: that would be handed on to the command
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as a parent may leave it, it would lose every exit status
    with ExitStack() as holding:
        Supervisor(socket.socket(fileno=int(sys.argv[1])), holding).serve()


class _Caller:
    """Somebody at the other end of a socket."""

    def __init__(self, line: socket.socket, *, is_owner: bool) -> None:
        line.setblocking(False)
        self.line = line
        self.is_owner = is_owner
        """The runtime that started the command."""
        self.is_known = is_owner
        """It has said the key."""
        self.frames = FrameReader()
        self.unsent = bytearray()


class Supervisor:
    """One command and those who ask about it."""

    def __init__(self, owner: socket.socket, holding: ExitStack) -> None:
        self._holding = holding
        self._events = selectors.DefaultSelector()
        self._callers: list[_Caller] = []
        self._tree: CommandTree | None = None
        self._output = OutputSegments()
        self._reading: dict[int, bytes] = {}
        """Streams that are read, each with the kind of its frames."""
        self._folder: int | None = None
        """A handle of the task's folder, once this is a task."""
        self._key = b""
        self._stand_ins: list[dict[str, Any]] = []
        self._locks: list[int | None] = []
        self._listening: socket.socket | None = None
        self._stop_asked = False
        self._kill_at: float | None = None
        self._ended: dict[str, Any] | None = None
        self._is_written = False
        self._is_made = False
        """The sandbox is there, and the command in it."""
        self._began = time.monotonic()
        self._add(owner, is_owner=True)

    def serve(self) -> None:
        """Until the command has ended and everybody who has to know can."""
        while not self._is_over():
            for key, _ in self._events.select(self._wait()):
                key.data()
            self._look_after()
        for caller in list(self._callers):
            with contextlib.suppress(OSError):
                caller.line.setblocking(True)
                caller.line.settimeout(_TRY_AGAIN)
                caller.line.sendall(caller.unsent)

    def _is_over(self) -> bool:
        if self._ended is None:
            return self._tree is None and not self._callers  # nothing was ever started
        return self._is_written if self._folder is not None else not self._has_owner()

    def _has_owner(self) -> bool:
        return any(caller.is_owner for caller in self._callers)

    def _wait(self) -> float | None:
        if self._ended is not None and self._folder is not None:
            return _TRY_AGAIN
        if self._tree is not None and self._ended is None:
            if self._tree.has_begun and not self._is_made:
                return _LOOK_EVERY
            if not self._tree.has_handle:
                return _ASK_EVERY
        return None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())

    def _look_after(self) -> None:
        """After every round: is it over, was it long enough, is anybody there who wants it to run?"""
        if self._tree is None:
            return
        if not self._is_made and self._ended is None and self._tree.is_made():
            self._is_made = True
            self._tell(made=True)
        if self._folder is None and not self._has_owner():
            self._tree.kill()
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            self._tree.kill()
        if self._ended is None and not self._reading and self._tree.is_gone():
            self._finish()
        if self._ended is not None and self._folder is not None and not self._is_written:
            self._write_end()

    # --- the command --------------------------------------------------------------------------------------------------

    def _start(self, plan: dict[str, Any]) -> None:
        stand_ins = plan.pop("stand_ins")
        locks = [_locked(each["path"]) for each in stand_ins]
        pipes = plan.pop("pipes")
        start = PreparedLine(**{name: _tuples(value) for name, value in plan.items()})
        if start.private is not None:
            self._holding.callback(_remove, start.private)
        try:
            self._tree = CommandTree(start, pipes["reads"], pipes["says"], self._holding)
        except SpawnFailed as problem:
            self._ended = {"spawn_error": str(problem)}
            self._tell(spawn_error=str(problem), ended=self._ended)
            return
        self._stand_ins, self._locks = stand_ins, locks
        for stream, kind in zip(self._tree.output, (STDOUT, STDERR), strict=False):
            os.set_blocking(stream, False)
            self._reading[stream] = kind
            self._events.register(stream, selectors.EVENT_READ, partial(self._more_output, stream))
        for watched in self._tree.watched:
            self._events.register(watched, selectors.EVENT_READ, partial(self._changed, watched))

    def _changed(self, watched: int) -> None:
        """Something about its processes is known that was not."""
        assert self._tree is not None
        for fresh in self._tree.hear(watched):
            self._events.register(fresh, selectors.EVENT_READ, partial(self._changed, fresh))
        if watched not in self._tree.watched:
            self._events.unregister(watched)

    def _more_output(self, stream: int) -> None:
        try:
            piece = os.read(stream, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # how a terminal ends
            piece = b""
        if not piece:
            if stream in self._events.get_map():
                self._events.unregister(stream)
            del self._reading[stream]
            return
        self._output.take(piece)
        if self._folder is None:
            for caller in self._callers:
                self._send(caller, frame(self._reading[stream], piece))
            if any(len(caller.unsent) > MOST_UNSENT for caller in self._callers):
                self._pause(True)

    def _pause(self, is_slow: bool) -> None:
        """A runtime that does not read makes its command wait, as a pipe would."""
        for stream in self._reading:
            if is_slow and stream in self._events.get_map():
                self._events.unregister(stream)
            elif not is_slow and stream not in self._events.get_map():
                self._events.register(stream, selectors.EVENT_READ, partial(self._more_output, stream))

    def _finish(self) -> None:
        assert self._tree is not None
        self._kill_at = None
        self._ended = {
            "exit_status": self._tree.exit_status,
            "limit": self._tree.limit,
            "stop_requested": self._stop_asked,
            "was_begun": self._tree.has_begun,
            "spawn_error": self._tree.problem,
            "duration_ms": (time.monotonic() - self._began) * 1000,
            "total_bytes": self._output.total_bytes,
            "output_problem": self._output.problem,
            "ended_at": time.time_ns() // 1000,
        }
        if self._folder is None:
            self._tell(ended=self._ended)
        else:
            self._take_stand_ins_away()

    # --- the task -----------------------------------------------------------------------------------------------------

    def _promote(self, folder: str) -> None:
        """From here on the command outlives the runtime."""
        if self._folder is not None:
            return
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with open(os.open(KEY, os.O_RDONLY | os.O_CLOEXEC, dir_fd=handle), "rb") as key:
            self._key = key.read()
        self._output.move_to(handle)
        os.chdir(folder)  # the name of a socket is short; a folder's may be long
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(CONTROL)
        self._listening.bind(CONTROL)
        os.chmod(CONTROL, 0o600)
        self._listening.listen(MOST_CALLERS)
        self._listening.setblocking(False)
        os.chdir("/")
        self._events.register(self._listening, selectors.EVENT_READ, self._called)
        self._folder = handle
        self._pause(False)
        self._tell(promoted=True)

    def _take_stand_ins_away(self) -> None:
        """The runtime that made them may be gone, or have let go of them when the turn was over."""
        from wakeful.sandbox.places import SandboxPlace, take_away  # loads a lot, and most commands are no tasks

        for lock in filter(None, self._locks):
            os.close(lock)
        for told in reversed(self._stand_ins):
            take_away(SandboxPlace.from_dict(told))
        self._stand_ins, self._locks = [], []

    def _write_end(self) -> None:
        """Whole or not at all, and safe against a power cut. Then everybody is told."""
        assert self._folder is not None
        self._output.sync()
        partial = f"{END}.partial"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            with open(os.open(partial, flags, 0o600, dir_fd=self._folder), "wb") as file:
                file.write(json.dumps(self._ended).encode())
                file.flush()
                os.fsync(file.fileno())
            os.rename(partial, END, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            os.fsync(self._folder)
        except FileNotFoundError:
            self._is_written = True  # the folder was removed: nobody is to know any more
        except OSError:
            return  # no room: it is tried again
        else:
            self._is_written = True
        self._tell(ended=self._ended)

    def _called(self) -> None:
        assert self._listening is not None
        try:
            line, _ = self._listening.accept()
        except OSError:
            return
        if len(self._callers) >= MOST_CALLERS:
            line.close()
            return
        self._add(line, is_owner=False)

    # --- callers ------------------------------------------------------------------------------------------------------

    def _add(self, line: socket.socket, *, is_owner: bool) -> None:
        caller = _Caller(line, is_owner=is_owner)
        self._callers.append(caller)
        self._events.register(line, selectors.EVENT_READ, partial(self._hear, caller))

    def _hear(self, caller: _Caller) -> None:
        try:
            data = caller.line.recv(_PIECE)
        except BlockingIOError:
            data = None
        except OSError:
            data = b""
        try:
            if data:
                for kind, content in caller.frames.feed(data):
                    self._answer(caller, kind, content)
        except (BadFrame, OSError, KeyError, TypeError):
            data = b""
        if data == b"":
            self._drop(caller)
        else:
            self._send(caller, b"")

    def _answer(self, caller: _Caller, kind: bytes, content: bytes) -> None:
        if kind == MESSAGE:
            said = read_message(content)
            if not caller.is_known:
                self._let_in(caller, said)
            elif "start" in said and self._tree is None and caller.is_owner:
                self._start(said["start"])
            elif "promote" in said and caller.is_owner:
                self._promote(said["promote"])
            elif "stop" in said:
                self._stop(float(said["stop"]))
            elif "close_input" in said and self._tree is not None:
                self._tree.close_input()
        elif kind == INPUT and caller.is_known and self._tree is not None:
            taken = self._tree.write_input(content) if self._ended is None else 0
            self._send(caller, message(input=taken))
        else:
            raise BadFrame(f"a frame of kind {kind!r}")

    def _let_in(self, caller: _Caller, said: dict[str, Any]) -> None:
        from hmac import compare_digest

        if not compare_digest(str(said.get("key", "")).encode(), self._key):
            raise BadFrame("the key is another one")
        caller.is_known = True
        self._send(caller, message(promoted=True, **({} if self._ended is None else {"ended": self._ended})))

    def _stop(self, grace: float) -> None:
        """Ask it to end; after a while, end it."""
        if self._tree is None or self._ended is not None:
            return
        self._stop_asked = True
        if grace <= 0:
            self._tree.kill()
        elif self._kill_at is None:
            self._tree.terminate()
            self._kill_at = time.monotonic() + grace

    def _tell(self, **said: Any) -> None:
        for caller in list(self._callers):
            if caller.is_known:
                self._send(caller, message(**said))

    def _send(self, caller: _Caller, data: bytes) -> None:
        caller.unsent += data
        try:
            while caller.unsent:
                del caller.unsent[: caller.line.send(caller.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            caller.unsent.clear()  # it is gone, which is heard of when it is read next
        if caller not in self._callers:
            return
        both = selectors.EVENT_READ | (selectors.EVENT_WRITE if caller.unsent else 0)
        self._events.modify(caller.line, both, partial(self._hear, caller))
        if len(caller.unsent) <= MOST_UNSENT // 2:
            self._pause(False)

    def _drop(self, caller: _Caller) -> None:
        self._events.unregister(caller.line)
        self._callers.remove(caller)
        caller.line.close()
        self._pause(False)


def _locked(path: str) -> int | None:
    """A lock of our own on what stands in for a place: whoever made it may be gone before the command is."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return None  # it is no stand-in any more
    return handle


def _remove(folder: str) -> None:
    from shutil import rmtree  # loads a lot, and few commands have such a folder

    rmtree(folder, ignore_errors=True)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
