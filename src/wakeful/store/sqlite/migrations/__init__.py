"""Numbered SQL files, each run once and in one transaction; the database's `user_version` is the last one.

A database that is there already is copied beside itself before it is changed. One that a newer wakeful has changed is
refused, with both versions named.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import apsw

from wakeful.contracts.errors import StoreDamaged, StoreTooNew
from wakeful.store.sqlite.file_rights import create_file

APPLICATION = 0x77616B65
"""SQLite's `application_id` of our files: "wake"."""


class Migration(NamedTuple):
    """One step."""

    version: int
    sql: str


@lru_cache(maxsize=1)
def shipped() -> list[Migration]:
    """The steps this version knows, in order."""
    found = [file for file in files(__name__).iterdir() if file.name.endswith(".sql")]
    steps = sorted(Migration(int(file.name.split("_")[0]), file.read_text("utf-8")) for file in found)
    assert [step.version for step in steps] == list(range(1, len(steps) + 1)), "migrations are numbered without gaps"
    return steps


REBUILD_DUE = "rebuild"
"""In `meta`: new tables are empty, an older version may have written other rows, or a rebuild was cut off."""


def migrate(connection: apsw.Connection, path: Path, steps: Sequence[Migration]) -> None:
    """Bring the database to the newest step, and note that its rows are to be made again.

    Raises apsw.BusyError while another process does the same.
    """
    newest = steps[-1].version
    version = version_of(connection, path, newest)
    if version == newest:
        return
    if version > 0:
        _back_up(connection, path, version)
    for step in steps:
        with _Immediately(connection):
            # Another process may have run this step since we looked.
            if version_of(connection, path, newest) < step.version:
                connection.execute(step.sql)
                connection.execute(f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {step.version}")
                if step.version == newest and version > 0:
                    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, 'due')", (REBUILD_DUE,))


def backup_path(path: Path, version: int) -> Path:
    """Where the copy of an older database is put."""
    return path.with_name(f"{path.name}.v{version}.backup")


def version_of(connection: apsw.Connection, path: Path, newest: int) -> int:
    """The database's version. Raises StoreDamaged for one that is not ours, StoreTooNew for one of a newer wakeful."""
    version = int(connection.pragma("user_version"))
    if connection.pragma("application_id") != APPLICATION:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        if version or tables:
            raise StoreDamaged(f"{path} is a database, but not one of wakeful's", "Name another file.")
    if version > newest:
        raise StoreTooNew(
            f"{path} has store version {version}; this wakeful knows versions up to {newest}",
            "Update wakeful (`uv tool upgrade wakeful`, or `pip install --upgrade wakeful`), or open a copy that was "
            "made before the update.",
        )
    return version


def _back_up(connection: apsw.Connection, path: Path, version: int) -> None:
    target = backup_path(path, version)
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    os.close(create_file(partial))
    copy = apsw.Connection(str(partial))
    try:
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1000)
        copy.pragma("journal_mode", "delete")  # one file, whole by itself
    finally:
        copy.close()
    partial.replace(target)


class _Immediately:
    """A transaction that takes the write lock at its beginning."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
