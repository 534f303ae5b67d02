"""A small process that outlives a killed runtime, to take away what stood in for places in a workspace.

It waits at a pipe whose other end only the runtime has. A runtime that ends as it should takes its stand-ins away
itself and ends this process. When the pipe closes without that, they are taken away here, unless another runtime needs
them. The process has the standard library and nothing else: a module of its own, with imports of its own.
"""

import json
import os
import subprocess
import sys
import time

from wakeful.sandbox import level_probe
from wakeful.sandbox.places import SandboxPlace, take_away

_TRIES = 40
_BETWEEN_TRIES = 0.05


class Sweeper:
    """Hears of every stand-in. Started with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def made(self, place: SandboxPlace) -> None:
        """This place was made, and has to go."""
        if self._process is None:
            self._process = subprocess.Popen(
                level_probe.interpreter("from wakeful.sandbox.sweep import main; main()"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
                bufsize=0,
            )
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(place.as_dict()).encode() + b"\n")
        except BrokenPipeError:
            pass  # somebody ended it; the next runtime in this workspace takes away what is left

    def close(self) -> None:
        """Everything is taken away."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process = None


def main() -> None:
    """Wait for the runtime's end, then sweep."""
    places = [SandboxPlace.from_dict(json.loads(line)) for line in sys.stdin.buffer]
    for _ in range(_TRIES):  # what the runtime had started may hold the locks for a moment longer
        places = [place for place in reversed(places) if not take_away(place)]
        if not places:
            return
        time.sleep(_BETWEEN_TRIES)
