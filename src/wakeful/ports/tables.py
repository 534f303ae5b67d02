"""Tables as data: a table of rows that follow from facts is declared once, and every backend works from that.

A declaration is a row type with a name, a key, indexes and queries. Memory and SQLite create, write, read, page and
rebuild the table from it. What facts do to its rows is said by pure rules in `store.tables`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

Row = TypeVar("Row", bound=tuple[Any, ...])
Value: TypeAlias = str | int | None
TableKey: TypeAlias = tuple[Any, ...]
ColumnKind: TypeAlias = Literal["text", "integer", "boolean", "json", "list", "agent"]
"""list: JSON that is read back as a tuple. agent: the id of the agent whose log the row follows from; SQLite stores its
number."""


class Condition(NamedTuple):
    """Which rows a partial index holds, or a query shows."""

    field: str
    test: Literal["=", "<>", "IS NULL", "IS NOT NULL"]
    value: Value = None

    def holds(self, value: Value) -> bool:
        match self.test:
            case "=":
                return value is not None and value == self.value
            case "<>":
                return value is not None and value != self.value
            case "IS NULL":
                return value is None
            case "IS NOT NULL":
                return value is not None


class TableIndex(NamedTuple):
    """What rows are found by besides their key."""

    name: str
    fields: tuple[str, ...]
    where: Condition | None = None
    """Only these rows are in it."""
    unique: bool = False


class RowQuery(NamedTuple):
    """A way to read several rows, in order: all that agree in some fields."""

    order: tuple[str, ...]
    """No two rows may agree in all of these and in `equal`. `agent_id` stands for the order in which agents came."""
    equal: tuple[str, ...] = ()
    """Fields whose values the reader gives."""
    where: Condition | None = None
    served_by: str = ""
    """What serves it: the name of an index, or `key`. Empty: the whole table is read, because of `few`."""
    few: str = ""
    """Why the table stays so small that reading all of it costs nothing."""


class Match(NamedTuple):
    """Rows that a reader looks for: each field is one of these values, and one may lie in a range."""

    one_of: Mapping[str, Sequence[Value]]
    within: tuple[str, Any, Any] | None = None
    """A field, the first value, and the first value that is too large."""
    where: Condition | None = None
    served_by: str = ""
    """The name of an index; empty: the key."""


class Column(NamedTuple):
    """A field of the row as it is stored."""

    name: str
    field: str
    kind: ColumnKind
    optional: bool


@dataclass(eq=False, frozen=True)
class Table(Generic[Row]):
    """A declaration. Columns follow from the types of the row's fields."""

    name: str
    row: type[Row]
    """A NamedTuple. One of its fields is `agent_id`, unless rows are merged."""
    key: tuple[str, ...]
    indexes: tuple[TableIndex, ...] = ()
    queries: tuple[RowQuery, ...] = ()
    """Every way in which several rows are read. A test looks at the plan of each."""
    order: tuple[str, ...] = ()
    """Fields in the order of their columns, where that is not the order of the fields."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Fields whose column has another name."""
    fixed: tuple[str, ...] = ()
    """Fields that stay what they were when the row was first written: no index on them is touched again."""
    merge: Callable[[Row, Row], Row] | None = None
    """Rows follow from the logs of several agents: what a rule gives is merged into what is there, and it comes to the
    same whichever log is read first."""
    numbered: bool = False
    """The rows have numbers, and indexes hold these instead of the key: pays where a table has many indexes."""

    position: str = ""
    """A field that the store fills: the rows of all agents are numbered in the order in which they were committed. A
    row keeps its number for life, and no number is given twice. Such a table has a unique index on its key."""
    aged_by: str = ""
    """The field with the time of a row, in a table whose oldest rows leave by age: a rebuild brings back none of them
    (`RetentionStore.expire_rows`)."""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return tuple(hints_of(self.row))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """In the order of the table."""
        hints = hints_of(self.row)
        return tuple(_column(name, hints[name], self.renamed.get(name)) for name in self.order or self.fields)

    @cached_property
    def column(self) -> Mapping[str, Column]:
        """By field."""
        return {column.field: column for column in self.columns}

    def values_of(self, row: Row, fields: Sequence[str]) -> tuple[Any, ...]:
        return reader_of(self, tuple(fields))(row)

    def unnumbered(self, row: Row) -> Row:
        """The row without what the store fills: what follows from its fact."""
        if not self.position:
            return row
        made: Row = row._replace(**{self.position: 0})  # type: ignore[attr-defined]
        return made

    @cached_property
    def key_of(self) -> Callable[[Row], TableKey]:
        return reader_of(self, self.key)


@cache
def reader_of(table: Table[Row], fields: tuple[str, ...]) -> Callable[[Row], tuple[Any, ...]]:
    """Reads the values of these fields from a row. Made once for each table and its fields."""
    places = [table.fields.index(name) for name in fields]
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))  # of one field or none, a tuple all the same


def _column(name: str, hint: Any, renamed: str | None) -> Column:
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if name == "agent_id":
        return Column(renamed or "agent", name, "agent", optional)
    return Column(renamed or name, name, _kind(hint), optional)


def _kind(hint: Any) -> ColumnKind:
    if get_origin(hint) is Literal:
        hint = type(get_args(hint)[0])
    simple: dict[Any, ColumnKind] = {str: "text", int: "integer", bool: "boolean"}
    if hint in simple:
        return simple[hint]
    return "list" if get_origin(hint) is tuple else "json"


class Rows(Protocol):
    """Reads the rows of every table."""

    async def count_rows(self, table: Table[Any]) -> int:
        """How many there are. Reads the whole of an index."""
        ...

    async def get_row(self, table: Table[Row], *key: Value) -> Row | None: ...

    async def list_rows(
        self,
        table: Table[Row],
        query: RowQuery,
        *equal: Value,
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        """The rows of a query, in its order or backwards. `equal` gives the values of its `equal` fields; `after`
        gives those of its `order` fields in the last row of the page before; given only some of them, everything that
        agrees with that row in these is passed over."""
        ...

    async def find_rows(
        self, table: Table[Row], matches: Sequence[Match], *, order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        """Rows that are meant by any of these, in order."""
        ...
