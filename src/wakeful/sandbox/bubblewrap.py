"""The line that starts bubblewrap: what is mounted, in which order, and what the command may do inside.

The whole machine is there, read-only, with holes: secrets and other programs' sockets are covered. The workspace and a
private temporary folder are writable, with islands that are not. A folder that holds such an island is a mount of its
own, so that it cannot be moved out of the way.

The first program inside waits for a word before it becomes the command. The runtime says it when bubblewrap has tied
its life to the runtime's; if the runtime dies before, the word never comes, and the command never begins.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.sandbox.environment import GIT_SETTINGS
from wakeful.sandbox.level_probe import ConfinementLevel
from wakeful.sandbox.places import SandboxPlace, is_below
from wakeful.sandbox.settings import MachineLimits, Network

TEMPORARY = os.path.join("/", "tmp")
"""The command's own, in memory, and gone with it."""
HOME = f"{TEMPORARY}/home"
SHARED_MEMORY = "/dev/shm"
"""Also its own; what is in it counts as memory."""
_STILL_SEEN = ("/run/current-system", "/run/wrappers/bin", "/run/opengl-driver")
"""Where one distribution keeps all its programs."""
_NAMES = "/run/systemd/resolve"
"""Where the names of hosts are asked for, when there is a network."""

Stdin: TypeAlias = Literal["nothing", "terminal", "line"]
"""What a command reads: nothing, its terminal, or what follows the word on the line on which that comes."""
_STDIN: Mapping[Stdin, str] = {"nothing": "</dev/null", "terminal": "<&1", "line": ""}


@dataclass(frozen=True, slots=True)
class Ground:
    """What a command may see and change."""

    cwd: str
    write_roots: tuple[str, ...]
    hidden: tuple[SandboxPlace, ...]
    guarded: tuple[SandboxPlace, ...]
    sockets: tuple[str, ...]
    """Files at which programs outside listen."""
    network: Network
    limits: MachineLimits

    def must_stand(self) -> list[SandboxPlace]:
        """Places below writable folders: they have to exist to be covered."""
        return [place for place in (*self.hidden, *self.guarded) if is_below(place.path, self.write_roots)]


def command_line(
    level: ConfinementLevel,
    ground: Ground,
    argv: Sequence[str],
    *,
    stdin: Stdin,
    status: int,
    seccomp: int | None,
    git_settings: int,
    nothing: Callable[[], int],
) -> list[str]:
    """The arguments. `nothing` opens an empty file, a new one each time: bubblewrap reads each of them once."""
    line = [level.program, *_namespaces(level, ground.network), "--ro-bind", "/", "/", "--dev", "/dev"]
    # Root without any capability still owns /proc/sys, and bubblewrap leaves it writable.
    line += ["--proc", "/proc", "--remount-ro", "/proc", *_temporary(level, ground.limits), *_sockets(ground.network)]
    line += ["--file", str(git_settings), f"{HOME}/{GIT_SETTINGS}"]
    line += [word for path in ground.sockets if _is_there(path) for word in ("--ro-bind", os.devnull, path)]
    inside = [place for place in ground.hidden if is_below(place.path, ground.write_roots)]
    outside = _outermost(place for place in ground.hidden if place not in inside)
    for place in outside:
        line += _covered(place, ground.write_roots, nothing)
    for root in sorted(ground.write_roots):
        line += ["--bind", root, root]
    for place in _outermost(inside):
        line += [*_covered(place, (), nothing), *(["--remount-ro", place.path] if place.folder else [])]
    line += _islands(ground)
    line += [word for place in outside if place.folder for word in ("--remount-ro", place.path)]
    line += ["--seccomp", str(seccomp)] if seccomp is not None else []
    line += ["--json-status-fd", str(status), "--chdir", ground.cwd, "--"]
    return [*line, "/bin/sh", "-c", _prelude(ground.limits, stdin), "sh", *argv]


def _namespaces(level: ConfinementLevel, network: Network) -> list[str]:
    line = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--die-with-parent", "--cap-drop", "ALL"]
    line += ["--unshare-net"] if network == "none" else []
    return [*line, "--disable-userns"] if level.version >= (0, 8) else line


def _temporary(level: ConfinementLevel, limits: MachineLimits) -> list[str]:
    size = ["--size", str(limits.temporary_bytes)] if level.version >= (0, 7) else []
    shared = [*size, "--perms", "1777", "--tmpfs", SHARED_MEMORY, "--remount-ro", "/dev"]
    return [*shared, *size, "--perms", "1777", "--tmpfs", TEMPORARY, "--perms", "0700", "--dir", HOME]


def _sockets(network: Network) -> list[str]:
    """Other programs listen below /run, and a read-only mount does not keep anybody from talking to them."""
    line: list[str] = []
    for folder in ("/run", "/var/run"):
        if os.path.isdir(folder) and not os.path.islink(folder):
            line += ["--tmpfs", folder]
    seen = [*_STILL_SEEN, *([_NAMES] if network == "full" else [])]
    line += [word for path in seen if os.path.exists(path) for word in ("--ro-bind", path, path)]
    return [*line, "--remount-ro", "/run"] if "/run" in line else line


def _is_there(path: str) -> bool:
    """Is it still there, where other mounts have taken so much away?"""
    return not is_below(path, [TEMPORARY, "/run", "/var/run", "/dev", "/proc"])


def _covered(place: SandboxPlace, write_roots: Sequence[str], nothing: Callable[[], int]) -> list[str]:
    if not place.folder:
        return ["--perms", "0000", "--ro-bind-data", str(nothing()), place.path]
    passes = any(is_below(root, [place.path]) for root in write_roots)  # a workspace below: the way there stays open
    return ["--perms", "0111" if passes else "0000", "--tmpfs", place.path]


def _islands(ground: Ground) -> list[str]:
    """Read-only places in writable folders, and each folder on the way to one a mount of its own."""
    places = [place.path for place in ground.guarded if is_below(place.path, ground.write_roots)]
    between: dict[str, None] = {}
    for path in places:
        folder = os.path.dirname(path)
        while folder not in ground.write_roots and is_below(folder, ground.write_roots):
            between[folder] = None
            folder = os.path.dirname(folder)
    line = [word for folder in sorted(between) if folder not in places for word in ("--bind", folder, folder)]
    return line + [word for path in sorted(places) for word in ("--ro-bind", path, path)]


def _outermost(places: Iterable[SandboxPlace]) -> list[SandboxPlace]:
    """Without those that lie below another."""
    kept: list[SandboxPlace] = []
    for place in sorted(places, key=lambda one: one.path):
        if not is_below(place.path, [other.path for other in kept]):
            kept.append(place)
    return kept


def _prelude(limits: MachineLimits, stdin: Stdin) -> str:
    """Limits of one process; then the wait for the word; then the command, with its own input."""
    bounds = f"ulimit -c 0; ulimit -t {limits.cpu_seconds}; ulimit -f {limits.file_bytes // 512}"
    bounds += f"; ulimit -d {limits.memory_bytes // 1024}"
    # Holds exactly, in a user namespace, for everybody but root; the letter is not the same in every shell.
    if os.getuid() != 0:
        bounds += f"; ulimit -p {limits.processes} 2>/dev/null || ulimit -u {limits.processes} 2>/dev/null"
    return f'{bounds}; read -r word || exit 125; exec "$@" {_STDIN[stdin]}'
