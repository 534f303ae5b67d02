"""What an append does to the declared tables. Pure, and the same for every backend: live rows and rebuilt rows are
equal because both come from here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    AgentCreated,
    LogCheckpointed,
    MessageAdmitted,
    SessionStarted,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.ports.tables import Row, RowQuery, Table, TableKey, Value, reader_of
from wakeful.store.tables import NEEDS_OF_EVENT, RULES_OF_EVENT
from wakeful.store.tables.row_rules import Gone, LogEntry, Need, OpenCall, OpenCost, RowKey, RowList
from wakeful.views.model_calls import CALL_FACTS, CostTally, TurnCost

_CALL_FACTS = frozenset(CALL_FACTS)
_NOTED = _CALL_FACTS | {ToolStarted, ToolResult, ToolFailed}
"""What later facts of the same append may ask for."""
_NAMING = frozenset((SessionStarted, AgentCreated, LogCheckpointed))
_OF_THE_LOG = frozenset((OpenCall, OpenCost))
"""Needs that the log answers, and so do the facts of the append before the one that asks."""


def needs_of(facts: Iterable[Fact], agent_id: str) -> list[Need]:
    """What has to be fetched before the changes of these facts of an agent can be made."""
    found: dict[Need, None] = {}
    for fact in facts:
        event = fact.event
        for needs in NEEDS_OF_EVENT.get(type(event), ()):
            for need in needs(agent_id, fact, event):
                found[need] = None
    return [*found]


class Changes(NamedTuple):
    """What an append does to the rows."""

    rows: Mapping[Table[Any], Mapping[TableKey, Any]]
    """By table and key: whole rows; None: the row is gone."""
    agent_name: str | None
    """What the agent is called from now on; None: as before."""


def changes(
    facts: Sequence[Fact],
    after: int,
    agent_id: str,
    agent_name: str,
    found: Mapping[Need, Any],
    *,
    is_new: bool = True,
) -> Changes:
    """What facts that come right after sequence `after` do, given what they need.

    Raises EventRefused, AlreadyDecided, WindowFull or AlreadyNoticed; then nothing of the append may be written.
    """
    made = TableChanges(agent_id, found)
    renamed: str | None = None
    notes = not _OF_THE_LOG.isdisjoint(map(type, found))
    for seq, fact in enumerate(facts, after + 1):
        event = fact.event
        kind = type(event)
        if kind in RULES_OF_EVENT:
            made.take_in(LogEntry(agent_id, agent_name, seq, fact, is_new))
        if notes and kind in _NOTED:
            made.note(fact)
        if kind in _NAMING:
            assert isinstance(event, SessionStarted | AgentCreated | LogCheckpointed)
            renamed = agent_name = event.agent_name or agent_name
    return Changes(made.rows, renamed)


def message_of(facts: Iterable[Fact]) -> tuple[Fact, MessageAdmitted] | tuple[None, None]:
    """The message among the facts of an admission, which has one answer and so at most one message."""
    found: tuple[Fact, MessageAdmitted] | tuple[None, None] = (None, None)
    for fact in facts:
        if isinstance(fact.event, MessageAdmitted):
            if found[0] is not None:
                raise EventRefused("two messages in one admission", "Admit each message by itself.")
            found = (fact, fact.event)
    return found


class TableChanges:
    """The rows that the facts of one append change, one fact after the other."""

    __slots__ = ("_agent_id", "_asked", "_found", "_there", "rows")

    def __init__(self, agent_id: str, found: Mapping[Need, Any]) -> None:
        self._agent_id = agent_id
        self._found: dict[Any, Any] = {**found}
        """By what was needed. Asked with plain tuples, which are equal to it: rules ask often."""
        self._there = {need.table for need, value in found.items() if value and isinstance(need, RowKey | RowList)}
        """Tables of which rows were found."""
        self._asked: list[Fact] = []
        """Facts about requests to models."""
        self.rows: dict[Table[Any], dict[TableKey, Any]] = {}
        """By table and key: whole rows; None: the row is gone."""

    def take_in(self, entry: LogEntry) -> None:
        """Raises EventRefused or AlreadyDecided; then nothing of the append may be written."""
        event = entry.fact.event
        made: list[tuple[Table[Any], Iterable[tuple[Any, ...]]]] = []
        for table, rule in RULES_OF_EVENT[type(event)]:  # all of them see the rows as they were before this fact
            if changes := rule.change(entry, event, self):
                made.append((table, changes))
        for table, changes in made:
            for changed in changes:
                if isinstance(changed, Gone):
                    self.rows.setdefault(table, {})[changed.key] = None
                else:
                    self._put(table, table.key_of(changed), changed)

    def has_any(self, table: Table[Any]) -> bool:
        return table in self._there or table in self.rows

    def get(self, table: Table[Row], *key: Any) -> Row | None:
        """A row of this agent. Raises KeyError when the rule did not name it beforehand."""
        changed = self.rows.get(table)
        if table.merge is not None:
            stored: Row | None = self._found[table, key]
            return _merged(table, stored, None if changed is None else changed.get(key))
        row: Any = changed[key] if changed is not None and key in changed else self._found[table, key]
        return row if row is not None and row.agent_id == self._agent_id else None

    def list(self, table: Table[Row], query: RowQuery, *equal: Value) -> "list[Row]":
        """Rows of this agent, in the order of the query. Raises KeyError when the rule did not name it beforehand."""
        stored: Sequence[Any] = self._found[table, query, equal]
        changed = self.rows.get(table)
        if not stored and changed is None:
            return []
        found: dict[TableKey, Any] = {table.key_of(row): row for row in stored}
        for key, row in changed.items() if changed is not None else ():
            if row is not None and _is_in(table, query, equal, row):
                found[key] = row
            else:
                found.pop(key, None)
        mine = [row for row in found.values() if row.agent_id == self._agent_id]
        return sorted(mine, key=reader_of(table, query.order))

    def open_call(self, turn_id: str, call_id: str) -> dict[str, Any] | None:
        args: dict[str, Any] | None = self._found[OpenCall(turn_id, call_id)]
        return args

    def cost_so_far(self, turn_id: str) -> TurnCost:
        tally: CostTally = self._found[OpenCost(turn_id)]
        return tally.total([fact for fact in self._asked if fact.turn_id == turn_id])

    def _put(self, table: Table[Any], key: TableKey, row: Any) -> None:
        if table.merge is not None:
            changed = self.rows.setdefault(table, {})
            changed[key] = _merged(table, changed.get(key), row)
            return
        there = self._found.get((table, key))
        if there is not None and there.agent_id != self._agent_id:
            named = ", ".join(map(str, key))
            raise EventRefused(f"{named} in {table.name} belongs to agent {there.agent_id}", "Use a new id.")
        self.rows.setdefault(table, {})[key] = row

    def note(self, fact: Fact) -> None:
        """A later fact of the same append sees what this one says of its call, and of requests to models."""
        if type(fact.event) in _CALL_FACTS:
            self._asked.append(fact)
        call = OpenCall(fact.turn_id or "", fact.call_id or "")
        if call not in self._found:
            return
        if isinstance(fact.event, ToolStarted):
            self._found[call] = fact.event.safe_args or {}
        elif isinstance(fact.event, ToolResult | ToolFailed):
            self._found[call] = None


def _merged(table: Table[Row], one: Row | None, other: Row | None) -> Row | None:
    if one is None or other is None or table.merge is None:
        return other if one is None else one
    return table.merge(one, other)


def _is_in(table: Table[Row], query: RowQuery, equal: tuple[Value, ...], row: Row) -> bool:
    if reader_of(table, query.equal)(row) != equal:
        return False
    return query.where is None or query.where.holds(getattr(row, query.where.field))
