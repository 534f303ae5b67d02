"""The rows, made again from the log: on a thread and a connection of its own, so that the loop goes on meanwhile.

The log is read without a lock. Then, in one transaction, what was appended since is added and all rows are replaced.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

from wakeful.contracts.errors import EventRefused, StoreDamaged
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.sqlite.connection import UNREADABLE, Statements, translated
from wakeful.store.sqlite.streams import Span, Streams
from wakeful.store.sqlite.tables import SqliteTables


def rebuild(again: Callable[[], apsw.Connection], path: Path, patience: float) -> None:
    """Replace all rows. Raises StoreDamaged, and then nothing was changed."""
    try:
        connection = again()
        try:
            connection.set_busy_timeout(int(patience * 1000))
            sql = Statements(connection)
            log = _Books(Streams(sql, path))
            log.read_on()
            sql.do("BEGIN IMMEDIATE")
            try:
                log.read_on()
                names = ((book.agent_name, agent) for agent, book in log.books.items())
                sql.many("UPDATE agents SET name = ? WHERE id = ?", names)
                SqliteTables(sql).rewrite(log.tables, {book.agent_id: agent for agent, book in log.books.items()})
                sql.do("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    sql.do("ROLLBACK")
                raise
        finally:
            connection.close()
    except UNREADABLE as error:
        raise translated(error, path) from error


def remake_tables(connection: apsw.Connection, path: Path) -> None:
    """Make the rows of every declared table from the log, in the transaction of an update: new tables are empty, and
    an older version may have written other rows.

    A log that cannot be read leaves them as they are: whoever reads it is told what is wrong with it.
    """
    sql = Statements(connection)
    log = _Books(Streams(sql, path))
    with suppress(StoreDamaged, EventRefused, *UNREADABLE):
        log.read_on()
        SqliteTables(sql).rewrite(log.tables, {book.agent_id: agent for agent, book in log.books.items()})


class _Books:
    """The rows of every agent, as far as its log was read."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._read: dict[int, int] = {}
        self.books: dict[int, Book] = {}
        self.tables = MemoryTables()

    def read_on(self) -> None:
        """What is new in the log."""
        for agent, agent_id in self._streams.agents():
            book = self.books.setdefault(agent, Book(agent_id, self.tables))
            place = self._streams.place(agent_id)
            at = self._read.get(agent, 0)
            while place is not None and at < place.seq:
                entries, at = self._streams.piece(Span(agent, agent_id, place.seq), at)
                for entry in entries:
                    book.read_again(self._streams.recorded(agent_id, entry).fact, entry.seq)
            self._read[agent] = at
