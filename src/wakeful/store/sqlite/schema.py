"""The SQL that makes a declared table. Migrations hold it as frozen text; a test compares the two."""

from typing import Any

from wakeful.ports.tables import Column, ColumnKind, Condition, Table, TableIndex

_TYPES: dict[ColumnKind, str] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "boolean": "INTEGER",
    "json": "TEXT",
    "list": "TEXT",
    "agent": "INTEGER",
}


def create(table: Table[Any]) -> list[str]:
    """The statements for a table and its indexes: the text of a new migration."""
    lines = [_column(table, column) for column in table.columns]
    if len(table.key) > 1 and not table.position:
        lines.append(f"PRIMARY KEY ({columns_of(table, table.key)})")
    body = ",\n    ".join(lines)
    kind = "STRICT" if table.numbered or table.position else "STRICT, WITHOUT ROWID"
    made = f"CREATE TABLE {table.name} (\n    {body}\n) {kind}"
    return [made, *(_index(table, index) for index in table.indexes)]


def columns_of(table: Table[Any], fields: tuple[str, ...]) -> str:
    return ", ".join(table.column[name].name for name in fields)


def condition(table: Table[Any], where: Condition, prefix: str = "") -> str:
    """As SQL, with its value written out: SQLite uses a partial index only where it can see that."""
    name = f"{prefix}{table.column[where.field].name}"
    if where.test in ("IS NULL", "IS NOT NULL"):
        return f"{name} {where.test}"
    value = where.value if isinstance(where.value, int) else "'" + str(where.value).replace("'", "''") + "'"
    return f"{name} {where.test} {value}"


def _column(table: Table[Any], column: Column) -> str:
    need = "" if column.optional else " NOT NULL"
    key = " PRIMARY KEY" if (column.field,) == ((table.position,) if table.position else table.key) else ""
    return f"{column.name} {_TYPES[column.kind]}{need}{key}"


def _index(table: Table[Any], index: TableIndex) -> str:
    unique = "UNIQUE " if index.unique else ""
    where = "" if index.where is None else f" WHERE {condition(table, index.where)}"
    return f"CREATE {unique}INDEX {index.name} ON {table.name} ({columns_of(table, index.fields)}){where}"
