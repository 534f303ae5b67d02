"""Connections with our settings, statements whose rows are plain tuples, and SQLite's errors in our words."""

import errno
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from wakeful.contracts.errors import (
    InvalidValue,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreProblem,
    StoreReadOnly,
)
from wakeful.store.sqlite.migrations import REBUILD_DUE, migrate, shipped, version_of
from wakeful.store.sqlite.new_file import prepare


def connect_for_reading(path: Path, scratch: Callable[[], Path]) -> Callable[[], apsw.Connection]:
    """What opens a connection to it. `scratch` makes the private folder, when one is needed: on a system that is
    read-only altogether there is none. Rows of a private copy may have to be made again (`is_rebuild_due`). Raises
    what SQLite or the operating system say."""
    try:
        return _usable(partial(_connect, path, "mode=ro"), path)
    except (apsw.CantOpenError, apsw.ReadOnlyError, _Unready):
        pass
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size == 0:
        try:
            return _usable(partial(_connect, path, "immutable=1"), path)
        except _Unready:
            pass
    copy = scratch() / path.name
    for name in (path, wal):
        if name.exists():
            shutil.copyfile(name, copy.with_name(name.name))
    connection = connect(copy)
    try:
        migrate(connection, copy, shipped())
    finally:
        connection.close()
    return partial(connect, copy)


class _Unready(Exception):
    """It has to be changed before it can be read: of an older version, or in the middle of a rebuild."""


def is_rebuild_due(connection: apsw.Connection) -> bool:
    """Was a table added, or was a rebuild cut off?"""
    return connection.execute("SELECT 1 FROM meta WHERE key = ?", (REBUILD_DUE,)).get is not None


def _usable(again: Callable[[], apsw.Connection], path: Path) -> Callable[[], apsw.Connection]:
    connection = again()
    try:
        newest = shipped()[-1].version
        if version_of(connection, path, newest) < newest or is_rebuild_due(connection):
            raise _Unready
    finally:
        connection.close()
    return again


def _connect(path: Path, how: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{path.as_uri()}?{how}", flags=flags)
    connection.set_busy_timeout(BUSY_MS)
    _keep_plans(connection)
    connection.execute("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON")
    return connection


BUSY_MS = 2
"""How long SQLite itself waits for a lock, blocking the caller; longer waits are the writer's, and do not block."""


def _keep_plans(connection: apsw.Connection) -> None:
    """A statement is compiled once. Without this, SQLite looks at the values that are bound, and compiles most of our
    reads again each time they get others; which index serves which read is said in the statement anyway."""
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def connect(path: Path, vfs: str | None = None) -> apsw.Connection:
    """A connection with every setting that has to be made on each of them."""
    connection = apsw.Connection(str(path), vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MS)
        _keep_plans(connection)
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


@contextmanager
def looked_at(connection: apsw.Connection) -> Iterator[None]:
    """When this raises, the connection is closed and the files stay as they were found.

    The last connection to close copies what it can read of the write-ahead log and deletes the rest, which may be all
    that is left to recover a damaged one from.
    """
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        yield
    except BaseException:
        connection.close()
        raise
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


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

    def version(self) -> int:
        """Another number after each commit, of any connection, that the transaction under way sees."""
        return self._connection.data_version()

    def new_id(self) -> int:
        """The number of the row that was inserted last."""
        return self._connection.last_insert_rowid()


class NotAsWritten(Exception):
    """A row that cannot be read as what was written there: the page it is on is damaged."""


def translated(error: Exception, path: Path, agent_id: str = "") -> StoreProblem:
    """What an error of SQLite or the operating system means for whoever uses the store."""
    name = f"agent {agent_id} in {path}" if agent_id else str(path)
    if path.is_dir():
        return StoreProblem(f"{path} is a folder, not a store", f"Name a file, for example {path / 'runs.db'}.")
    if isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return StoreFull(
            f"there is no room left to write to {path}; what was acknowledged is safe",
            "Free some space and try again; the store stays usable.",
        )
    if isinstance(error, apsw.NotADBError):
        return StoreDamaged(f"{path} is not a database", "Name another file, or restore this one from a backup.")
    if isinstance(error, apsw.CorruptError | UnicodeDecodeError | NotAsWritten):
        return StoreDamaged(
            f"{name} cannot be read: {error}",
            "Restore the file from a backup; other agents in it may still be readable.",
            agent_id=agent_id,
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return locked(path)
    no_right = isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError | PermissionError)
    if no_right or (isinstance(error, OSError) and error.errno == errno.EROFS):
        return StoreReadOnly(f"{path} cannot be opened for writing: {error}", "Check the folder and its permissions.")
    return StoreProblem(f"{path} could not be used: {error}", "Check the disk, then try again.")


def not_text(error: UnicodeEncodeError) -> InvalidValue:
    """For a name or an id from outside that no database can hold."""
    return InvalidValue(
        "invalid_text", "", f"{error.object!a} holds half of a surrogate pair", "Use plain Unicode text."
    )


def locked(path: Path) -> StoreLocked:
    return StoreLocked(
        f"another process keeps {path} locked",
        "Close whatever holds it (a database browser, a backup, a stopped process), then try again.",
    )


UNREADABLE = (apsw.Error, OSError, UnicodeDecodeError)
"""What SQLite, the operating system and damaged rows raise."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
