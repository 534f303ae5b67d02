"""A small process that outlives a killed runtime, to take away what stood in for places in a workspace.

It waits at a pipe whose other end only the runtime has. A runtime that ends as it should takes its stand-ins away
itself and ends this process. When the pipe closes without that, they are taken away here, unless another runtime needs
them. The process has the standard library and nothing else: a module of its own, with imports of its own.

It also ends what bubblewrap left. A sandbox is two processes while it is made: the first is tied to the runtime, the
second to the first when all else is done. When the runtime is killed before that, the kernel kills the first one alone.
The second then waits for it for ever, or goes on and runs the command, which nobody could end.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from wakeful.sandbox import level_probe
from wakeful.sandbox.places import SandboxPlace, take_away

_TRIES = 40
_BETWEEN_TRIES = 0.05


class Sweeper:
    """Hears of every stand-in in a workspace. Started with the first, or with the first command."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self) -> None:
        """A command begins."""
        if self._process is None:
            self._process = subprocess.Popen(
                sweeping(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
                bufsize=0,
            )
            self._tell(self._root)

    def made(self, place: SandboxPlace) -> None:
        """This place was made, and has to go."""
        self.watch()
        self._tell(place.as_dict())

    def close(self) -> None:
        """Everything is taken away."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process = None

    def _tell(self, what: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
        except BrokenPipeError:
            pass  # somebody ended it; the next runtime in this workspace takes away what is left


def sweeping() -> list[str]:
    """The line of the process. It reads the workspace and then the stand-ins, each a line of JSON, and sweeps when its
    input ends."""
    return level_probe.interpreter("from wakeful.sandbox.sweep import main; main()")


def main() -> None:
    """Wait for the runtime's end, then sweep."""
    root = json.loads(next(sys.stdin.buffer, b'""'))
    places = [SandboxPlace.from_dict(json.loads(line)) for line in sys.stdin.buffer]
    for _ in range(_TRIES):  # what the runtime had started may hold the locks for a moment longer
        places = [place for place in reversed(places) if not take_away(place)]
        if not _is_left(root) and not places:
            return
        time.sleep(_BETWEEN_TRIES)


def _is_left(root: str) -> bool:
    """Is bubblewrap still there that made, or makes, a sandbox for this workspace? What is there without its first
    process is killed, and all that runs in it with it."""
    found = False
    mark = b"\0--bind\0" + os.fsencode(root) + b"\0"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            handle = os.pidfd_open(int(pid))
        except OSError:
            continue
        try:
            line = _line_of(pid)
            if mark in line and line.split(b"\0", 1)[0].endswith(b"/bwrap"):
                found = True
                parent, is_inside = _place_of(pid)
                if is_inside and _line_of(parent) != line:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is somebody else's
        finally:
            os.close(handle)
    return found


def _line_of(pid: str) -> bytes:
    """The first process of a sandbox and those that it makes the sandbox with have the same line."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _place_of(pid: str) -> tuple[str, bool]:
    """Its parent, and whether it is in a process namespace of its own: all but the first are."""
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        if ":\t" in line
    )
    return status["PPid"], len(status["NSpid"].split()) > 1
