"""The rows, made again from the log in steps: on a thread and a connection of its own, so that the loop goes on.

The log is read without a lock. Then the rows of each table are compared, page by page, with what follows from the log,
and those that differ are written: a short transaction a page, in which the facts are read first that were appended
meanwhile. Others write between the steps. That a rebuild is due or under way is noted in the database: whoever opens it
after a kill begins again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from wakeful.contracts.errors import EventRefused, StoreDamaged
from wakeful.ports.retention import left_before
from wakeful.ports.tables import Table, TableKey
from wakeful.store.emptied_turns import LeftEvents, emptied_among
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.sqlite.connection import UNREADABLE, Statements, translated
from wakeful.store.sqlite.migrations import REBUILD_DUE
from wakeful.store.sqlite.retention_steps import MARK
from wakeful.store.sqlite.streams import Span, Streams
from wakeful.store.sqlite.tables import SqliteTables
from wakeful.store.tables import TABLES

STEP = 500
"""Rows that are compared, and at most written, in one step."""


def rebuild(again: Callable[[], apsw.Connection], path: Path, patience: float, *, leave_damaged: bool = False) -> None:
    """Mend all rows. Raises StoreDamaged, and then nothing was changed.

    With `leave_damaged`, rows of agents whose log cannot be read stay as they are: whoever reads it is told.
    """
    try:
        with closing(again()) as connection:
            connection.set_busy_timeout(int(patience * 1000))
            _Rebuild(Statements(connection), path, leave_damaged=leave_damaged).run()
    except UNREADABLE as error:
        raise translated(error, path) from error


class _Rebuild:
    """One pass over the log and over all tables."""

    def __init__(self, sql: Statements, path: Path, *, leave_damaged: bool) -> None:
        self._sql = sql
        self._tables = SqliteTables(sql)
        self._books = _Books(sql, path, leave_damaged=leave_damaged)

    def run(self) -> None:
        self._books.read_on()
        with self._step():
            self._sql.do("INSERT OR REPLACE INTO meta VALUES (?, 'under way')", (REBUILD_DUE,))
        for table in TABLES:
            if table.merge is None:
                self._mend(table)
        with self._step():
            if not self._books.damaged:  # else what their agents added to a merged row is not known
                for table in TABLES:
                    if table.merge is not None:
                        self._write(table, [key for keys in self._differences(table) for key in keys])
            self._name_agents()
            self._sql.do("DELETE FROM meta WHERE key = ?", (REBUILD_DUE,))

    def _mend(self, table: Table[Any]) -> None:
        for keys in self._differences(table):
            if keys:
                with self._step():
                    self._write(table, keys)

    def _differences(self, table: Table[Any]) -> Iterator[list[TableKey]]:
        """The keys of rows that are not what the log says, page by page; then of those that are not there."""
        seen: set[TableKey] = set()
        after: TableKey = ()
        while page := self._tables.page_by_key(table, after, STEP):
            after = table.key_of(page[-1])
            found = {table.key_of(row): row for row in page}
            seen.update(found)
            yield [key for key, row in found.items() if self._is_wrong(table, key, row)]
        rows = self._books.tables.items(table)
        left = self._left_before(table)
        missing = [
            key
            for key, row in rows
            if key not in seen and self._is_known(row) and not (left and getattr(row, table.aged_by) < left)
        ]
        if table.position:  # they are numbered as they are written
            made = self._books.tables
            missing.sort(key=lambda key: getattr(made.get(table, key), table.aged_by))
        for place in range(0, len(missing), STEP):
            yield missing[place : place + STEP]

    def _is_wrong(self, table: Table[Any], key: TableKey, row: Any) -> bool:
        if not self._is_known(row):
            return False
        found = self._books.tables.get(table, key)
        return found is None or table.unnumbered(found) != table.unnumbered(row)

    def _left_before(self, table: Table[Any]) -> int:
        """Rows from before this time have left by their age; 0: none have."""
        mark = (
            self._sql.one("SELECT value FROM meta WHERE key = ?", (f"{MARK}{table.name}",)) if table.aged_by else None
        )
        return 0 if mark is None else left_before(str(mark[0]))

    def _is_known(self, row: Any) -> bool:
        """Does it follow from a log that could be read?"""
        return getattr(row, "agent_id", None) not in self._books.damaged

    @contextmanager
    def _step(self) -> Iterator[None]:
        """A transaction that begins with what others appended since the last one."""
        self._sql.do("BEGIN IMMEDIATE")
        try:
            for table, keys in self._books.read_on().items():
                if table.merge is None:
                    self._write(table, keys)
            yield
            self._sql.do("COMMIT")
        except BaseException:
            self._sql.do("ROLLBACK")
            raise

    def _write(self, table: Table[Any], keys: Iterable[TableKey]) -> None:
        for key in keys:
            row = self._books.tables.get(table, key)
            self._tables.replace(table, key, row, self._books.numbers.get(getattr(row, "agent_id", ""), 0))

    def _name_agents(self) -> None:
        names = dict(self._sql.all("SELECT id, name FROM agents"))
        for agent, book in self._books.books.items():
            if names.get(agent) != book.agent_name and book.agent_id not in self._books.damaged:
                self._sql.do("UPDATE agents SET name = ? WHERE id = ?", (book.agent_name, agent))


class _Books:
    """The rows of every agent, as far as its log was read."""

    def __init__(self, sql: Statements, path: Path, *, leave_damaged: bool) -> None:
        self._sql = sql
        self._streams = Streams(sql, path)
        self._leave_damaged = leave_damaged
        self._read: dict[int, int] = {}
        self._version = -1
        self.books: dict[int, Book] = {}
        self.numbers: dict[str, int] = {}
        self.tables = MemoryTables()
        self.damaged: set[str] = set()
        """Agents whose log cannot be read."""

    def read_on(self) -> dict[Table[Any], set[TableKey]]:
        """Take in what is new in the log. Gives the keys of rows that it changed."""
        changed: dict[Table[Any], set[TableKey]] = defaultdict(set)
        ((version,),) = self._sql.all("PRAGMA data_version")  # another number once somebody else has written
        if version == self._version:
            return changed
        self._version = version
        for agent, agent_id, head in self._sql.all("SELECT id, agent_id, seq FROM agents ORDER BY id"):
            if self._read.get(agent, 0) < head and agent_id not in self.damaged:
                self.numbers[agent_id] = agent
                try:
                    self._read_agent(agent, agent_id, head, changed)
                except (StoreDamaged, EventRefused):
                    if not self._leave_damaged:
                        raise
                    self.damaged.add(agent_id)
        return changed

    def _read_agent(self, agent: int, agent_id: str, head: int, changed: dict[Table[Any], set[TableKey]]) -> None:
        book = self.books.setdefault(agent, Book(agent_id, self.tables))
        at = self._read.get(agent, 0)
        span = Span(agent, agent_id, head)
        left = LeftEvents(lambda: emptied_among(self._streams.entries(span)))
        while at < head:
            entries, at = self._streams.piece(span, at)
            for entry in entries:
                fact = left.read_as(entry.seq, self._streams.recorded(agent_id, entry).fact)
                made = book.read_again([fact], entry.seq - 1)
                for table, rows in made.rows.items():
                    changed[table].update(rows)
        self._read[agent] = at
