"""What an append does to the declared tables. Pure, and the same for every backend: live rows and rebuilt rows are
equal because both come from here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import ToolFailed, ToolResult, ToolStarted
from wakeful.ports.tables import Row, Table, TableKey
from wakeful.store.tables import RULES_OF_EVENT
from wakeful.store.tables.row_rules import Gone, LogEntry, Need, OpenCall, RowKey


def needs_of(facts: Iterable[Fact]) -> list[Need]:
    """What has to be fetched before the changes of these facts can be made."""
    found: list[Need] = []
    for fact in facts:
        for _, rule in RULES_OF_EVENT.get(type(fact.event), ()):
            found += rule.needs(fact, fact.event)
    return found


class TableChanges:
    """The rows that the facts of one append change, one fact after the other."""

    __slots__ = ("_agent_id", "_found", "rows")

    def __init__(self, agent_id: str, found: Mapping[Need, Any]) -> None:
        self._agent_id = agent_id
        self._found: dict[Need, Any] = {**found}
        self.rows: dict[Table[Any], dict[TableKey, Any]] = {}
        """By table and key: whole rows; None: the row is gone."""

    def take_in(self, entry: LogEntry) -> None:
        """Raises EventRefused or AlreadyDecided; then nothing of the append may be written."""
        event = entry.fact.event
        for table, rule in RULES_OF_EVENT.get(type(event), ()):
            for changed in rule.change(entry, event, self):
                if isinstance(changed, Gone):
                    self.rows.setdefault(table, {})[changed.key] = None
                else:
                    self._put(table, table.key_of(changed), changed)
        if self._found:
            self._note_call(entry.fact)

    def get(self, table: Table[Row], *key: Any) -> Row | None:
        """A row of this agent. Raises KeyError when the rule did not name it beforehand."""
        changed = self.rows.get(table)
        row: Any = changed[key] if changed is not None and key in changed else self._found[RowKey(table, key)]
        return row if row is not None and row.agent_id == self._agent_id else None

    def open_call(self, turn_id: str, call_id: str) -> dict[str, Any] | None:
        args: dict[str, Any] | None = self._found[OpenCall(turn_id, call_id)]
        return args

    def _put(self, table: Table[Any], key: TableKey, row: Any) -> None:
        there = self._found.get(RowKey(table, key))
        if there is not None and there.agent_id != self._agent_id:
            named = ", ".join(map(str, key))
            raise EventRefused(f"{named} in {table.name} belongs to agent {there.agent_id}", "Use a new id.")
        self.rows.setdefault(table, {})[key] = row

    def _note_call(self, fact: Fact) -> None:
        """A later fact of the same append sees what this one says of its call."""
        call = OpenCall(fact.turn_id or "", fact.call_id or "")
        if call not in self._found:
            return
        if isinstance(fact.event, ToolStarted):
            self._found[call] = fact.event.safe_args or {}
        elif isinstance(fact.event, ToolResult | ToolFailed):
            self._found[call] = None
