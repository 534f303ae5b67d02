"""Code that runs inside the runtime and lies where agents may write: commands and file tools do not change it.

The environment this Python runs from, the interpreter behind it, this package, and every module and package that the
process has loaded from a write root: the tools that were handed over, and the program that hands them over. An agent
that could write one of these would run in the runtime at its next import, or at its next start.
"""

import os
import site
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from wakeful.programs import is_below

NEW_ENVIRONMENT = "python3 -m venv .venv-agent && .venv-agent/bin/pip install PACKAGE"
"""The line that makes an environment of the agent's own."""
_OF_AN_ENVIRONMENT = ("bin", "include", "lib", "lib64", "pyvenv.cfg", "Scripts", "Lib")


def code_places(write_roots: Sequence[str]) -> tuple[str, ...]:
    """Paths below the write roots that hold code of the runtime; a folder ends with a slash, as in the settings."""
    found = [place for named in _environments() for place in _below(named, write_roots)]
    folders = [path for path in found if os.path.isdir(path) and not os.path.islink(path)]
    found += _loaded(sys.modules.values(), write_roots, folders)
    return tuple(dict.fromkeys(path if path.endswith("/") or not _is_folder(path) else f"{path}/" for path in found))


def environments(write_roots: Sequence[str]) -> tuple[str, ...]:
    """Those of the places that packages are installed into."""
    return tuple(path for named in _environments() for path in _below(named, write_roots) if _is_folder(path))


def importable(write_roots: Sequence[str]) -> tuple[str, ...]:
    """Folders on `sys.path` that an agent may write, the environment's own left out: what it makes can be imported."""
    folders = dict.fromkeys(os.path.realpath(entry or ".") for entry in sys.path)
    return tuple(each for each in folders if is_agents_own(each, write_roots))


def is_agents_own(path: str, write_roots: Sequence[str]) -> bool:
    """May an agent have written this? The environment that this Python runs from is no agent's, wherever it is."""
    return is_below(path, write_roots) and not is_below(path, environments(write_roots))


def exposures(write_roots: Sequence[str]) -> tuple[str, ...]:
    """What an owner should know: where agents may write something that Python finds, or is run from."""
    found = [
        f"{folder} is on sys.path, and agents may write it: what they make there can be imported by this program and "
        "by the next one. Give the agent a workspace of its own, or start the program from another folder."
        for folder in importable(write_roots)
    ]
    places = (path for path in environments(write_roots) if os.path.exists(f"{path}/pyvenv.cfg"))
    found += [
        f"wakeful runs from {path}, in a folder that agents may write: it is read-only for them. Where they have to "
        f"install packages: {NEW_ENVIRONMENT}"
        for path in dict.fromkeys(places)
    ]
    return tuple(found)


def _environments() -> list[str]:
    package = str(Path(__file__).parents[1])
    user = [site.USER_SITE] if site.USER_SITE and os.path.isdir(site.USER_SITE) else []
    return list(dict.fromkeys([sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, package, *user]))


def _below(named: str, write_roots: Sequence[str]) -> Iterator[str]:
    """The folder where it lies in a write root, and every link on the way to it that does: it could be exchanged."""
    yield from _links(os.path.abspath(named), write_roots)
    real = os.path.realpath(named)
    if real in write_roots:  # an environment made in the workspace itself: the rest of the folder is work
        parts = (f"{real}/{part}" for part in _OF_AN_ENVIRONMENT)
        yield from (part for part in parts if os.path.exists(part) and not os.path.islink(part))
    elif is_below(real, write_roots):
        yield real


def _links(path: str, write_roots: Sequence[str]) -> Iterator[str]:
    while (folder := os.path.dirname(path)) != path:
        own = os.path.join(os.path.realpath(folder), os.path.basename(path))
        if os.path.islink(path) and is_below(own, write_roots):
            yield own
        path = folder


def _loaded(modules: Iterable[ModuleType], write_roots: Sequence[str], covered: Sequence[str]) -> Iterator[str]:
    """What modules are made of: the outermost package of one, whole; a lone file, and where its bytecode is kept."""
    real: dict[str, str] = {}
    for module in list(modules):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        folder, name = os.path.split(os.path.abspath(file))
        inside = real.get(folder)
        if inside is None:
            inside = real[folder] = os.path.realpath(folder)
        if not is_below(inside, write_roots) or is_below(inside, covered):
            continue
        package = _outermost_package(inside, write_roots)
        if package is not None:
            yield f"{package}/"
        else:
            yield f"{inside}/{name}"
            yield f"{inside}/__pycache__/"


def _outermost_package(folder: str, write_roots: Sequence[str]) -> str | None:
    """The package a folder belongs to, as far as it lies below a write root: a root itself is never held whole."""
    found = None
    while folder not in write_roots and os.path.exists(f"{folder}/__init__.py"):
        found, folder = folder, os.path.dirname(folder)
    return found


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
