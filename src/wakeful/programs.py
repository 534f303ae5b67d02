"""Programs that the runtime itself starts, found where no agent can write.

A virtual environment, `node_modules/.bin` or any other folder of a workspace may be on the PATH of the person who
started the runtime. An agent can put a program there, and the runtime would start it outside every sandbox. So names
are looked up on the PATH without

    the write roots of the agents of this process, and every workspace that is attached in a store it opened
    the activated virtual environment (`VIRTUAL_ENV`) and the current folder: agents of other processes work there
    the temporary folder

and a program that turns out to be a link into one of them is passed over. Programs without a helper: where Python can
do it itself (a controlling terminal), nothing is looked up at all.
"""

import os
import pwd
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_write_roots: set[str] = set()


class ProgramLookup(NamedTuple):
    """A program; or none, and why one that was found is not used."""

    path: str = ""
    problem: str = ""


def add_write_roots(roots: Iterable[str | os.PathLike[str]]) -> None:
    """Agents of this process may write these folders: from now on no program is taken from them."""
    _write_roots.update(os.path.realpath(root) for root in roots)


def agent_roots() -> frozenset[str]:
    """What agents of this process may write."""
    return frozenset(_write_roots)


def write_roots() -> frozenset[str]:
    """Where programs are not taken from."""
    return agent_roots() | _usual_workspaces() | {os.path.realpath(tempfile.gettempdir())}


def search_path(environ: Mapping[str, str] | None = None, *, owners: bool = False) -> str:
    """The PATH without relative folders and write roots, links resolved.

    For what the `owners` configured, the programs of the environment that wakeful itself runs from stay on it, wherever
    that is: it is read-only for agents, and whoever could write it would not need a program there.
    """
    given = (os.environ if environ is None else environ).get("PATH", DEFAULT_PATH)
    return ":".join(_folders(given, write_roots(), _own_programs() if owners else ()))


def find(name: str, environ: Mapping[str, str] | None = None, *, owners: bool = False) -> str | None:
    """The path of a program, or None. A name with a slash is a choice that was made, and is not looked up."""
    if "/" in name:
        return name
    return next(iter(_candidates(name, environ, owners)), None)


def find_guarded(name: str, environ: Mapping[str, str] | None = None) -> ProgramLookup:
    """A program that holds others: neither it nor a folder on the way to it may be written by other users."""
    problem = ""
    passed_over = shutil.which(name)
    if passed_over is not None and is_below(os.path.realpath(passed_over), write_roots()):
        problem = f"{passed_over} is not used: it is where an agent may write"
    for path in _candidates(name, environ):
        loose = _written_by_others(os.path.realpath(path))
        if not loose:
            return ProgramLookup(path)
        problem = f"{path} is not used: {loose}"
    return ProgramLookup(problem=problem)


def python() -> str:
    """This interpreter, and not the link to it in a virtual environment: that one may be an agent's to replace."""
    base: str = getattr(sys, "_base_executable", "") or sys.executable
    return os.path.realpath(base) if os.access(base, os.X_OK) else sys.executable


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Is the path one of these folders, or in one of them?"""
    return any(path == root or path.startswith(root if root == "/" else f"{root}/") for root in roots)


@lru_cache(maxsize=64)
def _folders(given: str, closed: frozenset[str], own: tuple[str, ...]) -> tuple[str, ...]:
    real = (os.path.realpath(folder) for folder in given.split(":") if folder.startswith("/"))
    return tuple(dict.fromkeys(folder for folder in real if _is_safe(folder, closed, own)))


def _candidates(name: str, environ: Mapping[str, str] | None, owners: bool = False) -> Iterable[str]:
    closed, own = write_roots(), _own_programs() if owners else ()
    for folder in filter(None, search_path(environ, owners=owners).split(":")):
        path = f"{folder}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK) and _is_safe(os.path.realpath(path), closed, own):
            yield path


def _usual_workspaces() -> set[str]:
    """The activated environment and the current folder. `/` and a home hold too much that is no agent's to count."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    named = {os.path.realpath(path) for path in (here, os.environ.get("VIRTUAL_ENV", "")) if path}
    return named - {"/", *map(os.path.realpath, _homes())}


def _homes() -> Iterable[str]:
    yield os.environ.get("HOME") or "/"
    with suppress(KeyError):
        yield pwd.getpwuid(os.getuid()).pw_dir


def _own_programs() -> tuple[str, ...]:
    return (f"{os.path.realpath(sys.prefix)}/bin",)


def _is_safe(path: str, closed: Iterable[str], own: Iterable[str]) -> bool:
    return not is_below(path, closed) or is_below(path, own)


def _written_by_others(path: str) -> str:
    """Who else may write the file or a folder above it, in words; empty when nobody may."""
    trusted = {0, os.geteuid()}
    inner: os.stat_result | None = None
    while True:
        found = os.stat(path)
        if found.st_uid not in trusted:
            return f"{path} belongs to another user ({found.st_uid})"
        # In a sticky folder nobody can replace what belongs to somebody else.
        sticky = inner is not None and found.st_mode & stat.S_ISVTX
        if found.st_mode & 0o022 and not sticky:
            return f"other users may write {path}"
        inner, parent = found, os.path.dirname(path)
        if parent == path:
            return ""
        path = parent
