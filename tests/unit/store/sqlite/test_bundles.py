"""Old rows of the log, stored together: what is damaged is found, and what was taken apart meanwhile is read."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kit.runs.store_facts import AGENT, NOON, ended, message, requested, session, started
from wakeful.contracts.errors import StoreDamaged
from wakeful.store.row_bundles import bundle, unbundle
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.bundles import Bundles
from wakeful.store.sqlite.connection import Statements

LATER = NOON + 1_000_000


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    """A store with the rows of one turn in a bundle, and those of one that is open beside it."""
    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)
    await store.admit(AGENT, [session(), message()])
    claim = await store.claim("turn_1")
    await store.append(claim, [started("turn_1")])
    for _ in range(40):
        await store.append(claim, [requested()])
    await store.append(claim, [ended()], last=True)
    await store.admit(AGENT, [message("turn_2")])
    await store.append(await store.claim("turn_2"), [started("turn_2")])
    await store.retention.bundle_rows(AGENT, before=LATER)
    await store.close()
    yield path


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def test_rows_of_a_turn_that_is_open_stand_by_themselves(path: Path) -> None:
    assert rows(path, "SELECT count(*) FROM bundles") == [(1,)]
    own = rows(path, "SELECT count(*) FROM appends WHERE length(header) > 0")
    assert own == rows(path, "SELECT count(*) FROM appends WHERE turn = (SELECT max(turn) FROM appends)")
    # 32 bytes of hash stay with each of the others, and nothing that is longer than 14.
    assert rows(path, "SELECT max(length(body)) FROM appends WHERE length(header) = 0") == [(14,)]


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE bundles SET data = x'00'",
        "UPDATE bundles SET data = substr(data, 1, length(data) - 9)",
        "DELETE FROM bundles",
        "UPDATE appends SET body = x'00' WHERE id = (SELECT min(id) FROM appends)",
    ],
)
async def test_a_bundle_that_is_damaged_or_gone_is_found(path: Path, harm: str) -> None:
    rows(path, harm)
    store = await SqliteStore.open(path)
    with pytest.raises(StoreDamaged, match="is not what was written"):
        await store.read(AGENT)
    assert await store.verify() != []
    await store.close()


def test_a_row_whose_bundle_was_taken_apart_meanwhile_is_read_again(path: Path) -> None:
    connection = apsw.Connection(str(path))
    sql = Statements(connection)
    number, header, body = sql.all("SELECT id, header, body FROM appends ORDER BY id")[5]
    before = Bundles(sql).whole(number, header, body)
    Bundles(sql).unpack(body)
    assert sql.all("SELECT * FROM bundles") == []
    assert Bundles(sql).whole(number, header, body) == before
    connection.close()


def test_a_bundle_gives_back_what_went_in_and_refuses_what_is_none() -> None:
    pairs = [(b"[0]", b"body"), (b"[1]", b""), (b"", b"x" * 1_000)]
    assert unbundle(bundle(pairs)) == pairs
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unbundle(b"no bundle")
