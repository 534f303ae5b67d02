"""`RetentionStore` in SQLite. Blobs that nothing refers to are looked for on a thread and a connection of their own."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import apsw

from wakeful.contracts.envelope import Fact
from wakeful.ports import TurnRow
from wakeful.ports.retention import FreedSpace, StoreSize
from wakeful.ports.tables import Table
from wakeful.store.encoding import OUTSIDER, EncodedFact, encode
from wakeful.store.log_cut import checkpoint_of
from wakeful.store.sqlite.blob_references import blobs_there, named_blobs, read_new
from wakeful.store.sqlite.blobs import SqliteBlobs
from wakeful.store.sqlite.connection import UNREADABLE, Statements, translated
from wakeful.store.sqlite.dispatches import SafeWriting, StoreRead
from wakeful.store.sqlite.log import SqliteLog
from wakeful.store.sqlite.retention_steps import RetentionSteps
from wakeful.store.sqlite.streams import SHIFT, Span

T = TypeVar("T")


class SqliteRetention:
    """Steps of a store that was opened for writing; a reader refuses those that write."""

    def __init__(
        self,
        sql: Statements,
        log: SqliteLog,
        blobs: SqliteBlobs,
        path: Path,
        read: StoreRead,
        write: SafeWriting,
        again: Callable[[], apsw.Connection],
    ) -> None:
        self._steps = RetentionSteps(sql, log.streams, log.admit)
        self._streams = log.streams
        self._blobs = blobs
        self._path = path
        self._read = read
        self._write = write
        self._again = again

    async def expire_events(
        self, turn: TurnRow, kinds: Collection[str], *, after: int = 0, dry: bool = False
    ) -> FreedSpace:
        do = self._read if dry else self._write
        return await do(lambda: self._steps.expire_events(turn, kinds, after, dry))

    async def expire_facts(self, agent_id: str, seqs: Collection[int], *, dry: bool = False) -> FreedSpace:
        do = self._read if dry else self._write
        return await do(lambda: self._steps.expire_facts(agent_id, seqs, dry))

    async def bundle_rows(self, agent_id: str, *, before: int, anew: bool = False) -> FreedSpace:
        return await self._write(lambda: self._steps.bundle_rows(agent_id, before, anew=anew))

    async def cut_log(self, agent_id: str, *, now: int, before: int, dry: bool = False) -> FreedSpace:
        place = await self._read(lambda: self._streams.place(agent_id))
        if place is None:
            return FreedSpace()
        span, at = Span(place.agent, agent_id, place.seq), 0
        entries: list[EncodedFact] = []
        while at < span.upto:
            found, at = await self._read(lambda at=at: self._streams.piece(span, at))  # type: ignore[misc]
            entries += found
            await asyncio.sleep(0)
        if not entries or entries[-1].head.at >= before:
            return FreedSpace()
        event = checkpoint_of(agent_id, entries, place.seq, place.hash)
        fact = Fact(event, now)
        stored = encode([fact], OUTSIDER)  # raises EventRefused when there is too much to be kept in one fact
        if dry:
            return FreedSpace(len(entries), sum(len(entry.payload or b"") for entry in entries))
        gone = [key[0] for key in event.gone.get("turns", ())]
        return await self._write(lambda: self._steps.cut_log(place, agent_id, fact, stored, gone))

    async def expire_rows(self, table: Table[Any], *, before: int, after: int = 0, dry: bool = False) -> FreedSpace:
        do = self._read if dry else self._write
        return await do(lambda: self._steps.expire_rows(table, before, after, dry))

    async def finish_cuts(self) -> FreedSpace:
        return await self._write(self._steps.finish_cuts)

    async def doubt_outputs(
        self, digests: Collection[str], *, now: int, dry: bool = False, anew: bool = False
    ) -> set[str]:
        names = {digest.removeprefix("sha256:") for digest in digests}
        if not dry:  # first, so that whoever puts one of them while the store is read is seen
            await self._write(lambda: self._steps.doubt(names, now))
        return {f"sha256:{name}" for name in names - await self._named(beside=True, dry=dry, anew=anew)}

    async def remove_blob(self, digest: str, *, dry: bool = False) -> FreedSpace:
        return await self._drop(digest.removeprefix("sha256:"), dry=dry)

    async def sweep_blobs(self, *, now: int, grace: int, dry: bool = False, anew: bool = False) -> FreedSpace:
        # Those that are there now: one that is put later may be named later, too.
        names = await self._apart(lambda: blobs_there(self._again, self._blobs.folder))
        if names:
            names -= await self._named(dry=dry, anew=anew)
        due = names if dry else await self._write(lambda: self._steps.note_doubts(names, now, grace))
        items = freed = 0
        for name in due:
            one = await self._drop(name, dry=dry)
            items, freed = items + one.items, freed + one.bytes
        return FreedSpace(items, freed)

    async def _named(self, *, beside: bool = False, dry: bool, anew: bool) -> set[str]:
        """All blobs that something refers to. What was read for it is noted, but for `dry`."""
        if not dry:
            reading = await self._apart(lambda: read_new(self._again, self._blobs.folder, anew=anew))
            await self._write(lambda: self._steps.references.note(reading, anew=anew))
        return await self._apart(lambda: named_blobs(self._again, self._blobs.folder, beside=beside, anew=dry and anew))

    async def _apart(self, look: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(look)
        except UNREADABLE as error:
            raise translated(error, self._path) from error

    async def _drop(self, name: str, *, dry: bool) -> FreedSpace:
        if dry:
            size: int | None = await self._read(lambda: self._steps.blob_size(name))
        else:
            size = await self._write(lambda: self._steps.drop_blob(name))
        if size is None:
            return FreedSpace()
        size += await asyncio.to_thread(self._blobs.unlink, name, dry=dry)
        return FreedSpace(int(size > 0), size)

    async def release_space(self, pages: int) -> int:
        return await self._write(lambda: self._steps.release_space(pages))

    async def retention_mark(self, name: str) -> str | None:
        return await self._read(lambda: self._steps.mark(name))

    async def set_retention_mark(self, name: str, value: str) -> None:
        await self._write(lambda: self._steps.set_mark(name, value))

    async def used_bytes(self) -> int:
        return await asyncio.to_thread(_used, self._path, self._blobs.folder)

    async def size(self) -> StoreSize:
        try:
            return await asyncio.to_thread(measure, self._again, self._path, self._blobs.folder)
        except UNREADABLE as error:
            raise translated(error, self._path) from error


def measure(again: Callable[[], apsw.Connection], path: Path, folder: Path) -> StoreSize:
    """What a database takes, by table and by agent. Reads every page."""
    total = _used(path, folder)
    with closing(again()) as connection:
        sql = Statements(connection)
        page = int(connection.pragma("page_size"))
        free = int(connection.pragma("freelist_count")) * page
        of_index = dict(sql.all("SELECT name, tbl_name FROM sqlite_schema"))
        tables: dict[str, int] = {}
        for name, size in sql.all("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
            table = of_index.get(name, name)
            tables[table] = tables.get(table, 0) + int(size)
        names = dict(sql.all("SELECT id, agent_id FROM agents"))
        agents: dict[str, int] = {}
        row = "length(header) + length(body) + 32"
        for table, taken in (("events", row), ("appends", row), ("bundles", "length(data)")):
            for agent, size in sql.all(f"SELECT id >> {SHIFT}, sum({taken}) FROM {table} GROUP BY 1"):
                agents[names.get(agent, "")] = agents.get(names.get(agent, ""), 0) + int(size)
        return StoreSize(total, free, tables, agents)


def _used(path: Path, folder: Path) -> int:
    parts = [path, path.with_name(f"{path.name}-wal"), *folder.glob("*/*/*")]
    return sum(part.stat().st_size for part in parts if part.is_file())
