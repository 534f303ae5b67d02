"""The folders of tasks: one beside each store, which its owner alone can read, with one for each task."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wakeful.processes.frames import KEY

IN_MEMORY = ":memory:"
SUFFIX = ".tasks"
_NOT_EMPTY = ".tasks"
"""In the folder of tasks, so that nobody takes it for one that stands in for another."""


@contextlib.contextmanager
def tasks_folder(location: str) -> Iterator[str]:
    """Where the tasks of a store have their folders: beside it. Those of a store in memory go with it."""
    if location != IN_MEMORY:
        yield f"{Path(location).absolute()}{SUFFIX}"
        return
    with tempfile.TemporaryDirectory(prefix="wakeful-tasks-", ignore_cleanup_errors=True) as folder:
        yield folder


def make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / _NOT_EMPTY).touch()


def folders_in(folder: Path) -> list[Path]:
    """Those of tasks, whether there still are such tasks or not."""
    return [place for place in folder.iterdir() if place.is_dir()]


def make_task_folder(folder: Path) -> None:
    """With its key, which nobody else can read. The folder that it is in may have been taken away meanwhile."""
    make_folder(folder.parent)
    folder.mkdir(mode=0o700)
    key = folder / KEY
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32), encoding="ascii")
