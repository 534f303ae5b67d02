"""A log from elsewhere, checked before anything of it is believed: its chain, and the rows that follow from it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.errors import EventRefused, StoreDamaged
from wakeful.ports.tables import Table, TableKey
from wakeful.ports.transfer import StoredLog
from wakeful.ports.turns import TURN_OF_KEY, TURNS
from wakeful.store import chain
from wakeful.store.emptied_turns import LeftEvents, emptied_among
from wakeful.store.encoding import NO_ROW, EncodedFact, decode, link_row, read_row
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.tables import TABLES


class CheckedLog(NamedTuple):
    """A log whose chain holds."""

    entries: list[list[EncodedFact]]
    """The facts of each row."""
    head: int
    hash: bytes
    book: Book
    tables: Mapping[Table[Any], Mapping[TableKey, Any]]

    def first_of_turn(self, turn_id: str | None) -> int | None:
        row = None if turn_id is None else self.tables[TURNS].get((turn_id,))
        return None if row is None else int(row.first_seq)


def checked_log(log: StoredLog) -> CheckedLog:
    """Raises StoreDamaged at the first row that does not fit."""
    previous = log.cut_hash if log.cut else chain.origin(log.agent_id)
    seq = log.cut + 1
    tables = MemoryTables()
    book = Book(log.agent_id, tables)
    found: list[list[EncodedFact]] = []
    left = LeftEvents(lambda: emptied_among(_entries(log)))
    for row in log.rows:
        try:
            entries = read_row(row.seq, row.header, row.body)
            fits = row.seq == seq and entries and link_row(previous, row.header, row.body, entries) == row.hash
            if not fits:
                raise ValueError("it does not follow from the one before it")
            facts = [left.read_as(entry.seq, decode(entry.head, entry.payload)) for entry in entries]
            book.read_again(facts, row.seq - 1)
        except (*NO_ROW, EventRefused) as error:
            raise StoreDamaged(
                f"event {row.seq} of agent {log.agent_id} is not what was written",
                "Nothing was imported. Export the log again, and hand the file on unchanged.",
                agent_id=log.agent_id,
                sequence=row.seq,
            ) from error
        found.append(entries)
        previous, seq = row.hash, entries[-1].seq + 1
    made = {table: dict(tables.items(table)) for table in TABLES}
    return CheckedLog(found, seq - 1, previous, book, made)


def refuse_known(log: CheckedLog, agent_id: str, there: Any) -> None:
    """Raises EventRefused when a row of the log has a key that the store has. `there` has `get` and `page`."""
    for table, rows in log.tables.items():
        if table.merge is not None:
            continue
        for key, row in rows.items():
            if there.get(table, key) is not None:
                named = ", ".join(map(str, key))
                raise _known(agent_id, f"{named} in {table.name}")
            if table is TURNS and row.key is not None and there.page(TURNS, TURN_OF_KEY, (row.key,)):
                raise _known(agent_id, f"a run with the key {row.key!r}")


def _known(agent_id: str, what: str) -> EventRefused:
    return EventRefused(
        f"the log of agent {agent_id} cannot be imported: this store has {what} already",
        "Import it into a store that does not have it.",
    )


def payloads_of(logs: Sequence[StoredLog]) -> Iterable[bytes | None]:
    for log in logs:
        for entry in _entries(log):
            yield entry.payload


def _entries(log: StoredLog) -> Iterable[EncodedFact]:
    for row in log.rows:
        yield from read_row(row.seq, row.header, row.body)
