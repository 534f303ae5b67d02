"""What this machine can hold a command with, found out by trying it once.

Best first: bubblewrap with its own namespaces; Landlock with seccomp; nothing, and then the reason is kept, because
every surface that shows `not_enforced` shows why.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from wakeful.sandbox import landlock, seccomp

TRY_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Level:
    """What holds commands here."""

    mode: Literal["bubblewrap", "landlock", "not_enforced"]
    reason: str = ""
    """Why not more."""
    program: str = ""
    """Where bubblewrap is."""
    version: tuple[int, ...] = ()


@cache
def probe() -> Level:
    """The best this machine has. Tried once in a process."""
    best = bubblewrap()
    if best.mode == "bubblewrap":
        return best
    second = landlocked()
    reason = f"{best.reason}; {second.reason}" if second.reason else best.reason
    return Level(second.mode, reason)


def bare(reason: str = "the owner wants none") -> Level:
    return Level("not_enforced", reason)


def bubblewrap() -> Level:
    """Bubblewrap, if it is installed and its namespaces can be made."""
    if sys.platform != "linux":
        return bare(f"bubblewrap is for Linux, and this is {sys.platform}")
    program = shutil.which("bwrap")
    if program is None:
        return bare("bubblewrap (the program bwrap) is not installed")
    trial = [program, "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    trial += ["--cap-drop", "ALL", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TRY_SECONDS, check=True)
        tried = subprocess.run(trial, capture_output=True, text=True, timeout=TRY_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        return bare(f"bubblewrap does not run: {problem}")
    if tried.returncode != 0:
        return bare(f"bubblewrap cannot make its namespaces here: {tried.stderr.strip()[:200]}")
    version = tuple(map(int, re.findall(r"\d+", said.stdout)[:3]))
    if version < (0, 5):
        return bare(f"bubblewrap {said.stdout.strip()} is too old, 0.5 is needed")
    return Level("bubblewrap", "", program, version)


def landlocked() -> Level:
    """Landlock and seccomp, if a process of ours can be held by both."""
    if sys.platform != "linux":
        return bare(f"Landlock is for Linux, and this is {sys.platform}")
    version = landlock.abi()
    if version == 0:
        return bare("this kernel has no Landlock, or it is switched off")
    if not seccomp.supported():
        return bare(f"no seccomp filter is known for {os.uname().machine}")
    trial = "from wakeful.sandbox import landlock, seccomp\n"
    trial += "seccomp.apply(seccomp.program(sockets=False)); landlock.restrict(['/usr'], [], [], network=False)"
    try:
        tried = subprocess.run(interpreter(trial), capture_output=True, text=True, timeout=TRY_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        return bare(f"Landlock could not be tried: {problem}")
    if tried.returncode != 0:
        return bare(f"Landlock or seccomp is refused here: {tried.stderr.strip().splitlines()[-1:]}")
    return Level("landlock", "; ".join(landlock.missing(version)), version=(version,))


def interpreter(program: str) -> list[str]:
    """A Python of its own for a program of this package: the standard library, this package and nothing else."""
    place = str(Path(__file__).parents[2])
    return [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({place!r})\n{program}"]
