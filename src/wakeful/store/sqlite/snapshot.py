"""A copy of a database that others write at the same time: as it was at one moment, in a file of its own."""

import os
from pathlib import Path

import apsw

from wakeful.store.sqlite.connection import UNREADABLE, translated
from wakeful.store.sqlite.file_rights import create_file

PAGES = 2_000
"""Copied in one step."""


def copy_database(database: Path, target: Path) -> None:
    """Copy it to a new file. The whole copy is of the moment at which it began, whatever is committed meanwhile.

    Raises StoreProblem in our words.
    """
    try:
        os.close(create_file(target))
        source = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            source.set_busy_timeout(5_000)
            source.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # from here on it sees one moment
            _copy(source, target)
        finally:
            source.close()
        with target.open("rb") as file:
            os.fsync(file.fileno())
    except UNREADABLE as error:
        raise translated(error, database) from error


def _copy(source: apsw.Connection, target: Path) -> None:
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
    finally:
        copy.close()
