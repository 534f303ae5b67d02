"""What Landlock is told about writable folders, so that what lies closed in one of them stays closed.

Landlock grants a folder with everything below it and can take nothing out again. So a folder with something closed in
it (the runtime's database, its code, whatever the owner hides or protects) is not granted: its entries are, one by one,
and those that hold something closed are split in turn. The price: in a split folder itself nothing can be made, moved
or removed. Files that are there can be read and written, and folders below it are whole.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wakeful.programs import is_below


@dataclass(slots=True)
class Grants:
    """Paths by what is granted for them."""

    write: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    """Folders whose names may be read and nothing else: those that were split."""


def split(roots: Iterable[str], *, hidden: Sequence[str], protected: Sequence[str]) -> Grants:
    """Grants for writable roots: nothing for what is hidden, reading for what is protected, the rest whole."""
    grants = Grants()
    identities = {found for path in (*hidden, *protected) if (found := _identity(path)) is not None}
    for root in roots:
        _grant(root, hidden, protected, identities, grants)
    return grants


def split_folders(roots: Sequence[str], closed: Sequence[str]) -> tuple[str, ...]:
    """The folders that have to be split: every one from a root down to what is closed."""
    found: dict[str, None] = {}
    for path in closed:
        folder = os.path.dirname(path)
        while is_below(folder, roots):
            found[folder] = None
            if folder in roots or folder == "/":
                break
            folder = os.path.dirname(folder)
    return tuple(found)


def _grant(
    path: str, hidden: Sequence[str], protected: Sequence[str], identities: set[tuple[int, int]], grants: Grants
) -> None:
    if path in hidden:
        return
    if path in protected:
        grants.read.append(path)
        return
    inside = [other for other in (*hidden, *protected) if is_below(other, [path])]
    if not inside:
        grants.write.append(path)
        return
    grants.listed.append(path)
    try:
        with os.scandir(path) as entries:
            listed = list(entries)
    except OSError:
        return
    for entry in listed:
        if entry.is_symlink():
            continue  # what it points to has its own grant, or none
        if entry.path not in (*hidden, *protected) and not entry.is_dir() and _identity(entry.path) in identities:
            continue  # another name of the same file
        _grant(entry.path, hidden, protected, identities, grants)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino
