"""The tables of dispatches and of imported agents, in the writer's transactions and with its barrier."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from wakeful.ports import DispatchEvent, DispatchKind, DispatchRow, ImportedAgent
from wakeful.store.sqlite.connection import Statements

_RUN = "SELECT run_id, kind, session_id, status, record, revision, created_at, updated_at FROM dispatches"
_AGENT = "SELECT slug, definition, imported_at FROM imported_agents"
T = TypeVar("T")


class StoreRead(Protocol):
    """`SqliteStore._read`."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class SafeWriting(Protocol):
    """A transaction, and a barrier behind it."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class SqliteDispatches:
    """`Dispatches` in SQLite."""

    def __init__(self, sql: Statements, read: StoreRead, write: SafeWriting) -> None:
        self._sql = sql
        self._read = read
        self._write = write

    async def claim(
        self,
        run_id: str,
        kind: DispatchKind,
        session_id: str,
        status: str,
        record: str,
        *,
        at: int,
        event: str,
        payload: str,
    ) -> bool:
        def work() -> bool:
            if self._one(run_id) is not None:
                return False
            row = (run_id, kind, session_id, status, record, 1, at, at)
            self._sql.do("INSERT INTO dispatches VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._add(run_id, at, event, payload)
            return True

        return await self._write(work)

    async def get(self, run_id: str) -> DispatchRow | None:
        return await self._read(lambda: self._one(run_id))

    async def all(self, kind: DispatchKind, *, limit: int | None = None) -> list[DispatchRow]:
        sql = f"{_RUN} WHERE kind = ? ORDER BY number DESC LIMIT ?"
        rows = await self._read(lambda: self._sql.all(sql, (kind, -1 if limit is None else limit)))
        return [DispatchRow(*row) for row in rows]

    async def change(
        self, run_id: str, revision: int, status: str, record: str, *, at: int, event: str, payload: str
    ) -> bool:
        def work() -> bool:
            row = self._one(run_id)
            if row is None or row.revision != revision:
                return False
            self._sql.do(
                "UPDATE dispatches SET status = ?, record = ?, revision = ?, updated_at = ? WHERE run_id = ?",
                (status, record, revision + 1, at, run_id),
            )
            self._add(run_id, at, event, payload)
            return True

        return await self._write(work)

    async def note(self, run_id: str, *, at: int, event: str, payload: str) -> bool:
        def work() -> bool:
            if self._one(run_id) is None:
                return False
            self._add(run_id, at, event, payload)
            return True

        return await self._write(work)

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[DispatchEvent]:
        sql = "SELECT seq, at, name, payload FROM dispatch_events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        values = (run_id, after, -1 if limit is None else limit)
        return [DispatchEvent(*row) for row in await self._read(lambda: self._sql.all(sql, values))]

    def _one(self, run_id: str) -> DispatchRow | None:
        found = self._sql.one(f"{_RUN} WHERE run_id = ?", (run_id,))
        return DispatchRow(*found) if found is not None else None

    def _add(self, run_id: str, at: int, event: str, payload: str) -> None:
        last: Any = self._sql.one("SELECT coalesce(max(seq), 0) FROM dispatch_events WHERE run_id = ?", (run_id,))
        self._sql.do("INSERT INTO dispatch_events VALUES (?, ?, ?, ?, ?)", (run_id, last[0] + 1, at, event, payload))


class SqliteImportedAgents:
    """The agents that came in bundles."""

    def __init__(self, sql: Statements, read: StoreRead, write: SafeWriting) -> None:
        self._sql = sql
        self._read = read
        self._write = write

    async def put(self, slug: str, definition: str, *, at: int, replace: bool) -> bool:
        def work() -> bool:
            if not replace and self._one(slug) is not None:
                return False
            self._sql.do("INSERT OR REPLACE INTO imported_agents VALUES (?, ?, ?)", (slug, definition, at))
            return True

        return await self._write(work)

    async def get(self, slug: str) -> ImportedAgent | None:
        return await self._read(lambda: self._one(slug))

    async def all(self) -> list[ImportedAgent]:
        rows = await self._read(lambda: self._sql.all(f"{_AGENT} ORDER BY slug"))
        return [ImportedAgent(*row) for row in rows]

    def _one(self, slug: str) -> ImportedAgent | None:
        found = self._sql.one(f"{_AGENT} WHERE slug = ?", (slug,))
        return ImportedAgent(*found) if found is not None else None
