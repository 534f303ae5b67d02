"""The declared tables in memory: a dict for each table, and a sorted list for each of its indexes that was asked for.

It is what the memory store keeps, and what SQLite rebuilds its tables in. An index is made when somebody first reads by
it, and kept from then on: most stores in memory end before anybody reads by most of them.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any, Generic, NamedTuple

from wakeful.ports.retention import left_before
from wakeful.ports.tables import Condition, Match, Row, RowQuery, Table, TableIndex, TableKey, Value, reader_of
from wakeful.store.tables import TABLES
from wakeful.store.tables.row_rules import Need, RowKey, RowList

_BEHIND_ALL = (2,)
"""Sorts behind every value of a field."""


class _SortedKeys(Generic[Row]):
    """One index: the values of its fields and the key, of every row that is in it."""

    def __init__(self, table: Table[Row], index: TableIndex, agents: Mapping[str, int]) -> None:
        self._fields = index.fields
        self._values = reader_of(table, index.fields)
        self._place, self._condition = _place_of(table, index.where)
        self._agents = agents
        self.entries: list[tuple[Any, TableKey]] = []

    def fill(self, rows: Mapping[TableKey, Row]) -> None:
        place, condition = self._place, self._condition
        found = ((key, row) for key, row in rows.items() if condition is None or condition.holds(row[place]))
        self.entries = sorted((self._sortable(self._values(row)), key) for key, row in found)

    def change(self, key: TableKey, before: Row | None, after: Row | None) -> None:
        place, condition, old, new = self._place, self._condition, None, None
        if before is not None and (condition is None or condition.holds(before[place])):
            old = self._values(before)
        if after is not None and (condition is None or condition.holds(after[place])):
            new = self._values(after)
        if old == new:
            return
        if old is not None:
            del self.entries[bisect_left(self.entries, (self._sortable(old), key))]
        if new is not None:
            insort(self.entries, (self._sortable(new), key))

    def places(self, begin: Sequence[Value], after: Sequence[Value] = (), backwards: bool = False) -> range:
        """In order, where the rows are whose first fields have these values, and whose next ones come after these."""
        first, entries = self._sortable(begin), self.entries
        start, end = bisect_left(entries, (first,)), bisect_left(entries, ((*first, _BEHIND_ALL),))
        if after:
            last = self._sortable((*begin, *after))
            if backwards:
                end = bisect_left(entries, (last,))
            else:
                start = bisect_left(entries, ((*last, _BEHIND_ALL),))
        return range(end - 1, start - 1, -1) if backwards else range(start, end)

    def _sortable(self, values: Sequence[Value]) -> tuple[Any, ...]:
        return _sortable(self._agents, self._fields, values)


class _Rows(Generic[Row]):
    """One table."""

    def __init__(self, table: Table[Row], agents: Mapping[str, int]) -> None:
        self.table = table
        self.rows: dict[TableKey, Row] = {}
        self._agents = agents
        self._indexes: dict[TableIndex, _SortedKeys[Row]] = {}
        self._newest = 0
        """The position that was given last, where rows have them."""

    def index(self, index: TableIndex) -> _SortedKeys[Row]:
        made = self._indexes.get(index)
        if made is None:
            made = self._indexes[index] = _SortedKeys(self.table, index, self._agents)
            made.fill(self.rows)
        return made

    def set(self, key: TableKey, row: Row | None) -> None:
        before = self.rows.pop(key, None) if row is None else self.rows.get(key)
        if row is not None:
            if position := self.table.position:
                row = self._numbered(position, before, row)
            self.rows[key] = row
        for index in self._indexes.values():
            index.change(key, before, row)

    def _numbered(self, position: str, before: Row | None, row: Row) -> Row:
        """With the position that it has, or with the next one."""
        if before is None:
            self._newest += 1
        at = self._newest if before is None else getattr(before, position)
        made: Row = row._replace(**{position: at})  # type: ignore[attr-defined]
        return made

    def keep_numbers(self, before: "_Rows[Row]", has_left: Callable[[Row], bool]) -> None:
        """Rows that were made again have the positions that they had; those that had left are not among them."""
        made, self.rows, self._newest = self.rows, {}, before._newest
        known = [key for key in before.rows if key in made]
        new = [key for key in made if key not in before.rows and not has_left(made[key])]
        for key in known:
            self.rows[key] = made[key]._replace(**{self.table.position: getattr(before.rows[key], self.table.position)})  # type: ignore[attr-defined]
        for key in new:
            self.set(key, made[key])


class _Tables(dict[Table[Any], _Rows[Any]]):
    """A table is there once somebody has looked into it."""

    def __init__(self, agents: Mapping[str, int]) -> None:
        self._agents = agents

    def __missing__(self, table: Table[Any]) -> _Rows[Any]:
        assert table in TABLES, f"{table.name} is not declared in store.tables"
        made = self[table] = _Rows(table, self._agents)
        return made


class _Plan(NamedTuple):
    """How the rows of a query are found. Made once for each query."""

    served_by: TableIndex | None
    begin: Callable[[Sequence[Value]], Sequence[Value]]
    """From the values of its `equal` fields to those that the index begins with."""
    is_in_order: bool
    """The index has exactly these rows, but for the condition, and in the order of the query."""
    place: int
    condition: Condition | None
    """What the index does not see to."""


@cache
def _plan(table: Table[Any], query: RowQuery) -> _Plan:
    index = next((index for index in table.indexes if index.name == query.served_by), None)
    if table.position and query.order == (table.position,) and index is None:
        index = TableIndex(table.position, query.order)
    if index is None:
        return _Plan(None, tuple, False, *_place_of(table, query.where))
    first = [query.equal.index(name) for name in takewhile(query.equal.__contains__, index.fields)]
    begin: Callable[[Sequence[Value]], Sequence[Value]] = (
        itemgetter(*first) if len(first) > 1 else itemgetter(slice(*([first[0], first[0] + 1] if first else [0, 0])))
    )
    is_in_order = len(first) == len(query.equal) and index.fields[len(first) :] == query.order
    return _Plan(index, begin, is_in_order, *_place_of(table, query.where if query.where != index.where else None))


class MemoryTables:
    """The rows of all tables."""

    def __init__(self) -> None:
        self._agents: dict[str, int] = {}
        """The order in which agents came."""
        self._tables = _Tables(self._agents)

    def add_agent(self, agent_id: str) -> None:
        self._agents.setdefault(agent_id, len(self._agents))

    def get(self, table: Table[Row], key: TableKey) -> Row | None:
        row: Row | None = self._tables[table].rows.get(key)
        return row

    def fetch(self, needs: Iterable[Need]) -> dict[Need, Any]:
        """The rows among what rules named beforehand."""
        found: dict[Need, Any] = {}
        for need in needs:
            if isinstance(need, RowKey):
                found[need] = self._tables[need.table].rows.get(need.key)
            elif isinstance(need, RowList):
                is_empty = not self._tables[need.table].rows
                found[need] = [] if is_empty else self.page(need.table, need.query, need.equal)
        return found

    def all(self, table: Table[Row]) -> Collection[Row]:
        return self._tables[table].rows.values()

    def items(self, table: Table[Row]) -> Collection[tuple[TableKey, Row]]:
        return self._tables[table].rows.items()

    def page(
        self,
        table: Table[Row],
        query: RowQuery,
        equal: Sequence[Value] = (),
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        kept: _Rows[Row] = self._tables[table]
        plan, by_key = _plan(table, query), kept.rows
        place, condition = plan.place, plan.condition
        if plan.served_by is not None:
            index = kept.index(plan.served_by)
            begin, entries = plan.begin(equal), index.entries
            if plan.is_in_order:
                places = index.places(begin, after, backwards)
                if condition is None:
                    return [by_key[entries[at][1]] for at in places[:limit]]
                rows = (by_key[entries[at][1]] for at in places)
                return [*islice((row for row in rows if condition.holds(row[place])), limit)]
            near: Iterable[Row] = [by_key[entries[at][1]] for at in index.places(begin)]
        else:
            near = by_key.values()
        equals, wanted = reader_of(table, query.equal), tuple(equal)
        some = [row for row in near if (condition is None or condition.holds(row[place])) and equals(row) == wanted]
        order = self._order(table, query.order)
        some.sort(key=order, reverse=backwards)
        if after:
            upto, last = len(after), _sortable(self._agents, query.order, after)
            some = [row for row in some if (order(row)[:upto] < last if backwards else order(row)[:upto] > last)]
        return some[:limit]

    def find(
        self, table: Table[Row], matches: Sequence[Match], order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        tests = [_test(table, match) for match in matches]
        rows = [row for row in self.all(table) if any(test(row) for test in tests)]
        return sorted(rows, key=self._order(table, order))[:limit]

    def change(self, changed: Mapping[Table[Any], Mapping[TableKey, Any]]) -> None:
        """Take the changes of an append over."""
        for table, rows in changed.items():
            kept, merge = self._tables[table], table.merge
            for key, row in rows.items():
                before = kept.rows.get(key) if merge is not None else None
                kept.set(key, row if before is None or merge is None else merge(before, row))

    def keep_numbers(self, before: "MemoryTables", marks: Mapping[str, str]) -> None:
        """These rows were made from the log again: positions are those of the tables before."""
        for table in (table for table in TABLES if table.position):
            limit = left_before(marks[table.name]) if table.name in marks else None

            def has_left(row: Any, name: str = table.aged_by, limit: int | None = limit) -> bool:
                return limit is not None and bool(getattr(row, name) < limit)

            self._tables[table].keep_numbers(before._tables[table], has_left)

    def _order(self, table: Table[Row], fields: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
        values = reader_of(table, tuple(fields))
        return lambda row: _sortable(self._agents, fields, values(row))


def _place_of(table: Table[Any], condition: Condition | None) -> tuple[int, Condition | None]:
    """Where in a row the field stands that a condition is about."""
    return 0 if condition is None else table.fields.index(condition.field), condition


def _test(table: Table[Row], match: Match) -> Callable[[Row], bool]:
    values, allowed = reader_of(table, tuple(match.one_of)), list(match.one_of.values())
    place, condition = _place_of(table, match.where)

    def test(row: Row) -> bool:
        if condition is not None and not condition.holds(row[place]):
            return False
        if not all(value in given for value, given in zip(values(row), allowed, strict=True)):
            return False
        if match.within is None:
            return True
        name, first, beyond = match.within
        return bool(first <= row[table.fields.index(name)] < beyond)

    return test


def _sortable(agents: Mapping[str, int], fields: Sequence[str], values: Sequence[Value]) -> tuple[Any, ...]:
    """Nothing comes first, as in SQL. Agents are sorted as they came, and one that nobody knows before all."""
    found: list[tuple[bool, Any]] = []
    for name, value in zip(fields, values, strict=False):
        found.append((value is not None, agents.get(str(value), -1) if name == "agent_id" else value))
    return tuple(found)
