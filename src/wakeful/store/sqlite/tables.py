"""The declared tables in a database: statements are made from the declarations, once for each of them."""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, lru_cache, partial
from operator import itemgetter
from typing import Any

from wakeful.ports.tables import ColumnKind, Match, Row, RowQuery, Table, TableKey, Value
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.schema import columns_of, condition

_AGENT = "(SELECT id FROM agents WHERE agent_id = ?)"
_DECODE: dict[ColumnKind, Callable[[Any], Any]] = {
    "boolean": bool,
    "json": json.loads,
    "list": lambda text: tuple(json.loads(text)),
}
_dumps = partial(json.dumps, separators=(",", ":"))
_ENCODE: dict[ColumnKind, Callable[[Any], Any]] = {"json": _dumps, "list": _dumps}


class SqliteTables:
    """Reads and writes rows; decides nothing."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def get(self, table: Table[Row], key: TableKey) -> Row | None:
        made = _statements(table)
        found = self._sql.one(made.get, key)
        return None if found is None else made.row(found)

    def page(
        self,
        table: Table[Row],
        query: RowQuery,
        equal: Sequence[Value] = (),
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        sql = query_sql(table, query, len(after), limit is not None, backwards)
        given = (*equal, *after, *(() if limit is None else (limit,)))
        return [*map(_statements(table).row, self._sql.all(sql, given))]

    def find(
        self, table: Table[Row], matches: Sequence[Match], order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        sql, values = find_sql(table, matches, order)
        return [*map(_statements(table).row, self._sql.all(sql, (*values, -1 if limit is None else limit)))]

    def count(self, table: Table[Any]) -> int:
        ((count,),) = self._sql.all(f"SELECT count(*) FROM {table.name}")
        return int(count)

    def write(
        self,
        agent: int,
        changed: Mapping[Table[Any], Mapping[TableKey, Any]],
        new: Container[Table[Any]] = (),
    ) -> None:
        """What an append of this agent changes. `new`: tables in which no row of these keys can be. Raises
        apsw.ConstraintError where one is."""
        for table, rows in changed.items():
            made = _statements(table)
            puts: list[list[Any]] = []
            for key, row in rows.items():
                if row is None:
                    self._sql.do(made.drop, key)
                elif table.merge is not None and (before := self.get(table, key)) is not None:
                    puts.append(made.values(agent, table.merge(before, row)))
                else:
                    puts.append(made.values(agent, row))
            if puts:
                self._sql.many(made.add if table in new else made.put, puts)

    def page_by_key(self, table: Table[Row], after: TableKey, limit: int) -> list[Row]:
        """The next rows of the whole table, in the order of their keys."""
        return self.page(table, RowQuery(table.key, served_by="key"), (), after, limit)

    def replace(self, table: Table[Row], key: TableKey, row: Row | None, agent: int) -> None:
        """Put this row in the place of whatever has its key, with the fields that do not change, too. A number that the
        store gave it stays."""
        made = _statements(table)
        if row is None or not table.position:
            self._sql.do(made.drop, key)
        if row is not None:
            self._sql.do(made.put, made.values(agent, row))


class _TableStatements:
    """What is asked of one table."""

    def __init__(self, table: Table[Any]) -> None:
        columns, fields = table.columns, table.fields
        self._table = table
        self.get = f"{self.select()} WHERE {_equal(table, table.key)}"
        self.drop = f"DELETE FROM {table.name} AS t WHERE {_equal(table, table.key)}"
        self.add = f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(table.columns))})"
        self.put = _put(table)
        self._make: Callable[[Sequence[Any]], Any] = table.row._make
        self._in_order = itemgetter(*(fields.index(column.field) for column in columns))
        kinds = [column.kind for column in columns]
        self.has_agent = "agent" in kinds
        self._agent = kinds.index("agent") if self.has_agent else 0
        self._position = next((at for at, one in enumerate(columns) if one.field == table.position), None)
        self._encoded = [(place, _ENCODE[kind]) for place, kind in enumerate(kinds) if kind in _ENCODE]
        kinds = [table.column[name].kind for name in fields]
        self._decoded = [(place, _DECODE[kind]) for place, kind in enumerate(kinds) if kind in _DECODE]

    def select(self, index: str = "") -> str:
        """With the name of an index: SQLite uses this one, whatever else it would choose."""
        return self.select_from(f"{self._table.name} t{f' INDEXED BY {index}' if index else ''}", "t")

    def select_from(self, source: str, alias: str) -> str:
        columns = (self._table.column[name] for name in self._table.fields)
        names = ("a.agent_id" if column.kind == "agent" else f"{alias}.{column.name}" for column in columns)
        joined = f" JOIN agents a ON a.id = {alias}.agent" if "agent_id" in self._table.column else ""
        return f"SELECT {', '.join(names)} FROM {source}{joined}"

    def row(self, found: tuple[Any, ...]) -> Any:
        if not self._decoded:
            return self._make(found)
        values = list(found)
        for place, decode in self._decoded:
            if values[place] is not None:
                values[place] = decode(values[place])
        return self._make(values)

    def values(self, agent: int, row: Any) -> list[Any]:
        values = [*self._in_order(row)]
        if self.has_agent:
            values[self._agent] = agent
        if self._position is not None:
            values[self._position] = None
        for place, encode in self._encoded:
            if values[place] is not None:
                values[place] = encode(values[place])
        return values


@cache
def _statements(table: Table[Any]) -> _TableStatements:
    return _TableStatements(table)


@lru_cache(maxsize=256)
def query_sql(
    table: Table[Any], query: RowQuery, after: int = 0, with_limit: bool = False, backwards: bool = False
) -> str:
    """The statement of a query. Its values: those of `equal`, so many of the row before the page, and the limit."""
    which = [_equal(table, query.equal)] if query.equal else []
    if query.where is not None:
        which.append(condition(table, query.where, "t."))
    if after:
        names = ", ".join(_named(table, name) for name in query.order[:after])
        marks = ", ".join(_mark(table, name) for name in query.order[:after])
        which.append(f"({names}) {'<' if backwards else '>'} ({marks})")
    where = f" WHERE {' AND '.join(which)}" if which else ""
    order = _ordered(table, query.order, backwards)
    index = query.served_by if query.served_by != "key" else ""
    return f"{_statements(table).select(index)}{where} ORDER BY {order}{' LIMIT ?' if with_limit else ''}"


def find_sql(table: Table[Any], matches: Sequence[Match], order: Sequence[str]) -> tuple[str, list[Value]]:
    """The statement that finds what any of these means, each by its own index; and its values but for the limit."""
    groups: dict[str, list[Match]] = {}
    for match in matches:
        groups.setdefault(match.served_by, []).append(match)
    parts, values = list[str](), list[Value]()
    for index, group in groups.items():
        which = [_match(table, match) for match in group]
        values += [value for _, given in which for value in given]
        by = f" INDEXED BY {index}" if index else ""
        parts.append(f"SELECT * FROM {table.name} AS t{by} WHERE {' OR '.join(sql for sql, _ in which)}")
    select = _statements(table).select_from(f"({' UNION '.join(parts)}) found", "found")
    ordered = ", ".join(f"found.{table.column[name].name}" for name in order)
    return f"{select} ORDER BY {ordered} LIMIT ?", values


def _put(table: Table[Any]) -> str:
    values = ", ".join("?" * len(table.columns))
    kept = {*table.key, *table.fixed, table.position}
    changed = ", ".join(f"{one.name} = excluded.{one.name}" for one in table.columns if one.field not in kept)
    if not changed:
        return f"INSERT OR REPLACE INTO {table.name} VALUES ({values})"
    return (
        f"INSERT INTO {table.name} VALUES ({values})"
        f" ON CONFLICT ({columns_of(table, table.key)}) DO UPDATE SET {changed}"
    )


def _named(table: Table[Any], name: str) -> str:
    return f"t.{table.column[name].name}"


def _mark(table: Table[Any], name: str) -> str:
    return _AGENT if table.column[name].kind == "agent" else "?"


def _equal(table: Table[Any], fields: Sequence[str]) -> str:
    return " AND ".join(f"{_named(table, name)} = {_mark(table, name)}" for name in fields)


def _ordered(table: Table[Any], fields: Sequence[str], backwards: bool) -> str:
    return ", ".join(f"{_named(table, name)}{' DESC' if backwards else ''}" for name in fields)


def _match(table: Table[Any], match: Match) -> tuple[str, list[Value]]:
    parts, values = list[str](), list[Value]()
    for name, given in match.one_of.items():
        parts.append(f"{_named(table, name)} IN ({', '.join([_mark(table, name)] * len(given))})")
        values += given
    if match.within is not None:
        name, first, beyond = match.within
        parts.append(f"{_named(table, name)} >= ? AND {_named(table, name)} < ?")
        values += [first, beyond]
    if match.where is not None:
        parts.append(condition(table, match.where, "t."))
    return f"({' AND '.join(parts) or 'TRUE'})", values
