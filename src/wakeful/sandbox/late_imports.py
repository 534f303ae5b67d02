"""Everything that wakeful would import in the middle of a run, loaded before an agent can write anything.

Where a folder on `sys.path` is writable for an agent, a file it writes there is found by the next import of that name:
`referencing.py` in the workspace would run inside the runtime. Python finds a module once. So what the runtime and the
libraries below it load late is loaded at once, before the first request to a model.
"""

import importlib
import logging
import pkgutil
import sys
from functools import cache
from pathlib import Path

_NOT_FOR_RUNS = ("wakeful.testing", "wakeful.surfaces.cli", "wakeful.tools.foreign", "wakeful.tools.mcp.guard")
_ROOMS = {
    "wakeful.tools.mcp": "wakeful.tools.mcp.source",
    "wakeful.surfaces.http": "wakeful.surfaces.http",
    "wakeful.surfaces.tui": "wakeful.surfaces.tui",
    "wakeful.hosts": "wakeful.hosts",
}
"""Rooms that a run does not enter by itself, with libraries of their own: loaded whole once one of its modules is."""
LATE = (
    *("difflib", "http.cookiejar", "importlib.metadata", "webbrowser"),
    *("genai_prices.data", "genai_prices.data_snapshot", "httpx2", "httpcore2", "httpcore2._backends.anyio", "h11"),
    *("anyio._backends._asyncio", "anyio._core._testing", "sniffio", "truststore", "ssl"),
    *("jsonschema", "jsonschema.exceptions", "referencing", "referencing.exceptions", "yaml", "re2", "cronsim"),
)
"""Modules of others that are first imported in the middle of a run, by wakeful or by what it uses."""


def load_late_imports() -> tuple[str, ...]:
    """Load them; the names of those that are not installed. Done once in a process, again for a room begun since."""
    return _load(tuple(room for room, first in _ROOMS.items() if first in sys.modules))


@cache
def _load(begun: tuple[str, ...]) -> tuple[str, ...]:
    missing = [name for name in LATE if not _loaded(name)]
    spared = (*_NOT_FOR_RUNS, *(room for room in _ROOMS if room not in begun))
    for found in pkgutil.walk_packages([str(Path(__file__).parents[1])], "wakeful.", onerror=lambda _: None):
        if not found.name.startswith(spared):
            _loaded(found.name)
    return tuple(missing)


def _loaded(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError as problem:
        logging.getLogger("wakeful").debug("%s is not loaded: %s", name, problem)
        return False
    return True
