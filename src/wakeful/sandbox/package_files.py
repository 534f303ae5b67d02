"""The files of wakeful on the disk, as they were when this process started: a daemon runs one version, whatever is
installed under it.

Everything a daemon needs is loaded soon after its start. A part that was not loaded is loaded only from the file that
lay there then; once any file is another one, no helper process is started from them either. Python finds a module once,
so what is loaded stays as it is.
"""

import importlib
import logging
import os
import pkgutil
import re
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from wakeful._version import __version__
from wakeful.contracts.errors import ModuleRefused

PACKAGE = str(Path(__file__).parents[1])
RESTART = "wakeful daemon restart"
NOT_FOR_DAEMONS = (
    *("wakeful.testing", "wakeful.surfaces.cli", "wakeful.surfaces.tui", "wakeful.surfaces.library"),
    *("wakeful.tools.foreign", "wakeful.tools.mcp"),
)
"""Parts that a daemon does not load beforehand. MCP is slow to load, and is loaded with the first server."""
LOOK_SECONDS = 1.0
"""Within so long one look at the files is enough."""
_VERSION = re.compile(r'__version__ = "([^"]+)"')
_Stamp: TypeAlias = tuple[int, int, int]


class PackageFiles(MetaPathFinder):
    """Stands before the other finders, and refuses parts of wakeful whose files are others than at the start."""

    def __init__(self, folder: str = PACKAGE) -> None:
        self.folder = folder
        self.running = __version__
        self._known = _stamps(folder)
        self._looked_at = float("-inf")
        self._changed = False

    def changed(self) -> bool:
        """Is any file another one, gone or new? Once that is so, it stays so: the process cannot know what fits."""
        if not self._changed and time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._changed = _stamps(self.folder) != self._known
            self._looked_at = time.monotonic()
        return self._changed

    def installed(self) -> str:
        """The version on the disk; blank: it cannot be read."""
        try:
            found = _VERSION.search(Path(self.folder, "_version.py").read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            return ""
        return found[1] if found is not None else ""

    def words(self) -> str:
        """What a person is told; blank: nothing has changed."""
        if not self.changed():
            return ""
        installed = self.installed()
        others = f"version {installed}" if installed not in ("", self.running) else "other files"
        return (
            f"wakeful was replaced on the disk by {others}; this process runs version {self.running} and loads nothing "
            f"of it. To change over: {RESTART}"
        )

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None: the other finders may look. Raises ModuleRefused for a part whose file is another one."""
        if not fullname.startswith("wakeful.") or path is None:
            return None
        name = fullname.rpartition(".")[2]
        for folder in path:
            for file in (f"{folder}/{name}/__init__.py", f"{folder}/{name}.py"):
                stamp = _stamp(file)
                known = self._known.get(os.path.relpath(file, self.folder))
                if stamp is not None or known is not None:
                    if stamp == known:
                        return None
                    raise ModuleRefused(
                        f"{fullname} is not loaded: wakeful was replaced on the disk since this process started",
                        RESTART,
                    )
        return None


def hold_package() -> PackageFiles:
    """From here on this process keeps to the files that are there now."""
    files = held_package()
    if files is None:
        files = PackageFiles()
        sys.meta_path.insert(0, files)
    return files


def held_package() -> PackageFiles | None:
    """What this process keeps to; None: it is none that has to."""
    return next((finder for finder in sys.meta_path if isinstance(finder, PackageFiles)), None)


def load_ahead() -> Iterable[str]:
    """Load what a daemon may need later, part by part; the names of what was loaded."""
    for found in pkgutil.walk_packages([PACKAGE], "wakeful.", onerror=lambda _: None):
        if found.name in sys.modules or found.name.startswith(NOT_FOR_DAEMONS) or found.name.endswith(".__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ImportError as problem:  # a package of others is not installed, or all of this was replaced just now
            logging.getLogger("wakeful").debug("%s is not loaded: %s", found.name, problem)
            continue
        yield found.name


def _stamps(folder: str) -> dict[str, _Stamp]:
    found: dict[str, _Stamp] = {}
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(".py") and (stamp := _stamp(f"{here}/{name}")) is not None:
                found[os.path.relpath(f"{here}/{name}", folder)] = stamp
    return found


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
