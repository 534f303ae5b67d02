"""Forked children: a copy of a process that has stores open, and may use none of them.

A lock belongs to the open file, and a fork shares that: without this, a child would keep its parent's lock, and
nobody could take the parent's turns over when it dies. SQLite's own state in the child says that locks are held which
the child does not hold; using it, even through a new connection to the same file, can damage the database. So the
child lets go of the locks and leaves the connections alone; when it tries to use the store, by its object or its path,
it gets an error.
"""

import os
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from wakeful.contracts.errors import StoreProblem


class InheritedStore(Protocol):
    """A store that a child gets with its copy of the process."""

    @property
    def place(self) -> Path: ...

    def leave_to_parent(self, parent: int) -> None: ...


_open: "WeakSet[InheritedStore]" = WeakSet()
_files: dict[tuple[int, int], int] = {}
"""In a forked child: databases that were open in the process it was forked from, and that process."""
_kept: list[InheritedStore] = []
"""Not even closed: that, too, would use them."""


def note_open(store: InheritedStore) -> None:
    """Remember a store for as long as it is open."""
    _open.add(store)


def note_closed(store: InheritedStore) -> None:
    _open.discard(store)


def refuse_inherited(path: Path) -> None:
    """Raises StoreProblem in a child that was forked while its parent had this database open."""
    if not _files:
        return
    try:
        found = path.stat()
    except OSError:
        return
    parent = _files.get((found.st_dev, found.st_ino))
    if parent is not None:
        raise forked(path, parent)


def forked(path: Path, parent: int) -> StoreProblem:
    return StoreProblem(
        f"{path} was open in process {parent} when this process, {os.getpid()}, was forked from it: "
        "a forked child cannot use its parent's store",
        "Use the store in the parent alone, or start the child as a process of its own: multiprocessing's `spawn`, "
        "or subprocess.",
    )


def _after_fork() -> None:
    parent = os.getppid()
    for store in list(_open):
        _kept.append(store)
        try:
            found = store.place.stat()
            _files[found.st_dev, found.st_ino] = parent
        except OSError:
            pass  # deleted: nobody can open it by its name
        store.leave_to_parent(parent)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
