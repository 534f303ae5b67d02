"""The processes of one command, as a supervisor holds them: begun, watched, asked to end and ended as one thing.

Nothing here waits: what has to be listened to is in `watched`, and whoever waits hands it to `hear`. The standard
library and nothing else: a supervisor loads it.
"""

import contextlib
import json
import os
import signal
import threading
from contextlib import ExitStack
from typing import Any

from wakeful.sandbox.command_start import PreparedLine, kill_all, spawn
from wakeful.sandbox.process_watch import Growth, ProcessWatch, descendants


class CommandTree:
    """Everything that a command started."""

    def __init__(self, start: PreparedLine, reads: int, says: int, holding: ExitStack) -> None:
        """Starts it. `reads` is where it tells how it is, `says` where the word goes that lets it begin. Raises
        SpawnFailed."""
        self._start = start
        self._says: int | None = says
        self._reads = reads
        growth = Growth(start.write_roots, start.growth_bytes)
        started = spawn(start, holding)
        for end in {start.tells, start.hears, *start.passed}:
            os.close(end)
        self._process = started.process
        self.output = started.output
        self._input = started.input if start.accepts_input else None
        self._growth = growth
        self._handle: int | None = _opened(self._process.pid)
        self._first: int | None = None
        """A handle of the first process of its namespace, as long as that runs."""
        self._had_first = False
        self._lock = threading.Lock()
        self._rest = b""
        self._told: dict[str, Any] = {}
        self._watch: ProcessWatch | None = None
        self.limit: str | None = None
        """The limit that it passed."""
        self.watched: set[int] = {reads, *(() if self._handle is None else (self._handle,))}
        self.has_handle = self._handle is not None
        """False: nobody is told when it has ended; it has to be asked."""

    @property
    def has_begun(self) -> bool:
        return "child-pid" in self._told

    def is_made(self) -> bool:
        """Does the command run, with everything round it that holds it? What holds it has said so, or has a child."""
        if not self.has_begun:
            return False
        return not self._start.hears_as_stdin or bool(descendants(int(self._told["child-pid"])))

    @property
    def exit_status(self) -> int | None:
        return None if self.limit is not None else self._told.get("exit-code")

    @property
    def problem(self) -> str:
        """Why it did not begin."""
        return str(self._told.get("spawn-error", ""))

    def hear(self, watched: int) -> list[int]:
        """Something can be read there. What else has to be listened to from now on."""
        if watched == self._reads:
            return self._hear_status()
        self.watched.discard(watched)  # a process has ended
        os.close(watched)
        if watched == self._handle:
            self._handle = None
            self._process.wait()
        else:
            with self._lock:
                self._first = None
        return []

    def is_gone(self) -> bool:
        """Has all of it ended, and is all known about it?"""
        return not self.watched and self._process.poll() is not None

    def write_input(self, data: bytes) -> int:
        """Write what there is room for; how many bytes that were. 0: it takes none, or no more for now."""
        target = self._input
        if target is None and self._start.accepts_input and not self._start.tty:
            target = self._says
        if target is None:
            return 0
        with self._lock:  # what ends it must not close the pipe in between
            if target == self._says or target == self._input:
                try:
                    os.set_blocking(target, False)
                    return os.write(target, data)
                except OSError:
                    pass
            return 0

    def close_input(self) -> None:
        """Its input ends here."""
        if self._start.tty and self._input is not None:
            self.write_input(b"\x04")
        elif self._start.accepts_input and self._start.hears_as_stdin:
            self._hang_up()
        elif self._input is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._input = None

    def terminate(self) -> None:
        """Ask every process of it to end."""
        top = self._told.get("child-pid")
        for pid in descendants(int(top)) if top is not None else ():
            handle = _opened(pid)
            if handle is None:
                continue
            with contextlib.suppress(ProcessLookupError):
                if pid in descendants(int(top or 0)):  # still: the number is not another's
                    signal.pidfd_send_signal(handle, signal.SIGTERM)
            os.close(handle)

    def kill(self) -> None:
        """End all of it."""
        self._hang_up()
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._first is not None:
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            elif self._start.hears_as_stdin and not self._had_first:
                kill_all(self._process)  # what holds it, and with it all of it; the launcher ends by itself

    def _hear_status(self) -> list[int]:
        piece = os.read(self._reads, 4096)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        had_begun = self.has_begun
        for line in lines:
            if line.strip():
                self._told.update(json.loads(line))
        if not piece:
            self.watched.discard(self._reads)
            if self._watch is not None:
                self._watch.stop()
        return self._begin() if self.has_begun and not had_begun else []

    def _begin(self) -> list[int]:
        """The word: from here on the command runs."""
        top = int(self._told["child-pid"])
        if self._start.hears_as_stdin:
            self._first = _opened(top)  # it waits for the word: it is still what it was
            self._had_first = self._first is not None
        self._watch = ProcessWatch(
            top,
            tasks=self._start.tasks,
            memory_bytes=self._start.memory_bytes,
            too_heavy=self._too_heavy,
            shared=self._start.shared,
            growth=self._growth,
        )
        if self._says is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._says, b"go\n")
        if self._first is None:
            return []
        self.watched.add(self._first)
        return [self._first]

    def _too_heavy(self, why: str) -> None:
        """Called in the thread that looks."""
        self.limit = why
        self.kill()

    def _hang_up(self) -> None:
        with self._lock:
            if self._says is not None:
                os.close(self._says)
                self._says = None


def _opened(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
