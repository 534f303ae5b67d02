"""`LogTransfer` in SQLite, and a copy of a database. A log is taken in by one transaction: all of it, or nothing."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import apsw

from wakeful.contracts.errors import EventRefused, StoreDamaged
from wakeful.ports.operator_feed import FEED
from wakeful.ports.transfer import StoredLog, StoredRow
from wakeful.store.blob_names import names_in, names_in_blob
from wakeful.store.log_transfer import CheckedLog, checked_log, payloads_of, refuse_known
from wakeful.store.sqlite.blobs import SqliteBlobs
from wakeful.store.sqlite.connection import UNREADABLE, Statements, translated
from wakeful.store.sqlite.dispatches import SafeWriting, StoreRead
from wakeful.store.sqlite.file_rights import create_file
from wakeful.store.sqlite.log import SqliteLog
from wakeful.store.sqlite.streams import SHIFT, Span
from wakeful.store.sqlite.tables import SqliteTables


class SqliteTransfer:
    """Whole logs of one database."""

    def __init__(
        self, sql: Statements, log: SqliteLog, blobs: SqliteBlobs, read: StoreRead, write: SafeWriting
    ) -> None:
        self._sql = sql
        self._log = log
        self._tables = SqliteTables(sql)
        self._blobs = blobs
        self._read = read
        self._write = write

    async def stored_log(self, agent_id: str) -> StoredLog | None:
        streams = self._log.streams
        place = await self._read(lambda: streams.place(agent_id))
        if place is None:
            return None
        base = place.agent << SHIFT
        if await self._read(
            lambda: self._sql.one("SELECT 1 FROM events WHERE id > ? AND id < ?", (base, base + (1 << SHIFT)))
        ):
            raise EventRefused(
                f"the log of agent {agent_id} was begun by an older wakeful, and cannot be exported",
                "Copy the database file instead.",
            )
        at = 0
        while at < place.seq:  # as a reader would: a log that does not verify does not leave
            _, at = await self._read(lambda at=at: streams.piece(Span(place.agent, agent_id, place.seq), at))  # type: ignore[misc]
            await asyncio.sleep(0)
        cut, cut_hash = await self._read(lambda: streams.cut(place.agent))
        sql = "SELECT id, header, body, hash FROM appends WHERE id > ? AND id <= ? ORDER BY id"
        found = await self._read(lambda: self._sql.all(sql, (base | cut, base | place.seq)))
        rows = [
            StoredRow(number - base, *await self._read(lambda row=row: streams.bundles.whole(*row[:3])), row[3])  # type: ignore[misc]
            for row in found
            for number in row[:1]
        ]
        return StoredLog(agent_id, cut, cut_hash or b"", rows)

    async def referenced_blobs(self, logs: Sequence[StoredLog]) -> AsyncIterator[tuple[str, bytes]]:
        waiting, seen = names_in(payloads_of(logs)), set[str]()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            try:
                data = await self._blobs.get(name)
            except StoreDamaged:
                continue  # a hash of something else, or a blob that is gone
            yield f"sha256:{name}", data
            waiting |= names_in_blob(data) - seen

    def check(self, log: StoredLog) -> None:
        checked_log(log)

    async def take_in(self, log: StoredLog) -> int:
        checked = checked_log(log)
        return await self._write(lambda: self._written(log, checked))

    def _written(self, log: StoredLog, checked: CheckedLog) -> int:
        if self._log.streams.place(log.agent_id) is not None:
            raise EventRefused(
                f"agent {log.agent_id} is in this store already", "Import it into a store that does not have it."
            )
        refuse_known(checked, log.agent_id, self._tables)
        cut_hash = log.cut_hash if log.cut else None
        self._sql.do(
            "INSERT INTO agents (agent_id, seq, hash, name, cut, cut_hash) VALUES (?, ?, ?, ?, ?, ?)",
            (log.agent_id, checked.head, checked.hash, checked.book.agent_name, log.cut, cut_hash),
        )
        agent = self._sql.new_id()
        base = agent << SHIFT
        for row, entries in zip(log.rows, checked.entries, strict=True):
            first = checked.first_of_turn(entries[0].head.turn_id)
            turn = 0 if first is None else base | first
            self._sql.do(
                "INSERT INTO appends (id, turn, header, body, hash) VALUES (?, ?, ?, ?, ?)",
                (base | row.seq, turn, row.header, row.body, row.hash),
            )
        self._tables.write(agent, checked.tables)
        self._log.written[agent] = (checked.head, checked.hash)
        self._log.has_fed = self._log.has_fed or bool(checked.tables[FEED])
        return checked.head - log.cut


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
