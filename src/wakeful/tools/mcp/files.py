"""Small JSON files that several processes share: read whole, replaced whole, changed under a lock.

A reader sees the old file or the new one. What cannot be read raises: it is never taken for an empty file.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one when there is no file. Raises InvalidConfig for anything else."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"{path} cannot be read: {error}", "repair the file, or move it away") from None
    if not isinstance(data, dict):
        raise InvalidConfig(f"{path} holds a {type(data).__name__}, not an object", "repair the file, or move it away")
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Replace the file: after a crash it is the old one or the new one. Nobody else can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made for its owner alone (0600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone with the file, among all processes, until the block is left."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
