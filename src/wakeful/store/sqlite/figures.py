"""What can be said of a database file without trusting what is in it: for a report, never for a decision."""

from pathlib import Path
from typing import Any

import apsw

from wakeful.store.sqlite.migrations import shipped


def figures(path: Path) -> dict[str, Any]:
    """Size, versions and engine. A file that cannot be read has no version."""
    return {
        "exists": path.exists(),
        "bytes": sum(part.stat().st_size for part in _parts(path) if part.is_file()),
        "schema_version": _version(path) if path.is_file() else None,
        "newest_schema_version": shipped()[-1].version,
        "engine": f"SQLite {apsw.sqlite_lib_version()}",
    }


def _parts(path: Path) -> list[Path]:
    """The database and what belongs to it: what is written and not yet moved into it counts, too."""
    return [path, path.with_name(f"{path.name}-wal")]


def _version(path: Path) -> int | None:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return int(connection.pragma("user_version"))
        finally:
            connection.close()
    except apsw.Error:
        return None
