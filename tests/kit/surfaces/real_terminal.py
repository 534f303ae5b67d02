"""A real terminal of 80 columns and 24 rows, in tmux: keys are typed into it, and what stands on it is read."""

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """The terminal. A call is a command of tmux itself."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.name = f"wakeful-{uuid.uuid4().hex[:8]}"
        self.environment = {**environment, "TERM": "screen-256color", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}

    def __call__(self, *words: str) -> str:
        line = ["tmux", "-u", "-L", self.name, "-f", os.devnull, *words]
        return subprocess.run(line, env=self.environment, capture_output=True, text=True, check=True, timeout=30).stdout

    def start(self, command: str) -> None:
        self("new-session", "-d", "-x", "80", "-y", "24", f"{command}; echo LEFT $?; exec cat")

    @property
    def text(self) -> str:
        return self("capture-pane", "-p")

    def until(self, words: "str | Callable[[], object]", seconds: float = 60.0) -> str:
        until = time.monotonic() + seconds
        while not (words in self.text if isinstance(words, str) else words()):
            assert time.monotonic() < until, f"{words} did not come:\n{self.text}"
            time.sleep(0.05)
        return self.text


@contextmanager
def terminal(environment: Mapping[str, str]) -> Iterator[Tmux]:
    """With nothing in it yet; what runs there goes with it."""
    found = Tmux(environment)
    try:
        yield found
    finally:
        subprocess.run(["tmux", "-L", found.name, "kill-server"], capture_output=True, check=False)
