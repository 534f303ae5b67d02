"""Imports in the runtime's own processes: no module comes from a file that an agent made or changed.

The command line puts the current folder on `sys.path`, so that `--tools` finds code there, and the same folder is the
agent's to write. From the moment an agent gets tools there, a module below one of its write roots is loaded only if its
file is the one that lay there then (by inode, size and times: the time of change cannot be set back), and it is
compiled from that very file: cached bytecode, which could say something else, is not looked at.

A program that uses the library has its own imports; there `late_imports` does what can be done.
"""

import logging
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader, all_suffixes
from types import CodeType, ModuleType
from typing import TypeAlias

from wakeful.contracts.errors import ModuleRefused
from wakeful.sandbox.own_code import importable, is_agents_own

MOST_FILES = 50_000
"""How many entries of a folder are remembered. What lies beyond is not imported any more."""
_Stamp: TypeAlias = tuple[int, int, int, int, int]


class ImportGuard(MetaPathFinder):
    """Stands before all other finders, and looks at what they find."""

    def __init__(self) -> None:
        self._roots: list[str] = []
        self._known: dict[str, _Stamp] = {}

    def watch(self, write_roots: Sequence[str]) -> None:
        """From now on agents write here. What lies here now may be imported; what is made or changed later may not."""
        fresh = [root for root in write_roots if root not in self._roots]
        self._roots += fresh
        for folder in importable(fresh):
            self._known |= _stamps(folder)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give. Raises ModuleRefused for a file an agent may have written."""
        if not self._roots:
            return None
        spec = next(filter(None, (found for found in self._others(fullname, path, target))), None)
        if spec is None or not spec.has_location or spec.origin is None:
            return spec  # built in, frozen, or a folder without code of its own
        origin = os.path.realpath(spec.origin)
        if not is_agents_own(origin, self._roots):
            return spec
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = _FromSource(fullname, origin, self)
        self.check(fullname, origin)
        return spec

    def check(self, name: str, path: str, found: os.stat_result | None = None) -> None:
        """Is it the file that was there at the beginning? Raises ModuleRefused."""
        known = self._known.get(path)
        if known is not None and known == _stamp(found if found is not None else os.stat(path)):
            return
        what = "changed" if known is not None else "made"
        problem = ModuleRefused(
            f"{name} is not imported from {path}: the file was {what} since the agent began, where the agent may write",
            "if you want this code, look at it and start again; if not, remove the file",
        )
        logging.getLogger("wakeful").warning("%s", problem)
        raise problem

    def _others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> Iterable[ModuleSpec | None]:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                yield finder.find_spec(fullname, path, target)


class _FromSource(SourceFileLoader):
    """Compiles the file that was checked, and no bytecode beside it."""

    def __init__(self, fullname: str, path: str, guard: ImportGuard) -> None:
        super().__init__(fullname, path)
        self._guard = guard

    def get_code(self, fullname: str) -> CodeType:
        with open(self.path, "rb") as file:
            self._guard.check(fullname, os.path.realpath(self.path), os.fstat(file.fileno()))
            return self.source_to_code(file.read(), self.path)


def guard_imports() -> ImportGuard:
    """Put a guard before all finders of this process, if there is none. It does nothing until it is told to watch."""
    guard = installed()
    if guard is None:
        guard = ImportGuard()
        sys.meta_path.insert(0, guard)
    return guard


def installed() -> ImportGuard | None:
    """The guard of this process, if it is one of ours."""
    return next((finder for finder in sys.meta_path if isinstance(finder, ImportGuard)), None)


def _stamps(folder: str) -> dict[str, _Stamp]:
    suffixes = tuple(all_suffixes())
    found: dict[str, _Stamp] = {}
    seen = 0
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name.isidentifier() and name != "__pycache__"]
        seen += len(files) + len(folders)
        if seen > MOST_FILES:
            break
        for name in files:
            if name.endswith(suffixes):
                path = os.path.realpath(f"{here}/{name}")
                found[path] = _stamp(os.stat(path))
    return found


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
