"""Rows that rules read, kept from one append to the next: as long as nobody else writes to the database they are what
it holds. Everything this process writes goes through `change`; when somebody else has written, or a transaction was
rolled back, all of it is forgotten (`Log.began`).
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from wakeful.ports.mailbox import BUSY_THREADS
from wakeful.ports.runtime_agents import RUNTIME_AGENTS
from wakeful.ports.tables import RowQuery, Table, TableKey, reader_of
from wakeful.ports.threads import THREADS
from wakeful.store.tables.row_rules import Need, RowKey, RowList

MOST = 32
"""At most so many rows and lists a turn are kept."""
MOST_OF_THREADS = 1_024
_OF_THREADS: Final = ""
"""Stands in for a turn: rows that every message to a thread changes."""
UNKNOWN: Final = object()


class RowCache:
    """Of turns that are run here, and of threads that get messages."""

    def __init__(self) -> None:
        self._known: dict[Need, Any] = {}
        self._of_turn: dict[str, set[Need]] = {}
        """What was kept for the sake of each turn."""
        self._lists: dict[Table[Any], dict[RowQuery, set[RowList]]] = {}
        """Of which tables and queries lists are kept, and which."""

    def get(self, need: Need) -> Any:
        """A row, None where there is none, or a list in any order; `UNKNOWN`: look it up."""
        return self._known.get(need, UNKNOWN)

    def keep(self, turn_id: str, found: Mapping[Need, Any]) -> None:
        """What was read for the facts of a turn, before they change it."""
        needs = self._of_turn.setdefault(turn_id, set())
        for need, value in found.items():
            if need in self._known or len(needs) >= MOST or not isinstance(need, RowKey | RowList):
                continue
            if need.table.merge is None:  # others write to those, and they are read under the lock
                self._known[need] = value
                needs.add(need)
                if isinstance(need, RowList):
                    self._lists.setdefault(need.table, {}).setdefault(need.query, set()).add(need)

    def keep_threads(self, found: Mapping[Need, Any]) -> None:
        """What an admission read: the next message to the same thread needs it again."""
        needs = self._of_turn.setdefault(_OF_THREADS, set())
        if len(needs) >= MOST_OF_THREADS:
            self._drop(needs)
            needs.clear()
        for need, value in found.items():
            is_shared = isinstance(need, RowKey) and need.table in (THREADS, BUSY_THREADS, RUNTIME_AGENTS)
            if is_shared and need not in self._known:
                self._known[need] = value
                needs.add(need)

    def change(
        self,
        changed: Mapping[Table[Any], Mapping[TableKey, Any]],
        found: Mapping[Need, Any],
        turn_id: str | None = None,
        new: Container[Table[Any]] = (),
    ) -> None:
        """An append was written, given these rows. New ones are kept if it is one of this turn, which is run here.
        `new`: tables that had no row of these keys."""
        for table, rows in changed.items():
            if table.merge is not None or table.position:  # no rule reads those
                continue
            lists = self._lists.get(table)
            for key, row in rows.items():
                need = RowKey(table, key)
                before = found.get(need, None if table in new else UNKNOWN)
                if need in self._known:
                    self._known[need] = row
                elif turn_id is not None:
                    self._keep_new(turn_id, need, row)
                for query, kept in lists.items() if lists is not None else ():
                    self._change_lists(query, kept, need, before, row)

    def _keep_new(self, turn_id: str, need: RowKey, row: Any) -> None:
        needs = self._of_turn.setdefault(turn_id, set())
        if len(needs) < MOST:
            self._known[need] = row
            needs.add(need)

    def _change_lists(self, query: RowQuery, kept: set[RowList], need: RowKey, before: Any, row: Any) -> None:
        table, key = need
        if not kept:
            return
        if before is UNKNOWN:  # it may have been in any of them
            self._drop([*kept])
            return
        equal = reader_of(table, query.equal)
        for list_need in {RowList(table, query, equal(each)) for each in (before, row) if each is not None}:
            known = self._known.get(list_need)
            if known is None:
                continue
            rows = [each for each in known if table.key_of(each) != key]
            where = query.where
            is_there = row is not None and equal(row) == list_need.equal
            if is_there and (where is None or where.holds(getattr(row, where.field))):
                rows.append(row)
            self._known[list_need] = rows

    def forget(self, turn_id: str) -> None:
        self._drop(self._of_turn.pop(turn_id, ()))

    def clear(self) -> None:
        self._known.clear()
        self._of_turn.clear()
        self._lists.clear()

    def _drop(self, needs: Iterable[Need]) -> None:
        for need in needs:
            self._known.pop(need, None)
            if isinstance(need, RowList):
                self._lists[need.table][need.query].discard(need)
