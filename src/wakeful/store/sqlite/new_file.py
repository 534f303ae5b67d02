"""A new database: an empty one, made once in memory, put where it is named as a whole.

It is on disk before it has its name: whoever finds it finds all of it, whatever happened to the process or the machine
that made it, and two who make it at once get the same one. Making it step by step in its place takes five waits for the
disk and a hundred writes.

Until then it has a name of its own and a lock. What a process left that was killed meanwhile has no lock any more, and
the next one that opens or makes the database removes it.
"""

import contextlib
import fcntl
import os
import re
import secrets
from functools import lru_cache
from pathlib import Path

import apsw

from wakeful.store.sqlite.file_rights import create_file
from wakeful.store.sqlite.migrations import migrate, shipped

PAGE_BYTES = 2048
"""Each table and index has a page at least: half the usual size, and a short run takes a quarter less on disk."""
_WAL = b"\x02\x02"
"""At 18 in the header: written and read through a write-ahead log."""


def put_new(path: Path) -> None:
    """Make the database, unless there is anything of one. What cannot be made like this is left to SQLite."""
    if any(path.with_name(path.name + end).exists() for end in ("", "-wal", "-journal")):
        with contextlib.suppress(OSError):
            if path.stat().st_nlink > 1:  # it got its name, and its maker was killed before the other one was gone
                _remove_left(path)
        return
    _remove_left(path)
    unnamed = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        descriptor = create_file(unnamed)
        try:
            with os.fdopen(descriptor, "wb") as file:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                file.write(_empty())
                file.flush()
                os.fsync(descriptor)
                with contextlib.suppress(FileExistsError):  # somebody else was faster
                    os.link(unnamed, path)
        finally:
            unnamed.unlink()
    except OSError:
        # No room, no right, no links here: SQLite finds out what, and says so in words we know. An empty file is an
        # empty database to it, with rights that it keeps.
        with contextlib.suppress(OSError):
            os.close(create_file(path))


def _remove_left(path: Path) -> None:
    """Remove what nobody is making any more."""
    name = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.new")
    with contextlib.suppress(OSError):
        for left in [each for each in path.parent.iterdir() if name.fullmatch(each.name)]:
            handle = os.open(left, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            except BlockingIOError:
                continue  # somebody is
            finally:
                os.close(handle)


def prepare(connection: apsw.Connection) -> None:
    """What has to be said of a database before anything is written to it."""
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL")


@lru_cache(maxsize=1)
def _empty() -> bytes:
    connection = apsw.Connection(":memory:")
    try:
        prepare(connection)
        migrate(connection, Path(":memory:"), shipped())
        made = connection.serialize("main")
    finally:
        connection.close()
    return made[:18] + _WAL + made[20:]
