"""What this machine can hold a command with, found out by trying it once.

Best first: bubblewrap with its own namespaces; Landlock with seccomp; nothing, and then the reason is kept, because
every surface that shows `not_enforced` shows why.
"""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from wakeful import programs
from wakeful.sandbox import landlock, seccomp

TRY_SECONDS = 10
HEAR_OF_CHILDREN = "signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"


@dataclass(frozen=True, slots=True)
class ConfinementLevel:
    """What holds commands here."""

    mode: Literal["bubblewrap", "landlock", "not_enforced"]
    reason: str = ""
    """Why not more."""
    program: str = ""
    """Where bubblewrap is."""
    version: tuple[int, ...] = ()


def probe() -> ConfinementLevel:
    """The best this machine has. Tried again when programs are no longer taken from where they were."""
    return _best(programs.write_roots(), os.environ.get("PATH"))


@cache
def _best(_write_roots: frozenset[str], _path: str | None) -> ConfinementLevel:
    best = bubblewrap()
    if best.mode == "bubblewrap":
        return best
    second = landlocked()
    reason = f"{best.reason}; {second.reason}" if second.reason else best.reason
    return ConfinementLevel(second.mode, reason)


def bare(reason: str = "the owner wants none") -> ConfinementLevel:
    return ConfinementLevel("not_enforced", reason)


def bubblewrap() -> ConfinementLevel:
    """Bubblewrap, if it is installed where nobody can exchange it, and its namespaces can be made."""
    if sys.platform != "linux":
        return bare(f"bubblewrap is for Linux, and this is {sys.platform}")
    found = programs.find_guarded("bwrap")
    if not found.path:
        return bare(found.problem or "bubblewrap (the program bwrap) is not installed")
    return _tried(found.path)


@cache
def _tried(program: str) -> ConfinementLevel:
    """Is this a bubblewrap that works here?"""
    trial = [program, "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    trial += ["--cap-drop", "ALL", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "true"]
    environment = {"PATH": programs.search_path()}
    try:
        said = _run([program, "--version"], environment)
        tried = _run(trial, environment)
        said.check_returncode()
    except (OSError, subprocess.SubprocessError) as problem:
        return bare(f"bubblewrap does not run: {problem}")
    if tried.returncode != 0:
        return bare(f"bubblewrap cannot make its namespaces here: {tried.stderr.strip()[:200]}")
    version = tuple(map(int, re.findall(r"\d+", said.stdout)[:3]))
    if version < (0, 5):
        return bare(f"bubblewrap {said.stdout.strip()} is too old, 0.5 is needed")
    return ConfinementLevel("bubblewrap", "", program, version)


def landlocked() -> ConfinementLevel:
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
        tried = _run(interpreter(trial), {})
    except (OSError, subprocess.SubprocessError) as problem:
        return bare(f"Landlock could not be tried: {problem}")
    if tried.returncode != 0:
        return bare(f"Landlock or seccomp is refused here: {tried.stderr.strip().splitlines()[-1:]}")
    return ConfinementLevel("landlock", "; ".join(landlock.missing(version)), version=(version,))


def interpreter(program: str) -> list[str]:
    """A Python of its own for a program of this package: the standard library, this package and nothing else."""
    place = str(Path(__file__).parents[2])
    return [programs.python(), "-I", "-S", "-c", f"import sys; sys.path.append({place!r})\n{program}"]


def hearing_of_children(line: list[str]) -> list[str]:
    """The line of a program that waits for children of its own. Whoever ignores their ends (SIGCHLD) hands that on to
    every program they start, and it would never learn how they ended."""
    if signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN:
        return line
    return [*interpreter(f"import os, signal\n{HEAR_OF_CHILDREN}os.execv(sys.argv[1], sys.argv[1:])"), *line]


def _run(line: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    line = hearing_of_children(line)
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=TRY_SECONDS, check=False)
