"""Who may read a store: its owner. Files are 0600 and folders 0700, whatever the umask says and whatever they were.

A log holds prompts, arguments and results. SQLite gives `-wal` and `-shm` the rights of the database, so that they are
right from their first moment once the database is. What is there with wider rights is narrowed when it is opened; what
cannot be (another user's file, a read-only disk) stays as it is.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def create_file(path: Path) -> int:
    """Open a new file for writing that nobody else may read. Raises FileExistsError."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE)
    os.fchmod(descriptor, FILE)  # the umask may have taken away what the owner needs
    return descriptor


def make_folder(path: Path) -> None:
    """A folder for nobody else, with whatever is missing above it."""
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(FOLDER)
    except FileExistsError:
        if path.is_dir():
            return  # somebody else was faster
        raise
    path.chmod(FOLDER)


def narrow_database(path: Path, backups: Iterable[Path]) -> None:
    """The database, what SQLite puts beside it, copies of older versions, large blobs and locks."""
    for file in (*(path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal", "-anchor")), *backups):
        _narrow(file, FILE)
    for name in ("blobs", "owners"):
        folder = path.with_name(f"{path.name}.{name}")
        # Once a folder is closed nobody gets at what is in it: only one that was open is gone through.
        if _narrow(folder, FOLDER):
            for found in folder.rglob("*"):
                _narrow(found, FOLDER if found.is_dir() else FILE)


def _narrow(path: Path, mode: int) -> bool:
    """Take away what others may do; was there anything?"""
    try:
        now = stat.S_IMODE(path.stat().st_mode)
        if not now & ~mode:
            return False
        path.chmod(now & mode)
    except OSError:
        return False
    return True
