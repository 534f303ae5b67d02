"""Connections with our settings, statements whose rows are plain tuples, and SQLite's errors in our words."""

import errno
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from wakeful.contracts.errors import StoreDamaged, StoreFull, StoreLocked, StoreProblem
from wakeful.store.sqlite.new_file import prepare

BUSY_MS = 2
"""How long SQLite itself waits for a lock, blocking the caller; longer waits are the writer's, and do not block."""


def connect(path: Path, vfs: str | None = None) -> apsw.Connection:
    """A connection with every setting that has to be made on each of them."""
    connection = apsw.Connection(str(path), vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.pragma("page_count") == 0:
            prepare(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # the helper alone does it
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


class Statements:
    """Runs statements on one cursor. No result is left open: a read cursor across an await would pin the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def do(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._cursor.execute(sql, values)

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(sql, rows)

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        # To the end, though one row is wanted: a statement left in the middle keeps its snapshot.
        found = self._cursor.execute(sql, values).fetchall()
        return found[0] if found else None

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._cursor.execute(sql, values).fetchall()

    def new_id(self) -> int:
        """The number of the row that was inserted last."""
        return self._connection.last_insert_rowid()


def translated(error: Exception, path: Path, agent_id: str = "") -> StoreProblem:
    """What an error of SQLite or the operating system means for whoever uses the store."""
    name = f"agent {agent_id} in {path}" if agent_id else str(path)
    if isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return StoreFull(
            f"there is no room left to write to {path}; what was acknowledged is safe",
            "Free some space and try again; the store stays usable.",
        )
    if isinstance(error, apsw.NotADBError):
        return StoreDamaged(f"{path} is not a database", "Name another file, or restore this one from a backup.")
    if isinstance(error, apsw.CorruptError):
        return StoreDamaged(
            f"{name} cannot be read: {error}",
            "Restore the file from a backup; other agents in it may still be readable.",
            agent_id=agent_id,
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return locked(path)
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError | PermissionError):
        return StoreProblem(f"{path} cannot be opened for writing: {error}", "Check the folder and its permissions.")
    return StoreProblem(f"{path} could not be used: {error}", "Check the disk, then try again.")


def locked(path: Path) -> StoreLocked:
    return StoreLocked(
        f"another process keeps {path} locked",
        "Close whatever holds it (a database browser, a backup, a stopped process), then try again.",
    )


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
