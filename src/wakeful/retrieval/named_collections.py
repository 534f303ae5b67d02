"""Collections that the owner's file names: `[collections.handbook]`, with a `folder`, relative to the file.

`patterns` and `untrusted` are as in `TextFiles`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig, inside
from wakeful.retrieval.text_files import PATTERNS, TextFiles
from wakeful.settings.owner_file import OwnerFile, owner_file

FIELDS = ("folder", "patterns", "untrusted")
_made: dict[tuple[Any, ...], TextFiles] = {}
"""One index for all agents of a process that use the same collection."""


def named_collection(name: str, environ: Mapping[str, str] = os.environ, file: OwnerFile | None = None) -> TextFiles:
    """The collection of that name. Raises InvalidConfig."""
    file = owner_file(environ) if file is None else file
    known = file.table("collections")
    if name not in known:
        has = ", ".join(known) or "none"
        raise InvalidConfig(
            f"there is no collection {name!r} in {file.path}",
            f"it has: {has}; write [collections.{name}] with a folder",
        )
    said = known[name]
    with inside("collections", name):
        return _made_of(name, said, file)


def _made_of(name: str, said: Any, file: OwnerFile) -> TextFiles:
    if not isinstance(said, Mapping) or not isinstance(said.get("folder"), str):
        raise InvalidConfig(f"{file.path}: collections.{name} names no folder", 'write folder = "path/to/texts"')
    for field in said:
        if field not in FIELDS:
            wrong = InvalidConfig(f"{file.path}: collections.{name} has no {field!r}", f"it has: {', '.join(FIELDS)}")
            raise wrong.within(field)
    folder = file.path.parent / Path(said["folder"]).expanduser()
    patterns = tuple(said.get("patterns", PATTERNS))
    key = (name, str(folder), patterns, bool(said.get("untrusted", False)))
    if key not in _made:
        _made[key] = TextFiles(name, folder, patterns=patterns, untrusted=key[3])
    return _made[key]
