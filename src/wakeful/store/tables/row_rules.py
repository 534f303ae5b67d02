"""What a rule is: a pure function from a fact, and from the rows that it named beforehand, to the rows that change.

A backend asks `needs` first, fetches what is named inside its transaction (at once or with an await), and then asks
`change`. A rule sees rows of its own agent only: rows of one key follow from one agent's log.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.ports.tables import Row, RowQuery, Table, TableKey, Value
from wakeful.views.model_calls import TurnCost


class RowKey(NamedTuple):
    """A row that a rule reads."""

    table: Table[Any]
    key: TableKey


class RowList(NamedTuple):
    """Rows of a query that a rule reads: all that agree in these values."""

    table: Table[Any]
    query: RowQuery
    equal: tuple[Value, ...]


class OpenCall(NamedTuple):
    """What `tool.started` shows of the arguments of a call that has no outcome yet: the log knows it."""

    turn_id: str
    call_id: str


class OpenCost(NamedTuple):
    """What the log says of an open turn's requests to models, as a `CostTally`."""

    turn_id: str


Need: TypeAlias = RowKey | RowList | OpenCall | OpenCost


class LogEntry(NamedTuple):
    """A fact at its place in an agent's log."""

    agent_id: str
    agent_name: str
    seq: int
    fact: Fact
    is_new: bool = True
    """False where the log is read again: it was let in when it was written."""


class AtHand(Protocol):
    """What a rule named beforehand, with what earlier facts of the same append made of it, and before its own fact."""

    def has_any(self, table: Table[Any]) -> bool:
        """Is there a row of this table at hand? Most turns have none of what a rule looks for in every round."""
        ...

    def get(self, table: Table[Row], *key: Any) -> Row | None: ...

    def list(self, table: Table[Row], query: RowQuery, *equal: Value) -> Sequence[Row]: ...

    def open_call(self, turn_id: str, call_id: str) -> dict[str, Any] | None: ...

    def cost_so_far(self, turn_id: str) -> TurnCost: ...


class Gone(NamedTuple):
    """The row of this key is no more."""

    key: TableKey


Change: TypeAlias = Callable[[LogEntry, Any, AtHand], Iterable[tuple[Any, ...]]]
"""From an entry, its event and what is at hand to changed rows: whole ones, or `Gone`."""


Needs: TypeAlias = Callable[[str, Fact, Any], Sequence[Need]]
"""From the id of an agent, a fact of its log and the fact's event to what is read."""


class RowRule(NamedTuple):
    """What one kind of event does to one table."""

    change: Change
    needs: tuple[Needs, ...] = ()
    """Rules of several tables may name the same function: it is asked once."""


Rules: TypeAlias = Mapping[type, RowRule]
"""By class of event. What a table has no rule for costs it nothing."""


def joined(*several: Rules) -> Rules:
    """Rules of one table from several modules. Where two are about the same event, both hold, the first one first."""
    found: dict[type, RowRule] = {}
    for rules in several:
        for event, rule in rules.items():
            known = found.get(event)
            found[event] = rule if known is None else _both(known, rule)
    return found


def _both(first: RowRule, second: RowRule) -> RowRule:
    def change(entry: LogEntry, event: Any, rows: AtHand) -> list[tuple[Any, ...]]:
        return [*first.change(entry, event, rows), *second.change(entry, event, rows)]

    return RowRule(change, tuple(dict.fromkeys((*first.needs, *second.needs))))
