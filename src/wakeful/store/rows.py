"""The rows of one agent, in memory: what the memory store keeps, and what a rebuild is made in."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ToolFailed, ToolResult, ToolStarted, TurnCompleted
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.table_changes import Changes, changes, needs_of
from wakeful.store.tables.row_rules import OpenCall, OpenCost
from wakeful.views.model_calls import CALL_FACTS, CostTally

_CALL_FACTS = frozenset(CALL_FACTS)


class Book:
    """An agent's name, and what its open turns are about. Rows are in tables, which agents share."""

    def __init__(self, agent_id: str, tables: MemoryTables) -> None:
        self.agent_id = agent_id
        self.agent_name = ""
        self.tables = tables
        self._started: dict[OpenCall, dict[str, Any]] = {}
        self._costs_so_far: dict[str, CostTally] = {}

    def changes(self, facts: Sequence[Fact], after: int, *, is_new: bool = True) -> Changes:
        """What these facts would do. Raises what `table_changes.changes` raises."""
        needs = needs_of(facts, self.agent_id)
        found = self.tables.fetch(needs)
        for need in needs:
            if isinstance(need, OpenCall):
                found[need] = self._started.get(need)
            elif isinstance(need, OpenCost):
                found[need] = self._costs_so_far.get(need.turn_id) or CostTally()
        return changes(facts, after, self.agent_id, self.agent_name, found, is_new=is_new)

    def read_again(self, facts: Sequence[Fact], after: int) -> Changes:
        """Take in facts of the log that come right after sequence `after`."""
        made = self.changes(facts, after, is_new=False)
        self.record(facts, made)
        return made

    def record(self, facts: Sequence[Fact], made: Changes) -> None:
        """Take the changes over."""
        self.tables.add_agent(self.agent_id)
        if made.agent_name is not None:
            self.agent_name = made.agent_name
        self.tables.change(made.rows)
        for fact in facts:
            kind = type(fact.event)
            if kind in _CALL_FACTS:
                turn_id = fact.turn_id or ""
                if (tally := self._costs_so_far.get(turn_id)) is None:
                    tally = self._costs_so_far[turn_id] = CostTally()
                tally.take(fact)
            elif kind is TurnCompleted:  # one that failed may be tried again, and costs what it cost before as well
                self._costs_so_far.pop(fact.turn_id or "", None)
            # Once a call has its outcome, nobody asks for its arguments again.
            elif isinstance(fact.event, ToolStarted):
                self._started[OpenCall(fact.turn_id or "", fact.call_id or "")] = fact.event.safe_args or {}
            elif isinstance(fact.event, ToolResult | ToolFailed):
                self._started.pop(OpenCall(fact.turn_id or "", fact.call_id or ""), None)
