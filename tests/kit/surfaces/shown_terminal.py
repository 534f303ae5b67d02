"""A command at a terminal, and what stands there: for tests that wait until something does."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kit.surfaces.command_line import command_line


class ShownTerminal:
    """What a command shows, as it comes."""

    def __init__(self, child: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.child, self.terminal, self._raw = child, terminal, b""

    @property
    def text(self) -> str:
        """Without colours and moves."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._raw.decode(errors="replace")).replace("\r", "")

    def until(self, words: str, seconds: float = 60.0) -> str:
        """Everything that was shown, once these words are among it."""
        ends = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < ends, f"no {words!r} came: {self.text}"
            assert self._take(1.0), f"it ended before {words!r}: {self.text}"
        return self.text

    def to_end(self, seconds: float = 60.0) -> tuple[int, str]:
        """The exit code of the command, and everything that was shown."""
        ends = time.monotonic() + seconds
        while self._take(1.0):
            assert time.monotonic() < ends, f"it does not end: {self.text}"
        return self.child.wait(seconds), self.text

    def type(self, words: str) -> None:
        os.write(self.terminal, words.encode())

    def _take(self, seconds: float) -> bool:
        """False: nothing comes any more."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        piece = b""
        with suppress(OSError):  # how the end of a terminal is told
            piece = os.read(self.terminal, 10_000)
        self._raw += piece
        return bool(piece)


@contextmanager
def at_terminal(*arguments: str, folder: Path, answers: "int | None" = None) -> Iterator[ShownTerminal]:
    """A command whose streams are a terminal; with `answers`, its stdout is that instead, and nothing is typed."""
    terminal, end = pty.openpty()
    child = subprocess.Popen(
        command_line(*arguments),
        stdin=end if answers is None else subprocess.DEVNULL,
        stdout=end if answers is None else answers,
        stderr=end,
        cwd=folder,
        start_new_session=True,
    )
    os.close(end)
    try:
        yield ShownTerminal(child, terminal)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait(30)
        os.close(terminal)
