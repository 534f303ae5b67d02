"""The declared tables in memory: a dict for each table, and a sorted list for each of its indexes.

It is what the memory store keeps, and what SQLite rebuilds its tables in.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Generic

from wakeful.ports.tables import Condition, Match, Row, RowQuery, Table, TableIndex, TableKey, Value
from wakeful.store.tables import TABLES


class _SortedKeys(Generic[Row]):
    """One index: the values of its fields and the key, of every row that is in it."""

    def __init__(self, table: Table[Row], index: TableIndex) -> None:
        self.fields = index.fields
        self._values = _reader(table, index.fields)
        self._where = _condition(table, index.where)
        self._entries: list[tuple[Any, TableKey]] = []

    def change(self, key: TableKey, before: Row | None, after: Row | None) -> None:
        old, new = self._entry(key, before), self._entry(key, after)
        if old == new:
            return
        if old is not None:
            del self._entries[bisect_left(self._entries, old)]
        if new is not None:
            insort(self._entries, new)

    def keys(self, begin: Sequence[Value]) -> list[TableKey]:
        """The keys of rows whose first fields have these values."""
        wanted = tuple(map(_sortable, begin))
        place = bisect_left(self._entries, (wanted,))
        found: list[TableKey] = []
        for values, key in islice(self._entries, place, None):
            if values[: len(wanted)] != wanted:
                break
            found.append(key)
        return found

    def _entry(self, key: TableKey, row: Row | None) -> tuple[Any, TableKey] | None:
        if row is None or not self._where(row):
            return None
        return tuple(map(_sortable, self._values(row))), key


class _Rows(Generic[Row]):
    """One table."""

    def __init__(self, table: Table[Row]) -> None:
        self.table = table
        self.rows: dict[TableKey, Row] = {}
        self.indexes: dict[str, _SortedKeys[Row]] = {index.name: _SortedKeys(table, index) for index in table.indexes}

    def set(self, key: TableKey, row: Row | None) -> None:
        before = self.rows.get(key)
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row
        for index in self.indexes.values():
            index.change(key, before, row)

    def near(self, query: RowQuery, equal: Sequence[Value]) -> Iterable[Row]:
        """Rows that may be in the query, found by its index."""
        index = self.indexes.get(query.served_by)
        if index is None:
            return self.rows.values()
        given = dict(zip(query.equal, equal, strict=True))
        begin = []
        for name in index.fields:
            if name not in given:
                break
            begin.append(given[name])
        return [self.rows[key] for key in index.keys(begin)]


class MemoryTables:
    """The rows of all tables."""

    def __init__(self) -> None:
        self._tables: dict[Table[Any], _Rows[Any]] = {table: _Rows(table) for table in TABLES}
        self._agents: dict[str, int] = {}
        """The order in which agents came."""

    def add_agent(self, agent_id: str) -> None:
        self._agents.setdefault(agent_id, len(self._agents))

    def get(self, table: Table[Row], key: TableKey) -> Row | None:
        row: Row | None = self._tables[table].rows.get(key)
        return row

    def all(self, table: Table[Row]) -> Iterable[Row]:
        return self._tables[table].rows.values()

    def page(
        self,
        table: Table[Row],
        query: RowQuery,
        equal: Sequence[Value] = (),
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        equals, where = _reader(table, query.equal), _condition(table, query.where)
        wanted = tuple(equal)
        rows = [row for row in self._tables[table].near(query, equal) if where(row) and equals(row) == wanted]
        order = self._order(table, query.order)
        rows.sort(key=order, reverse=backwards)
        if after:
            place = self._sortable(query.order, after)
            rows = [row for row in rows if (order(row) < place if backwards else order(row) > place)]
        return rows[:limit]

    def find(
        self, table: Table[Row], matches: Sequence[Match], order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        tests = [_test(table, match) for match in matches]
        rows = [row for row in self.all(table) if any(test(row) for test in tests)]
        return sorted(rows, key=self._order(table, order))[:limit]

    def change(self, changed: Mapping[Table[Any], Mapping[TableKey, Any]]) -> None:
        """Take the changes of an append over."""
        for table, rows in changed.items():
            kept = self._tables[table]
            for key, row in rows.items():
                kept.set(key, row)

    def clear(self) -> None:
        self._tables = {table: _Rows(table) for table in TABLES}

    def _order(self, table: Table[Row], fields: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
        values = _reader(table, fields)
        return lambda row: self._sortable(fields, values(row))

    def _sortable(self, fields: Sequence[str], values: Sequence[Value]) -> tuple[Any, ...]:
        pairs = zip(fields, values, strict=True)
        return tuple(self._agents[str(value)] if name == "agent_id" else value for name, value in pairs)


def _reader(table: Table[Row], fields: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    places = [table.fields.index(name) for name in fields]
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple(row[place] for place in places)


def _condition(table: Table[Row], condition: Condition | None) -> Callable[[Row], bool]:
    if condition is None:
        return lambda row: True
    place, holds = table.fields.index(condition.field), condition.holds
    return lambda row: holds(row[place])


def _test(table: Table[Row], match: Match) -> Callable[[Row], bool]:
    values, where = _reader(table, tuple(match.one_of)), _condition(table, match.where)
    allowed = list(match.one_of.values())

    def test(row: Row) -> bool:
        if not where(row) or not all(value in given for value, given in zip(values(row), allowed, strict=True)):
            return False
        if match.within is None:
            return True
        name, first, beyond = match.within
        return bool(first <= row[table.fields.index(name)] < beyond)

    return test


def _sortable(value: Value) -> tuple[bool, Any]:
    """Nothing comes first, as in SQL."""
    return value is not None, value
