"""The declared tables in memory: a dict for each table, and a sorted list for each of its indexes.

It is what the memory store keeps, and what SQLite rebuilds its tables in.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any, Generic

from wakeful.ports.tables import Condition, Match, Row, RowQuery, Table, TableIndex, TableKey, Value
from wakeful.store.tables import TABLES


class _SortedKeys(Generic[Row]):
    """One index: the values of its fields and the key, of every row that is in it."""

    def __init__(self, table: Table[Row], index: TableIndex, agents: Mapping[str, int]) -> None:
        self.fields = index.fields
        self._values = _reader(table, index.fields)
        self._where = _condition(table, index.where)
        self._agents = agents
        self._entries: list[tuple[Any, TableKey]] = []

    def change(self, key: TableKey, before: Row | None, after: Row | None) -> None:
        old = None if before is None or not self._where(before) else self._values(before)
        new = None if after is None or not self._where(after) else self._values(after)
        if old == new:
            return
        if old is not None:
            del self._entries[bisect_left(self._entries, (self._sortable(old), key))]
        if new is not None:
            insort(self._entries, (self._sortable(new), key))

    def keys(self, begin: Sequence[Value], after: Sequence[Value] = (), backwards: bool = False) -> Iterator[TableKey]:
        """In order, the keys of rows whose first fields have these values, and whose next ones come after these."""
        first = self._sortable(begin)
        start, end = bisect_left(self._entries, (first,)), self._end(first)
        if after:
            place = self._sortable((*begin, *after))
            start, end = (start, bisect_left(self._entries, (place,))) if backwards else (self._end(place), end)
        places = range(end - 1, start - 1, -1) if backwards else range(start, end)
        return (self._entries[place][1] for place in places)

    def _end(self, values: tuple[Any, ...]) -> int:
        """The first entry behind all that begin with these values."""
        return bisect_right(self._entries, values, key=lambda entry: entry[0][: len(values)])

    def _sortable(self, values: Sequence[Value]) -> tuple[Any, ...]:
        return tuple(_sortable(self._agents, name, value) for name, value in zip(self.fields, values, strict=False))


class _Rows(Generic[Row]):
    """One table."""

    def __init__(self, table: Table[Row], agents: Mapping[str, int]) -> None:
        self.table = table
        self.rows: dict[TableKey, Row] = {}
        self.indexes = {index.name: _SortedKeys(table, index, agents) for index in table.indexes}

    def set(self, key: TableKey, row: Row | None) -> None:
        before = self.rows.get(key)
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row
        for index in self.indexes.values():
            index.change(key, before, row)

    def in_order(
        self, query: RowQuery, equal: Sequence[Value], after: Sequence[Value], backwards: bool
    ) -> Iterator[Row] | None:
        """The rows of a query as its index has them; None when that has them in another order."""
        index, given = self.indexes.get(query.served_by), dict(zip(query.equal, equal, strict=True))
        if index is None or index.fields[len(given) :] != query.order or {*index.fields[: len(given)]} != {*given}:
            return None
        begin = [given[name] for name in index.fields[: len(given)]]
        return (self.rows[key] for key in index.keys(begin, after, backwards))

    def near(self, query: RowQuery, equal: Sequence[Value]) -> Iterable[Row]:
        """Rows that may be in the query, found by its index."""
        index = self.indexes.get(query.served_by)
        if index is None:
            return self.rows.values()
        given = dict(zip(query.equal, equal, strict=True))
        begin = [given[name] for name in takewhile(given.__contains__, index.fields)]
        return [self.rows[key] for key in index.keys(begin)]


class MemoryTables:
    """The rows of all tables."""

    def __init__(self) -> None:
        self._agents: dict[str, int] = {}
        """The order in which agents came."""
        self._tables: dict[Table[Any], _Rows[Any]] = {table: _Rows(table, self._agents) for table in TABLES}

    def add_agent(self, agent_id: str) -> None:
        self._agents.setdefault(agent_id, len(self._agents))

    def get(self, table: Table[Row], key: TableKey) -> Row | None:
        row: Row | None = self._tables[table].rows.get(key)
        return row

    def all(self, table: Table[Row]) -> Collection[Row]:
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
        served: Iterator[Row] | None = self._tables[table].in_order(query, equal, after, backwards)
        if served is not None:
            return [*islice((row for row in served if where(row)), limit)]
        rows = [row for row in self._tables[table].near(query, equal) if where(row) and equals(row) == wanted]
        order = self._order(table, query.order)
        rows.sort(key=order, reverse=backwards)
        if after:
            place = self._sortable(query.order, after)
            upto = len(after)
            rows = [row for row in rows if (order(row)[:upto] < place if backwards else order(row)[:upto] > place)]
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
                before = kept.rows.get(key) if table.merge is not None else None
                kept.set(key, row if before is None or table.merge is None else table.merge(before, row))

    def clear(self) -> None:
        self._tables = {table: _Rows(table, self._agents) for table in TABLES}

    def _order(self, table: Table[Row], fields: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
        values = _reader(table, fields)
        return lambda row: self._sortable(fields, values(row))

    def _sortable(self, fields: Sequence[str], values: Sequence[Value]) -> tuple[Any, ...]:
        return tuple(_sortable(self._agents, name, value) for name, value in zip(fields, values, strict=False))


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


def _sortable(agents: Mapping[str, int], name: str, value: Value) -> tuple[bool, Any]:
    """Nothing comes first, as in SQL. Agents are sorted as they came, and one that nobody knows before all."""
    return value is not None, agents.get(str(value), -1) if name == "agent_id" else value
