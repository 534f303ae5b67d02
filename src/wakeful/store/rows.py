"""Which row changes a fact stands for. Pure, and the same for every backend: live rows and rebuilt rows are equal
because both come from here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    MessageAdmitted,
    ModelCompleted,
    SessionStarted,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
)
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.contracts.spending import WindowKey
from wakeful.ports import Table, TableKey
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.spending import CONCERNED, Hold, HoldKey, KnownSpending, Move, Spending, apply
from wakeful.store.table_changes import TableChanges, needs_of
from wakeful.store.tables import RULES_OF_EVENT
from wakeful.store.tables.row_rules import LogEntry, Need, OpenCall, OpenCost, RowKey, RowList
from wakeful.views.cost import CALL_FACTS, CostTally

_CONCERNED, _CALL_FACTS = frozenset(CONCERNED), frozenset(CALL_FACTS)


class Known(KnownSpending, Protocol):
    """What is stored already, as far as a fact's rows depend on it."""

    @property
    def agent_id(self) -> str: ...

    @property
    def agent_name(self) -> str: ...

    def find(self, needs: Sequence[Need]) -> Mapping[Need, Any]:
        """What the rules of declared tables named beforehand."""
        ...


@dataclass(slots=True)
class Changes:
    """What an append does to the rows."""

    agent_name: str | None = None
    rounds: int = 0
    tokens: TokenUsage | None = None
    last_turn: TokenUsage | None = None
    tables: Mapping[Table[Any], Mapping[TableKey, Any]] = field(default_factory=dict)
    """Rows of declared tables; None: gone."""
    spending: Spending = field(default_factory=Spending)


def changes(facts: Sequence[Fact], after: int, known: Known) -> Changes:
    """The changes for facts that come right after sequence `after`. Raises EventRefused before anything is written."""
    made = Changes()
    needs = needs_of(facts, known.agent_id)
    tables = TableChanges(known.agent_id, known.find(needs) if needs else {})
    made.tables = tables.rows
    for seq, fact in enumerate(facts, after + 1):
        kind = type(fact.event)
        if kind in RULES_OF_EVENT:
            tables.take_in(LogEntry(known.agent_id, made.agent_name or known.agent_name, seq, fact))
        elif needs:
            tables.note(fact)
        rule = _RULES.get(kind)
        if rule is not None:
            rule(made, fact, known)
        if kind in _CONCERNED:
            made.spending.take_in(fact, known)
    return made


def message_of(facts: Iterable[Fact]) -> tuple[Fact, MessageAdmitted] | tuple[None, None]:
    """The message among the facts of an admission, which has one answer and so at most one message."""
    found: tuple[Fact, MessageAdmitted] | tuple[None, None] = (None, None)
    for fact in facts:
        if isinstance(fact.event, MessageAdmitted):
            if found[0] is not None:
                raise EventRefused("two messages in one admission", "Admit each message by itself.")
            found = (fact, fact.event)
    return found


def summary(total: TokenUsage, rounds: int, last_turn: TokenUsage | None) -> AgentTokenUsageSummary:
    """The published form of an agent's usage row."""
    return AgentTokenUsageSummary(total=total, total_model_rounds=rounds, last_turn=last_turn)


def _session_started(made: Changes, fact: Fact, known: Known) -> None:
    assert isinstance(fact.event, SessionStarted)
    made.agent_name = fact.event.agent_name


def _turn_ended(made: Changes, fact: Fact, known: Known) -> None:
    event = fact.event
    made.spending.take_in(fact, known)
    if isinstance(event, TurnCompleted) and event.token_usage is not None:
        made.last_turn = event.token_usage


def _model_completed(made: Changes, fact: Fact, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ModelCompleted)
    made.rounds += 1
    if event.token_usage is not None:
        made.tokens = event.token_usage if made.tokens is None else made.tokens + event.token_usage


_RULES: dict[type, Callable[[Changes, Fact, Known], None]] = {
    SessionStarted: _session_started,
    TurnCompleted: _turn_ended,
    TurnFailed: _turn_ended,
    ModelCompleted: _model_completed,
}


class Book:
    """The rows of one agent, in memory: what the memory store keeps and what a rebuild is made in."""

    def __init__(
        self, agent_id: str, windows: dict[WindowKey, Move], tables: MemoryTables, *, checks_windows: bool = False
    ) -> None:
        self.agent_id = agent_id
        self.agent_name = ""
        self.windows = windows
        """Spend windows; agents share them."""
        self.tables = tables
        """Declared tables; agents share them."""
        self.checks_windows = checks_windows
        self.holds: dict[HoldKey, Hold] = {}
        self.total = TokenUsage()
        self.rounds = 0
        self.last_turn: TokenUsage | None = None
        self._started: dict[OpenCall, dict[str, Any]] = {}
        self._costs_so_far: dict[str, CostTally] = {}

    def find(self, needs: Sequence[Need]) -> dict[Need, Any]:
        return {need: self._found(need) for need in needs}

    def _found(self, need: Need) -> Any:
        match need:
            case RowKey(table, key):
                return self.tables.get(table, key)
            case RowList(table, query, equal):
                return self.tables.page(table, query, equal)
            case OpenCall():
                return self._started.get(need)
            case OpenCost(turn_id):
                return self._costs_so_far.get(turn_id) or CostTally()

    def window(self, key: WindowKey) -> Move | None:
        return self.windows.get(key)

    def hold(self, key: HoldKey) -> Hold | None:
        return self.holds.get(key)

    def holds_of(self, turn_id: str) -> dict[HoldKey, Hold]:
        return {key: hold for key, hold in self.holds.items() if key[0] == turn_id}

    def record(self, facts: Iterable[Fact], made: Changes) -> None:
        """Take the changes over."""
        self.tables.add_agent(self.agent_id)
        if made.agent_name is not None:
            self.agent_name = made.agent_name
        self.tables.change(made.tables)
        apply(self.windows, made.spending.windows)
        for place, hold in made.spending.holds.items():
            if hold is None:
                self.holds.pop(place, None)
            else:
                self.holds[place] = hold
        self.rounds += made.rounds
        if made.tokens is not None:
            self.total += made.tokens
        if made.last_turn is not None:
            self.last_turn = made.last_turn
        for fact in facts:
            kind = type(fact.event)
            if kind in _CALL_FACTS:
                self._costs_so_far.setdefault(fact.turn_id or "", CostTally()).take(fact)
            elif kind in (TurnCompleted, TurnFailed):
                self._costs_so_far.pop(fact.turn_id or "", None)
            # Once a call has its outcome, nobody asks for its arguments again.
            if isinstance(fact.event, ToolStarted):
                self._started[OpenCall(fact.turn_id or "", fact.call_id or "")] = fact.event.safe_args or {}
            elif isinstance(fact.event, ToolResult | ToolFailed):
                self._started.pop(OpenCall(fact.turn_id or "", fact.call_id or ""), None)
