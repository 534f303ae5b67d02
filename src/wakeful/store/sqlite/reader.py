"""Reading a database: everything that can be asked of a store without changing it.

`SqliteReader` by itself is a store on a file system that cannot be written, or that its user may not write: it refuses
whatever would change something. `SqliteStore` is the same and writes.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import apsw

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import StoreProblem, StoreReadOnly
from wakeful.ports import (
    AdmissionAnswer,
    Claim,
    Damage,
    Feed,
    Match,
    Row,
    RowQuery,
    Table,
    TableReads,
    TurnReader,
    TurnRow,
    Value,
    Watch,
    WorkflowRow,
)
from wakeful.ports.operator_feed import FEED, FEED_IN_ORDER
from wakeful.store.encoding import EncodedFact
from wakeful.store.leases import TTL, Elapsed, elapsed
from wakeful.store.sqlite.anchor import Seals, read_anchor
from wakeful.store.sqlite.anchor_checks import all_damage, check_recent, refuse_missing
from wakeful.store.sqlite.blobs import SqliteBlobs
from wakeful.store.sqlite.claims import Claims
from wakeful.store.sqlite.connection import (
    UNREADABLE,
    Statements,
    connect_for_reading,
    is_rebuild_due,
    locked,
    not_text,
    translated,
)
from wakeful.store.sqlite.dispatches import SqliteDispatches, SqliteImportedAgents
from wakeful.store.sqlite.forks import refuse_inherited
from wakeful.store.sqlite.log import SqliteLog
from wakeful.store.sqlite.owners import LivingOwners
from wakeful.store.sqlite.rebuild import rebuild
from wakeful.store.sqlite.retention import SqliteRetention
from wakeful.store.sqlite.streams import PIECE, Span
from wakeful.store.sqlite.tables import SqliteTables
from wakeful.store.sqlite.transfer import SqliteTransfer
from wakeful.store.sqlite.workflows import SqliteWorkflows
from wakeful.store.sqlite.writer import PATIENCE
from wakeful.store.watches import Wake, Watches

TICK = 1.0
"""How often other processes' commits are looked for, and leases are looked at."""
T = TypeVar("T")
_SEQ = attrgetter("seq")


class SqliteReader(TableReads):
    """A `Store` in one file that only reads. Made by `SqliteReader.open`, and used on the loop that opened it."""

    def __init__(
        self,
        connection: apsw.Connection,
        location: str,
        path: Path,
        living: LivingOwners,
        *,
        again: Callable[[], apsw.Connection],
        ttl: float = TTL,
        clock: Elapsed = elapsed,
        patience: float = PATIENCE,
        key: bytes | None = None,
        scratch: Sequence[TemporaryDirectory[str]] = (),
    ) -> None:
        self.location = location
        self._path = path
        self._connection = connection
        self._again = again
        """Another connection to the same database, for another thread."""
        self._patience = patience
        self._scratch = scratch
        sql = self._sql = Statements(connection)
        self._log = SqliteLog(sql, path)
        self._claims = Claims(sql, living, ttl, clock)
        self._workflows = SqliteWorkflows(sql)
        self._tables = SqliteTables(sql)
        self._blobs = SqliteBlobs(sql, path, self._read, self._put_row)
        self.dispatches = SqliteDispatches(sql, self._read, self._written)
        self.imported_agents = SqliteImportedAgents(sql, self._read, self._written)
        self.retention = SqliteRetention(sql, self._log, self._blobs, path, self._read, self._written, again)
        self.transfer = SqliteTransfer(sql, self._log, self._blobs, self._read, self._written)
        self._watches = Watches()
        self._heads: dict[str, int] = {}
        """The end of each stream that is followed, when it was last looked at."""
        self._feed_head = 0
        """The newest row of the feed over all agents, when it was last looked at."""
        self._ticker: asyncio.Task[None] | None = None
        self._data_version = connection.pragma("data_version")
        self._unusable: Callable[[], StoreProblem] | None = None
        """Why it cannot be used any more: it was closed, or this is a forked child."""
        self.runtime_id, self.secret = identity(connection)
        self._seals = Seals(key, self.runtime_id)

    @classmethod
    async def open(cls, path: str | Path, *, key: bytes | None = None, patience: float = PATIENCE) -> "SqliteReader":
        """Open a database that may not be written. What has to be changed to be read is changed in a private copy."""
        location, path = str(path), absolute(path)
        scratch: list[TemporaryDirectory[str]] = []
        try:
            refuse_inherited(path)
            anchored = read_anchor(path)
            refuse_missing(path, anchored)
            make = partial(connect_for_reading, path, partial(_private, scratch))
            again = await retried(make, path, patience)
            connection = again()
            try:
                if is_rebuild_due(connection):
                    await asyncio.to_thread(rebuild, again, path, patience, leave_damaged=True)
                check_recent(Statements(connection), path, anchored)
                return cls(connection, location, path, LivingOwners(path), again=again, key=key, scratch=scratch)
            except BaseException:
                connection.close()
                raise
        except BaseException as error:
            for folder in scratch:
                folder.cleanup()
            if isinstance(error, UNREADABLE):
                raise translated(error, path) from error
            raise

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[StoredFact]:
        streams = self._log.streams
        found: list[StoredFact] = []
        if thread_id is None and turn_id is None:
            span = await self._read(lambda: streams.whole(agent_id), agent_id)
            return await self._recorded(span, after, limit) if span is not None else found
        for turn in await self._turns_among(agent_id, thread_id, turn_id, after):
            if not turn.is_open and turn.last_seq <= after:
                continue
            if limit is not None and len(found) >= limit and found[limit - 1].seq < turn.first_seq:
                break
            span = await self._read(lambda turn=turn: streams.of_turn(agent_id, turn), agent_id)  # type: ignore[misc]
            found += await self._recorded(span, after, limit) if span is not None else ()
            found.sort(key=_SEQ)
        return found[:limit]

    async def _turns_among(
        self, agent_id: str, thread_id: str | None, turn_id: str | None, after: int
    ) -> list[TurnRow]:
        """The turns whose facts are asked for, oldest first."""
        if turn_id is None:
            return await self.turns_reaching_past(agent_id, thread_id or "", after)
        row = await self.turn(turn_id)
        return [row] if row is not None and thread_id in (None, row.thread_id) else []

    async def _recorded(self, span: Span, after: int, limit: int | None) -> list[StoredFact]:
        streams = self._log.streams
        found: list[StoredFact] = []
        while after < span.upto and (limit is None or len(found) < limit):
            count = PIECE if limit is None else min(PIECE, limit)

            def piece(at: int = after, count: int = count) -> tuple[list[EncodedFact], int]:
                return streams.piece(span, at, count)

            entries, after = await self._read(piece, span.agent_id)
            found += [streams.recorded(span.agent_id, entry) for entry in entries]
            if after < span.upto:
                await asyncio.sleep(0)
        return found[:limit]

    async def is_held(self, agent_id: str, thread_id: str) -> bool:
        return await self._read(lambda: self._claims.is_held(agent_id, thread_id))

    async def agents(self) -> list[str]:
        return [agent_id for _, agent_id in await self._read(self._log.streams.agents)]

    async def head(self, agent_id: str) -> int:
        place = await self._read(lambda: self._log.streams.place(agent_id))
        return 0 if place is None else place.seq

    async def count_rows(self, table: Table[Any]) -> int:
        return await self._read(lambda: self._tables.count(table))

    async def get_row(self, table: Table[Row], *key: Value) -> Row | None:
        return await self._read(lambda: self._tables.get(table, key))

    async def list_rows(
        self,
        table: Table[Row],
        query: RowQuery,
        *equal: Value,
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        return await self._read(lambda: self._tables.page(table, query, equal, after, limit, backwards))

    async def find_rows(
        self, table: Table[Row], matches: Sequence[Match], *, order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        return await self._read(lambda: self._tables.find(table, matches, order, limit))

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        return await self._read(lambda: self._workflows.one(workflow_id, revision))

    async def workflows(self) -> list[WorkflowRow]:
        return await self._read(self._workflows.newest)

    async def get_blob(self, digest: str) -> bytes:
        self._check_open()
        return await self._blobs.get(digest)

    def turn_reader(self, agent_id: str, turn_id: str) -> TurnReader:
        return _TurnReading(self._path, self._again, agent_id, turn_id)

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all", keeps: bool = False) -> Watch:
        self._check_open()
        if agent_id not in self._heads and (head := self._head(agent_id)):
            self._heads[agent_id] = head  # of no agent that is not there: anybody may ask for one
        watch = self._watches.open(agent_id, thread_id, feed, keeps=keeps)
        self._tick()
        return watch

    def watch_wakes(self) -> Watch:
        watch = self._watches.open_wakes()
        self._tick()
        return watch

    def watch_feed(self) -> Watch:
        self._check_open()
        if not self._watches.has_feed:
            self._feed_head = self._newest_of_feed()
        watch = self._watches.open_feed()
        self._tick()
        return watch

    async def verify(self) -> list[Damage]:
        self._check_open()
        return await asyncio.to_thread(_verify, self._again, self._path, self._seals)

    # --- writing, which `SqliteStore` does ----------------------------------------------------------------------

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        raise self._refusal()

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        raise self._refusal()

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        raise self._refusal()

    async def give_up(self, turn_id: str, reservation: str) -> None:
        raise self._refusal()

    async def release(self, claim: Claim) -> None:
        raise self._refusal()

    async def hold(self, claim: Claim) -> None:
        raise self._refusal()

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        raise self._refusal()

    async def sync(self) -> None:
        raise self._refusal()

    async def save_workflow(
        self,
        name: str,
        graph: str,
        *,
        new_id: str,
        created_at: int,
        workflow_id: str | None = None,
        key: str | None = None,
    ) -> WorkflowRow:
        raise self._refusal()

    async def delete_workflow(self, workflow_id: str) -> bool:
        raise self._refusal()

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        raise self._refusal()

    async def rebuild_views(self) -> None:
        raise self._refusal()

    async def _written(self, work: Callable[[], T]) -> T:
        """A transaction that survives a power cut when this returns."""
        raise self._refusal()

    def _put_row(self, work: Callable[[], None]) -> "asyncio.Future[None]":
        raise self._refusal()

    async def _renew(self) -> None:
        """Leases that are half used; a reader has none."""

    def _refusal(self) -> StoreReadOnly:
        return StoreReadOnly(
            f"{self._path} is open for reading only: the file system or its permissions allow no writing",
            "Make the file and its folder writable, or copy the store to a place that is.",
        )

    async def close(self) -> None:
        if self._unusable is not None:
            return
        self._unusable = self._closed
        await self._stop_watching()
        self._connection.close()
        for folder in self._scratch:
            folder.cleanup()

    async def _stop_watching(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.wait([self._ticker])

    def _closed(self) -> StoreProblem:
        return StoreProblem(f"the store {self._path} was closed", "Open it again.")

    async def _read(self, look: Callable[[], T], agent_id: str = "") -> T:
        self._check_open()
        return await retried(look, self._path, self._patience, agent_id)

    def _check_open(self) -> None:
        if self._unusable is not None:
            raise self._unusable()

    def _tick(self) -> None:
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.get_running_loop().create_task(self._keep_watch())

    def _look(self) -> None:
        """What other processes did to what is followed here; an owner that died tells nobody."""
        for thread in self._watches.threads():
            if not self._claims.is_held(*thread):
                self._watches.wake(Wake(*thread, "lease"))
        version = self._connection.pragma("data_version")
        if version == self._data_version:
            return
        self._data_version = version
        self._watches.wake_scheduler()
        if self._watches.has_feed and (newest := self._newest_of_feed()) != self._feed_head:
            self._feed_head = newest
            self._watches.wake_feed()
        before, self._heads = self._heads, {agent_id: self._head(agent_id) for agent_id in self._watches.agents()}
        for agent_id, head in self._heads.items():
            if head != before.get(agent_id, 0):
                self._watches.wake(Wake(agent_id, None, "outsiders"))

    def _newest_of_feed(self) -> int:
        try:
            newest = self._tables.page(FEED, FEED_IN_ORDER, limit=1, backwards=True)
        except apsw.Error:  # whoever reads the feed is told
            return -1
        return newest[0].position if newest else 0

    def _head(self, agent_id: str) -> int:
        try:
            place = self._log.streams.place(agent_id)
        except apsw.Error:  # whoever reads the stream is told
            return -1
        return 0 if place is None else place.seq

    async def _keep_watch(self) -> None:
        """While somebody watches or owns: see what other processes wrote, renew what is half used."""
        while self._watches or self._claims:
            await asyncio.sleep(TICK)
            try:
                self._look()
                await self._renew()
            except (StoreProblem, apsw.Error):
                pass  # tried again in a second; what needs the lease asks for itself


@dataclass(frozen=True, slots=True)
class _TurnReading:
    """Reads a turn on a connection of its own: the store may be closed by then. Every turn has one, and few use it."""

    path: Path
    again: Callable[[], apsw.Connection]
    agent_id: str
    turn_id: str

    async def __call__(self) -> list[StoredFact]:
        try:
            connection = self.again()
            try:
                found: list[StoredFact] = []
                for piece in SqliteLog(Statements(connection), self.path).pieces_of(self.agent_id, self.turn_id):
                    found += piece
                    await asyncio.sleep(0)
                return found
            finally:
                connection.close()
        except UNREADABLE as error:
            raise translated(error, self.path, self.agent_id) from error


def absolute(path: str | Path) -> Path:
    """The same place, whatever folder the process goes to."""
    return Path(path).absolute()


def identity(connection: apsw.Connection) -> tuple[str, bytes]:
    """The installation a database belongs to, and its secret."""
    known = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('runtime_id', 'secret')"))
    return str(known["runtime_id"]), bytes.fromhex(str(known["secret"]))


def _verify(again: Callable[[], apsw.Connection], path: Path, seals: Seals) -> list[Damage]:
    """On a connection of its own: this reads everything."""
    try:
        connection = again()
        try:
            sql = Statements(connection)
            log = SqliteLog(sql, path)
            found = [Damage("", 0, what) for what in _integrity(sql) if what != "ok"]
            found += [damage for _, agent_id in log.streams.agents() if (damage := log.damage(agent_id))]
            return found + _of_anchor(sql, path, seals)
        finally:
            connection.close()
    except UNREADABLE as error:
        raise translated(error, path) from error


def _integrity(sql: Statements) -> list[str]:
    try:
        return [str(what) for (what,) in sql.all("PRAGMA integrity_check")]
    except apsw.CorruptError as error:  # too broken to be checked to the end
        return [str(error)]


def _of_anchor(sql: Statements, path: Path, seals: Seals) -> list[Damage]:
    try:
        return all_damage(sql, path, seals)
    except apsw.CorruptError:  # what cannot be read is said already
        return []


def _private(made: list[TemporaryDirectory[str]]) -> Path:
    """A folder for a copy, the same when it is asked for again."""
    if not made:
        try:
            made.append(TemporaryDirectory(prefix="wakeful-"))
        except OSError as error:
            raise StoreReadOnly(
                f"the store can only be read from a copy, and there is no temporary folder for it: {error}",
                "Set TMPDIR to a folder that can be written.",
            ) from error
    return Path(made[0].name)


async def retried(look: Callable[[], T], path: Path, patience: float, agent_id: str = "") -> T:
    """Try again, without blocking, while the database is locked elsewhere."""
    deadline: float | None = None
    while True:
        try:
            return look()
        except UnicodeEncodeError as error:
            raise not_text(error) from None
        except apsw.BusyError:
            now = asyncio.get_running_loop().time()
            deadline = now + patience if deadline is None else deadline
            if now >= deadline:
                raise locked(path) from None
            await asyncio.sleep(0.01)
        except UNREADABLE as error:
            raise translated(error, path, agent_id) from error
