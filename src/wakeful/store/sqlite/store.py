"""`SqliteStore`: what a `SqliteReader` reads, written: the parts put together behind the `Store` protocol."""

import asyncio
import secrets
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import StoreDamaged, StoreProblem
from wakeful.ports import AdmissionAnswer, Claim, WorkflowRow
from wakeful.store.encoding import OUTSIDER, OWNER, PackedRow, encode
from wakeful.store.leases import TTL, Elapsed, check_turn, elapsed
from wakeful.store.sqlite.anchor import Anchor, read_anchor
from wakeful.store.sqlite.anchor_checks import check_recent, refuse_missing
from wakeful.store.sqlite.claims import Claims
from wakeful.store.sqlite.connection import UNREADABLE, Statements, connect, is_rebuild_due, looked_at, translated
from wakeful.store.sqlite.doorbell import Doorbell
from wakeful.store.sqlite.file_rights import narrow_database
from wakeful.store.sqlite.forks import forked, note_closed, note_open, refuse_inherited
from wakeful.store.sqlite.helper import Helper, Sync, Waiting, sync_data, sync_folder
from wakeful.store.sqlite.log import SqliteLog
from wakeful.store.sqlite.migrations import backup_path, migrate, shipped
from wakeful.store.sqlite.new_file import put_new
from wakeful.store.sqlite.outside_facts import OutsideFacts
from wakeful.store.sqlite.owners import Owners
from wakeful.store.sqlite.reader import SqliteReader, retried
from wakeful.store.sqlite.rebuild import rebuild
from wakeful.store.sqlite.writer import PATIENCE, Writer
from wakeful.store.watches import OF_FEED, Wake

CHECKPOINT_EVERY = 200
SAFE_AFTER = 0.05
"""No commit is older than this, in seconds, before a barrier follows it unasked."""
T = TypeVar("T")


class SqliteStore(SqliteReader):
    """A `Store` in one file. Made by `SqliteStore.open`, and used on the loop that opened it."""

    def __init__(
        self,
        connection: apsw.Connection,
        location: str,
        path: Path,
        owners: Owners,
        *,
        vfs: str | None,
        sync: Sync,
        ttl: float,
        clock: Elapsed,
        patience: float,
        key: bytes | None,
    ) -> None:
        again = partial(connect, path, vfs)
        super().__init__(
            connection, location, path, owners, again=again, ttl=ttl, clock=clock, patience=patience, key=key
        )
        self._owners = owners
        self._marks: dict[int, tuple[int, bytes]] = {}
        """What was committed since the last barrier."""
        self._writer = Writer(connection, path, self._began, self._committed, self._log.rolled_back, patience)
        self._checkpoint_at = CHECKPOINT_EVERY
        self._checkpointing = False
        self._safe_soon: asyncio.TimerHandle | None = None
        since = connection.execute("SELECT max(id) FROM agents").get or 0
        self._anchor = Anchor(path, self._seals, since)
        self._helper = Helper(
            path, self._anchor, pause=self._writer.pause, resume=self._checkpointed, sync=sync, vfs=vfs
        )
        self.place = path
        self._doorbell = Doorbell(owners, self._watches.wake, self._looked)
        note_open(self)

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        vfs: str | None = None,
        sync: Sync = sync_data,
        ttl: float = TTL,
        clock: Elapsed = elapsed,
        patience: float = PATIENCE,
        key: bytes | None = None,
    ) -> "SqliteStore":
        """Open the database, making or updating it. `vfs` and `sync` name what reaches the disk, and how.

        `key` seals the anchor. Raises StoreRewound when the anchor knows of events that the database has not, and
        StoreReadOnly when nothing can be written there.
        """
        location, path = str(path), Path(path)
        undo = ExitStack()
        try:
            path = _prepared(path)
            refuse_inherited(path)
            connection = await retried(lambda: _ready(path, vfs), path, patience)
            undo.callback(connection.close)
            if is_rebuild_due(connection):
                again = partial(connect, path, vfs)
                await asyncio.to_thread(rebuild, again, path, patience, leave_damaged=True)
            owners = Owners(path)
            undo.callback(owners.close)
            make = partial(cls, connection, location, path, owners, vfs=vfs, sync=sync, ttl=ttl)
            store = make(clock=clock, patience=patience, key=key)
            sync_folder(path.parent)  # a log whose name a power cut takes away holds nothing
        except BaseException as error:
            undo.close()
            if isinstance(error, UNREADABLE):
                raise translated(error, path) from error
            raise
        return store

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        stored = encode(facts, OUTSIDER)
        if not reserve and not claim:
            # Safe also when nothing was written: whoever took the key may not have made it safe yet.
            admission, wake = OutsideFacts(agent_id, facts, stored), Wake.outsiders(agent_id, facts)
            return await self._writer.submit_jointly(self._log.admit_all, admission, agent_id, wake)
        given: list[Claim] = []

        def work() -> AdmissionAnswer | None:
            answer = self._log.admit(agent_id, facts, stored, self._claims.claim_new if claim else None)
            if answer is None or answer.turn is None or not answer.created:
                return answer
            if answer.claim is not None:
                given.append(answer.claim)
            elif reserve:
                answer = answer._replace(reservation=self._claims.reserve(answer.turn))
            return answer

        try:
            answer = await self._writer.submit(work, agent_id, Wake.outsiders(agent_id, facts), safe=True)
        except BaseException:
            self._take_back(given)
            raise
        if given:
            self._tick()
        return answer

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        return await self._claimed(lambda: self._claims.claim(turn_id, reservation))

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        return await self._claimed(lambda: self._claims.claim_thread(agent_id, thread_id, turn_id))

    async def _claimed(self, take: Callable[[], Claim]) -> Claim:
        given: list[Claim] = []

        def work() -> Claim:
            given.append(take())
            return given[-1]

        try:
            claim = await self._writer.submit(work)
        except BaseException:
            self._take_back(given)
            raise
        self._tick()
        return claim

    def _take_back(self, given: Sequence[Claim]) -> None:
        """Claims that were not committed, or that nobody is there any more to use."""
        for claim in given:
            self._log.forget(claim.turn_id)
            if self._claims.released(claim) and self._unusable is None:
                self._writer.submit(partial(self._claims.let_go, claim), claim.agent_id, _let_go(claim))

    async def release(self, claim: Claim) -> None:
        self._log.forget(claim.turn_id)
        if self._claims.released(claim):
            await self._writer.submit(lambda: self._claims.let_go(claim), claim.agent_id, _let_go(claim))
        else:
            self._watches.wake(_let_go(claim))  # another turn of the thread goes on here

    async def give_up(self, turn_id: str, reservation: str) -> None:
        row = await self.turn(turn_id)
        if row is not None:
            wake = Wake(row.agent_id, row.thread_id, "lease")
            await self._writer.submit(lambda: self._claims.give_up(turn_id, reservation), row.agent_id, wake)

    async def hold(self, claim: Claim) -> None:
        self._check_open()
        self._claims.check(claim)
        if not self._claims.is_fresh(claim):
            await self._writer.submit(lambda: self._claims.renew(claim))

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        self._claims.check(claim)
        check_turn(claim, facts)
        work = _Append(self._log, self._claims, claim, facts, encode(facts, OWNER), rest, last)
        wake = Wake(claim.agent_id, claim.thread_id, "all") if facts else None
        try:
            made = self._writer.alone(work, claim.agent_id, wake) if self._claims.has_one_turn else None
            others, seen = made if made is not None else await self._writer.submit(work, claim.agent_id, wake)
        except StoreDamaged:
            await self._barrier()  # raises when the files were deleted, replaced or cut off: that is the reason then
            raise
        claim.seen = max(claim.seen, seen)
        if claim.opens and facts:
            self._claims.opened(claim)
        if work.has_let_go:
            self._claims.released(claim)
            self._log.forget(claim.turn_id)
            self._watches.wake(_let_go(claim))
            self._doorbell.ring([_let_go(claim)])
        elif last:
            await self.release(claim)  # another turn of the thread went on under the lease
        if barrier:
            await self._barrier()
        return others

    async def sync(self) -> None:
        self._check_open()
        await self._barrier()

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
        return await self._written(lambda: self._workflows.save(name, graph, new_id, created_at, workflow_id, key))

    async def delete_workflow(self, workflow_id: str) -> bool:
        return await self._written(lambda: self._workflows.delete(workflow_id))

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        self._check_open()
        return await self._blobs.put(data, media_type)

    async def rebuild_views(self) -> None:
        self._check_open()
        await asyncio.to_thread(rebuild, self._again, self._path, self._patience)

    async def close(self) -> None:
        if self._unusable is not None:
            return
        self._unusable = self._closed
        await self._stop_watching()
        await self._writer.close()
        if self._marks:
            await asyncio.wait([self._barrier()])
        self._watches.wake_all()
        self._doorbell.close()
        self._connection.close()
        await self._helper.close(is_clean_end=not self._owners.has_others)
        note_closed(self)
        self._owners.close()  # last: from here on the leases we did not give back are free to take

    def leave_to_parent(self, parent: int) -> None:
        """In a forked child: let go of what says that the owner lives, and refuse to be used."""
        refusal = partial(forked, self._path, parent)
        self._unusable = self._writer.unusable = refusal
        self._owners.drop()
        self._doorbell.drop()
        self._anchor.drop()

    def _began(self) -> None:
        if self._log.began():
            self._watches.miss()

    def _committed(self, wakes: Sequence[Wake], waiting: Sequence[Waiting]) -> None:
        self._log.committed()
        for appended in self._log.appended:
            self._watches.tell(*appended)
        self._log.appended.clear()
        if written := self._log.written:
            for agent, mark in written.items():
                self._marks.pop(agent, None)
                self._marks[agent] = mark
            written.clear()
        if waiting:
            self._ask_barrier(waiting)
        if self._log.has_fed:
            self._log.has_fed = False
            wakes = [*wakes, OF_FEED]
        makes_due, self._log.makes_due = self._log.makes_due, False
        for wake in dict.fromkeys(wakes):  # hundreds of messages to one thread are one
            self._watches.wake(wake, is_told=True, makes_due=makes_due or wake.feed != "outsiders")
        self._doorbell.ring(wakes)
        if self._safe_soon is None:
            self._safe_soon = asyncio.get_running_loop().call_later(SAFE_AFTER, self._make_safe)
        if self._writer.commits < self._checkpoint_at:
            return
        if self._checkpointing:
            self._writer.pause()  # the disk is slower than we are, and the log must stay short
            return
        self._checkpointing = True
        self._checkpoint_at = self._writer.commits + CHECKPOINT_EVERY
        self._helper.checkpoint()

    def _barrier(self) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ask_barrier([(future, None)])
        return future

    def _ask_barrier(self, waiting: Sequence[Waiting]) -> None:
        marks, self._marks = self._marks, {}
        self._helper.barrier(marks, waiting)

    def _make_safe(self) -> None:
        """A barrier nobody waits for: what was committed meanwhile does not stay at the mercy of a power cut."""
        self._safe_soon = None
        if self._unusable is None:
            # Whoever does wait for the next one is told what is wrong with the disk.
            self._barrier().add_done_callback(lambda barrier: barrier.cancelled() or barrier.exception())

    def _checkpointed(self) -> None:
        self._checkpointing = False
        self._checkpoint_at = self._writer.commits + CHECKPOINT_EVERY
        self._writer.resume()

    async def _written(self, work: Callable[[], T]) -> T:
        """A transaction that survives a power cut when this returns."""
        return await self._writer.submit(work, safe=True)

    def _put_row(self, work: Callable[[], None]) -> "asyncio.Future[None]":
        return self._writer.submit(work)

    def _looked(self) -> None:
        with suppress(StoreProblem, apsw.Error):  # the next second brings another look
            self._look()

    async def _renew(self) -> None:
        self._doorbell.look_around()
        if self._claims.is_due():
            await self._writer.submit(self._claims.renew_all)


class _Append:
    """An append as a piece of work for the writer. Every turn has one waiting: a closure would be a dozen objects."""

    __slots__ = ("_claim", "_claims", "_facts", "_last", "_log", "_rest", "_stored", "has_let_go")

    def __init__(
        self,
        log: SqliteLog,
        claims: Claims,
        claim: Claim,
        facts: Sequence[Fact],
        stored: Sequence[PackedRow],
        rest: bool,
        last: bool,
    ) -> None:
        self._log, self._claims = log, claims
        self._claim, self._facts, self._stored = claim, facts, stored
        self._rest, self._last = rest, last
        self.has_let_go = False
        """The lease went in the same transaction."""

    def __call__(self) -> tuple[list[StoredFact], int]:
        appended = self._log.append(self._claim, self._facts, self._stored, self._rest, self._last)
        self.has_let_go = self._last and self._claims.let_go_with(self._claim)
        return appended


def _let_go(claim: Claim) -> Wake:
    return Wake(claim.agent_id, claim.thread_id, "lease")


def _prepared(path: Path) -> Path:
    path = path.absolute()
    if not path.parent.is_dir():
        raise StoreProblem(
            f"there is no folder {path.parent} to put the store {path.name} in",
            f"mkdir -p {shlex.quote(str(path.parent))}",
        )
    return path


def _ready(path: Path, vfs: str | None) -> apsw.Connection:
    anchored = read_anchor(path)  # before the database: it may grow meanwhile
    refuse_missing(path, anchored)
    narrow_database(path, [backup_path(path, step.version) for step in shipped()])
    if vfs is None:
        put_new(path)
    is_new = not path.exists()
    connection = connect(path, vfs)
    if is_new:  # SQLite made it, with rights of its own
        narrow_database(path, ())
    with looked_at(connection):
        check_recent(Statements(connection), path, anchored)
    try:
        migrate(connection, path, shipped())
        if connection.execute("SELECT 1 FROM meta WHERE key = 'runtime_id'").get is None:
            own = (f"rt_{secrets.token_hex(8)}", secrets.token_hex(32))
            connection.execute("INSERT OR IGNORE INTO meta VALUES ('runtime_id', ?), ('secret', ?)", own)
    except BaseException:
        connection.close()
        raise
    return connection
