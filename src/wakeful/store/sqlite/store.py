"""`SqliteStore`: the parts put together behind the `Store` protocol."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import StoreProblem
from wakeful.contracts.models import AgentTokenUsageSummary
from wakeful.contracts.spending import SpendRow, WindowKey
from wakeful.ports import ActionRow, Admitted, Claim, Damage, RuleRow, TurnRow, UnknownRow, Watch, WorkflowRow
from wakeful.store.encoding import OUTSIDER, OWNER, encode, read_head
from wakeful.store.leases import TTL, Elapsed, check_turn, elapsed
from wakeful.store.spending import Move
from wakeful.store.sqlite.blobs import Blobs
from wakeful.store.sqlite.claims import Claims
from wakeful.store.sqlite.connection import Statements, connect, locked, translated
from wakeful.store.sqlite.helper import Helper, Sync, sync_data, sync_folder
from wakeful.store.sqlite.log import Log
from wakeful.store.sqlite.migrations import migrate, shipped
from wakeful.store.sqlite.new_file import put_new
from wakeful.store.sqlite.owners import Owners
from wakeful.store.sqlite.spending import Windows
from wakeful.store.sqlite.task_runs import SqliteImportedAgents, SqliteTaskRuns
from wakeful.store.sqlite.views import Views
from wakeful.store.sqlite.workflows import Workflows
from wakeful.store.sqlite.writer import PATIENCE, Writer
from wakeful.store.watching import Watches

CHECKPOINT_EVERY = 200
SAFE_AFTER = 0.05
"""No commit is older than this, in seconds, before a barrier follows it unasked."""
TICK = 1.0
"""How often other processes' commits are looked for, and leases are looked at."""
_RUNTIME_ID = "SELECT value FROM meta WHERE key = 'runtime_id'"
T = TypeVar("T")


class SqliteStore:
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
    ) -> None:
        self.location = location
        self._path = path
        self._connection = connection
        self._patience = patience
        self._writer = Writer(connection, path, self._committed, patience)
        sql = Statements(connection)
        self._owners = owners
        self._views = Views(sql)
        self._log = Log(sql, path, self._views)
        self._claims = Claims(sql, owners, ttl, clock)
        self._workflows = Workflows(sql)
        self.task_runs = SqliteTaskRuns(sql, self._read, self._written)
        self.imported_agents = SqliteImportedAgents(sql, self._read, self._written)
        self._windows = Windows(sql)
        self._blobs = Blobs(sql, path, self._writer)
        self._watches = Watches()
        self._ticker: asyncio.Task[None] | None = None
        self._data_version = connection.pragma("data_version")
        self._checkpoint_at = CHECKPOINT_EVERY
        self._checkpointing = False
        self._closed = False
        self._safe_soon: asyncio.TimerHandle | None = None
        self._vfs = vfs
        self.runtime_id = str(connection.execute(_RUNTIME_ID).get)
        self.secret = bytes.fromhex(str(connection.execute("SELECT value FROM meta WHERE key = 'secret'").get))
        self._helper = Helper(path, pause=self._writer.pause, resume=self._checkpointed, sync=sync, vfs=vfs)

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
    ) -> "SqliteStore":
        """Open the database, making or updating it. `vfs` and `sync` name what reaches the disk, and how."""
        location, path = str(path), Path(path)
        undo = ExitStack()
        try:
            path = _prepared(path)
            connection = await _retried(lambda: _ready(path, vfs), path, patience)
            undo.callback(connection.close)
            owners = Owners(path)
            undo.callback(owners.close)
            store = cls(connection, location, path, owners, vfs=vfs, sync=sync, ttl=ttl, clock=clock, patience=patience)
            sync_folder(path.parent)  # a log whose name a power cut takes away holds nothing
        except BaseException as error:
            undo.close()
            if isinstance(error, apsw.Error | OSError):
                raise translated(error, path) from error
            raise
        return store

    async def admit(self, agent_id: str, facts: Sequence[Fact]) -> Admitted | None:
        stored = encode(facts, OUTSIDER)
        answer = await self._writer.submit(lambda: self._log.admit(agent_id, facts, stored), agent_id)
        self._watches.wake(agent_id, outsider=True)
        # Also when nothing was written: whoever took the key may not have made it safe yet.
        await self._helper.barrier()
        return answer

    async def claim(self, turn_id: str) -> Claim:
        given: list[Claim] = []

        def work() -> Claim:
            given.append(self._claims.claim(turn_id))
            return given[-1]

        try:
            claim = await self._writer.submit(work)
        except BaseException:
            # Not committed, or nobody is there any more to use it.
            for claim in given:
                if self._claims.released(claim) and not self._closed:
                    self._writer.submit(partial(self._claims.let_go, claim))
            raise
        self._tick()
        return claim

    async def release(self, claim: Claim) -> None:
        self._log.forget(claim.turn_id)
        if self._claims.released(claim):
            await self._writer.submit(lambda: self._claims.let_go(claim))

    async def hold(self, claim: Claim) -> None:
        self._check_open()
        self._claims.check(claim)
        if not self._claims.is_fresh(claim):
            await self._writer.submit(lambda: self._claims.renew(claim))

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False
    ) -> list[Recorded]:
        self._claims.check(claim)
        check_turn(claim, facts)
        stored = encode(facts, OWNER)
        followed = claim.agent_id if facts else ""
        work = partial(self._log.append, claim, facts, stored, rest)
        made = self._writer.alone(work, followed) if self._claims.has_one_turn else None
        others, seen = made if made is not None else await self._writer.submit(work, followed)
        claim.seen = max(claim.seen, seen)
        if barrier:
            await self._helper.barrier()
        return others

    async def sync(self) -> None:
        self._check_open()
        await self._helper.barrier()

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[Recorded]:
        place = await self._read(lambda: self._log.place(agent_id), agent_id)
        if place is None:
            return []
        upto = place.seq
        if turn_id is not None:
            row = await self._read(lambda: self._views.turn(turn_id), agent_id)
            if row is None or row.agent_id != agent_id:
                return []
            after = max(after, row.first_seq - 1)
            if not row.is_open:
                upto = row.last_seq
        found: list[Recorded] = []
        if after >= upto:
            return found
        previous = await self._read(lambda: self._log.hash_at(place.agent, agent_id, after), agent_id)
        while after < upto and (limit is None or len(found) < limit):
            at, link = after, previous

            def chunk(at: int = at, link: bytes = link) -> tuple[list[tuple[int, bytes, bytes, bytes]], bytes]:
                return self._log.chunk(place.agent, agent_id, at, link, upto)

            rows, previous = await self._read(chunk, agent_id)
            for seq, header, body, _ in rows:
                head = read_head(header)
                if (turn_id is None or head.turn_id == turn_id) and (thread_id is None or head.thread_id == thread_id):
                    found.append(self._log.recorded(agent_id, seq, head, body))
            after = rows[-1][0]
            if after < upto:
                await asyncio.sleep(0)
        return found if limit is None else found[:limit]

    async def turn(self, turn_id: str) -> TurnRow | None:
        return await self._read(lambda: self._views.turn(turn_id))

    async def turn_of_key(self, key: str) -> TurnRow | None:
        return await self._read(lambda: self._views.turn_of_key(key))

    async def turns(self, *, open_only: bool = False, limit: int | None = None) -> list[TurnRow]:
        return await self._read(lambda: self._views.turns(open_only, limit))

    async def running(self, agent_id: str) -> list[TurnRow]:
        return await self._read(lambda: self._views.running(agent_id))

    async def is_held(self, agent_id: str) -> bool:
        return await self._read(lambda: self._claims.is_held(agent_id))

    async def turns_of_thread(self, agent_id: str, thread_id: str) -> list[TurnRow]:
        return await self._read(lambda: self._views.turns_of_thread(agent_id, thread_id), agent_id)

    async def agents(self) -> list[str]:
        return [agent_id for _, agent_id in await self._read(self._log.agents)]

    async def unknown(self) -> list[UnknownRow]:
        return await self._read(self._views.unknown)

    async def action(self, action_id: str) -> ActionRow | None:
        return await self._read(lambda: self._views.action(action_id))

    async def actions(self, *, pending_only: bool = False, turn_id: str | None = None) -> list[ActionRow]:
        return await self._read(lambda: self._views.actions(pending_only, turn_id))

    async def rules(self, agent_name: str | None = None) -> list[RuleRow]:
        return await self._read(lambda: self._views.rules(agent_name))

    async def spending(self, scopes: Sequence[str] | None = None, *, after: int = 0) -> list[SpendRow]:
        return await self._read(lambda: self._windows.after(after, scopes))

    async def usage(self, agent_id: str) -> AgentTokenUsageSummary:
        return await self._read(lambda: self._views.usage(agent_id), agent_id)

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
        row = await self._writer.submit(lambda: self._workflows.save(name, graph, new_id, created_at, workflow_id, key))
        await self._helper.barrier()
        return row

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        return await self._read(lambda: self._workflows.one(workflow_id, revision))

    async def workflows(self) -> list[WorkflowRow]:
        return await self._read(self._workflows.newest)

    async def delete_workflow(self, workflow_id: str) -> bool:
        there = await self._writer.submit(lambda: self._workflows.delete(workflow_id))
        await self._helper.barrier()
        return there

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        self._check_open()
        return await self._blobs.put(data, media_type)

    async def get_blob(self, digest: str) -> bytes:
        self._check_open()
        return await self._blobs.get(digest)

    def reader(self, agent_id: str, turn_id: str) -> Callable[[], list[Recorded]]:
        path, vfs = self._path, self._vfs

        def read() -> list[Recorded]:
            connection = connect(path, vfs)
            try:
                sql = Statements(connection)
                return Log(sql, path, Views(sql)).events_of(agent_id, turn_id)
            except (apsw.Error, OSError) as error:
                raise translated(error, path, agent_id) from error
            finally:
                connection.close()

        return read

    def watch(self, agent_id: str, *, outsiders_only: bool = False) -> Watch:
        watch = self._watches.open(agent_id, outsiders_only=outsiders_only)
        self._tick()
        return watch

    async def rebuild_views(self) -> None:
        """In one transaction, which blocks the loop: this is for repair, not for every day."""

        def work() -> None:
            windows: dict[WindowKey, Move] = {}
            books = [(agent, self._log.book(agent, agent_id, windows)) for agent, agent_id in self._log.agents()]
            for agent, book in books:
                self._views.rewrite(agent, book)
            self._windows.rewrite(windows, {agent: book.holds for agent, book in books})

        await self._writer.submit(work)

    async def verify(self) -> list[Damage]:
        self._check_open()
        return await asyncio.to_thread(_verify, self._path, self._vfs)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.wait([self._ticker])
        await self._writer.close()
        self._watches.wake_all()
        self._connection.close()
        await self._helper.close()
        self._owners.close()  # last: from here on the leases we did not give back are free to take

    def _committed(self, agents: Sequence[str]) -> None:
        for agent_id in agents:
            self._watches.wake(agent_id)
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

    def _make_safe(self) -> None:
        """A barrier nobody waits for: what was committed meanwhile does not stay at the mercy of a power cut."""
        self._safe_soon = None
        if not self._closed:
            # Whoever does wait for the next one is told what is wrong with the disk.
            self._helper.barrier().add_done_callback(lambda barrier: barrier.cancelled() or barrier.exception())

    def _checkpointed(self) -> None:
        self._checkpointing = False
        self._checkpoint_at = self._writer.commits + CHECKPOINT_EVERY
        self._writer.resume()

    async def _written(self, work: Callable[[], T]) -> T:
        """A transaction that survives a power cut when this returns."""
        done = await self._writer.submit(work)
        await self._helper.barrier()
        return done

    async def _read(self, look: Callable[[], T], agent_id: str = "") -> T:
        self._check_open()
        return await _retried(look, self._path, self._patience, agent_id)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreProblem(f"the store {self._path} was closed", "Open it again.")

    def _tick(self) -> None:
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.get_running_loop().create_task(self._keep_watch())

    async def _keep_watch(self) -> None:
        """While somebody watches or owns: see what other processes wrote, renew what is half used."""
        while self._watches or self._claims:
            await asyncio.sleep(TICK)
            try:
                version = self._connection.pragma("data_version")
                if version != self._data_version:
                    self._data_version = version
                    self._watches.wake_all()
                if self._claims.is_due():
                    await self._writer.submit(self._claims.renew_all)
            except (StoreProblem, apsw.Error):
                pass  # tried again in a second; what needs the lease asks for itself


def _prepared(path: Path) -> Path:
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _verify(path: Path, vfs: str | None) -> list[Damage]:
    """On a connection of its own: this reads everything."""
    connection = connect(path, vfs)
    try:
        sql = Statements(connection)
        log = Log(sql, path, Views(sql))
        found = [Damage("", 0, what) for what in _integrity(sql) if what != "ok"]
        found += [damage for place in log.agents() if (damage := log.damage(*place)) is not None]
        return found
    except apsw.Error as error:
        raise translated(error, path) from error
    finally:
        connection.close()


def _integrity(sql: Statements) -> list[str]:
    try:
        return [str(what) for (what,) in sql.all("PRAGMA integrity_check")]
    except apsw.CorruptError as error:  # too broken to be checked to the end
        return [str(error)]


def _ready(path: Path, vfs: str | None) -> apsw.Connection:
    if vfs is None:
        put_new(path)
    connection = connect(path, vfs)
    try:
        migrate(connection, path, shipped())
        if connection.execute(_RUNTIME_ID).get is None:
            own = (f"rt_{secrets.token_hex(8)}", secrets.token_hex(32))
            connection.execute("INSERT OR IGNORE INTO meta VALUES ('runtime_id', ?), ('secret', ?)", own)
    except BaseException:
        connection.close()
        raise
    return connection


async def _retried(look: Callable[[], T], path: Path, patience: float, agent_id: str = "") -> T:
    """Try again, without blocking, while the database is locked elsewhere."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while True:
        try:
            return look()
        except apsw.BusyError:
            if loop.time() > deadline:
                raise locked(path) from None
            await asyncio.sleep(0.01)
        except apsw.Error as error:
            raise translated(error, path, agent_id) from error
