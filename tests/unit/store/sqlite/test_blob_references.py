"""Names of blobs in the log: each row is read once, and rows of tables name nothing that the log does not name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from kit.runs.store_facts import NOON, claimed, ended, requested, started
from kit.runs.table_facts import tell
from wakeful.contracts.errors import StoreDamaged
from wakeful.store.blob_names import names_in
from wakeful.store.encoding import read_row
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.bundles import Bundles
from wakeful.store.sqlite.connection import Statements
from wakeful.store.tables import TABLES

NOT_CONTENTS = {("tasks", "cmd_digest")}
"""By this the same command is known again; what it was made of is stored nowhere by that name."""


@contextmanager
def read_rows(path: Path) -> Iterator[list[int]]:
    """Of the log, by connections that are opened meanwhile: how many each statement found."""
    found: list[int] = []

    def follow(connection: apsw.Connection) -> None:
        def note(cursor: apsw.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
            found.append(1)
            return values

        def look(cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
            cursor.row_trace = note if "FROM appends" in statement else None
            return True

        connection.exec_trace = look

    apsw.connection_hooks.append(follow)
    try:
        yield found
    finally:
        apsw.connection_hooks.remove(follow)


async def swept(store: SqliteStore, path: Path, *, anew: bool = False) -> int:
    with read_rows(path) as found:
        await store.retention.sweep_blobs(now=NOON, grace=10, anew=anew)
    return len(found)


async def test_a_row_of_the_log_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    await store.put_blob(b"nobody names this", "text/plain")
    claim = await claimed(store)
    await store.append(claim, [started("turn_1")])
    for _ in range(50):
        await store.append(claim, [requested()])
    every = await swept(store, path)
    assert every > 50
    assert await swept(store, path) == 0
    await store.append(claim, [ended()], last=True)
    assert await swept(store, path) == 1
    assert await swept(store, path, anew=True) == every + 1
    await store.close()


async def test_a_new_row_that_cannot_be_read_stops_the_sweep(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    await store.put_blob(b"nobody names this", "text/plain")
    claim = await claimed(store)
    await store.append(claim, [started("turn_1")])
    await store.retention.sweep_blobs(now=NOON, grace=0)
    await store.put_blob(b"nor this", "text/plain")
    await store.append(claim, [requested()])
    store._connection.execute("UPDATE appends SET header = x'00' WHERE id = (SELECT max(id) FROM appends)")
    with pytest.raises(StoreDamaged, match="no blob is removed"):
        await store.retention.sweep_blobs(now=NOON, grace=0)
    assert store._connection.execute("SELECT count(*) FROM blobs").get == 1
    await store.close()


async def test_rows_that_follow_from_facts_name_nothing_that_these_do_not_name(tmp_path: Path) -> None:
    """So that tables need not be read for names: a rule that works a hash out itself would need them to be."""
    store = await SqliteStore.open(tmp_path / "runs.db")
    await tell(store)
    sql = Statements(store._connection)
    bundles = Bundles(sql)
    rows = sql.all("SELECT id, header, body FROM appends")
    said = names_in(entry.payload for row in rows for entry in read_row(1, *bundles.whole(*row)))
    for table in TABLES:
        columns = [column.name for column in table.columns if (table.name, column.name) not in NOT_CONTENTS]
        found = sql.all(f"SELECT {', '.join(columns)} FROM {table.name}")
        texts = [str(value).encode() for row in found for value in row]
        assert names_in(texts) <= said, table.name
    await store.close()
