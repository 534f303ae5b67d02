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
    Terminal,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.contracts.spending import WindowKey
from wakeful.ports import Table, TableKey, TurnRow, TurnState
from wakeful.store.encoding import OUTSIDER
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.spending import CONCERNED, Hold, HoldKey, KnownSpending, Move, Spending, apply
from wakeful.store.table_changes import TableChanges, needs_of
from wakeful.store.tables import RULES_OF_EVENT
from wakeful.store.tables.row_rules import LogEntry, Need, OpenCall, RowKey, RowList
from wakeful.views.cost import CALL_FACTS, CostTally, TurnCost

_CONCERNED, _CALL_FACTS = frozenset(CONCERNED), frozenset(CALL_FACTS)


class Known(KnownSpending, Protocol):
    """What is stored already, as far as a fact's rows depend on it."""

    @property
    def agent_id(self) -> str: ...

    @property
    def agent_name(self) -> str: ...

    def has_turn(self, turn_id: str) -> bool: ...

    def turn(self, turn_id: str) -> TurnRow | None: ...

    def cost_so_far(self, turn_id: str) -> CostTally:
        """What the log says of an open turn's requests to models."""
        ...

    def find(self, needs: Sequence[Need]) -> Mapping[Need, Any]:
        """What the rules of declared tables named beforehand."""
        ...


@dataclass(slots=True)
class Changes:
    """What an append does to the rows."""

    agent_name: str | None = None
    turns: dict[str, TurnRow] = field(default_factory=dict)
    """Whole rows, new or changed."""
    last_seq: dict[str, int] = field(default_factory=dict)
    """Newest event, for every turn that an outsider wrote to: the owner's own would dirty a page with each append."""
    heard: dict[str, int] = field(default_factory=dict)
    """Newest outsider's event, for every turn that got one."""
    rounds: int = 0
    tokens: TokenUsage | None = None
    last_turn: TokenUsage | None = None
    tables: Mapping[Table[Any], Mapping[TableKey, Any]] = field(default_factory=dict)
    """Rows of declared tables; None: gone."""
    spending: Spending = field(default_factory=Spending)
    asked: dict[str, list[Fact]] = field(default_factory=dict)
    """Facts about requests to models, by turn."""
    costs: dict[str, TurnCost] = field(default_factory=dict)
    """What the requests of turns that ended come to."""


def changes(facts: Sequence[Fact], writer: int, after: int, known: Known) -> Changes:
    """The changes for facts that come right after sequence `after`. Raises EventRefused before anything is written."""
    made = Changes()
    newest: dict[str, int] = {}
    needs = needs_of(facts, known.agent_id)
    tables = TableChanges(known.agent_id, known.find(needs) if needs else {})
    made.tables = tables.rows
    for seq, fact in enumerate(facts, after + 1):
        turn_id, kind = fact.turn_id, type(fact.event)
        rule = _RULES.get(kind)
        if rule is not None:
            rule(made, fact, seq, known)
        if needs or kind in RULES_OF_EVENT:
            tables.take_in(LogEntry(known.agent_id, made.agent_name or known.agent_name, seq, fact))
        if kind in _CONCERNED:
            made.spending.take_in(fact, known)
        if kind in _CALL_FACTS:
            made.asked.setdefault(turn_id or "", []).append(fact)
        if turn_id is not None:
            if turn_id not in newest and not (turn_id in made.turns or known.has_turn(turn_id)):
                raise EventRefused(
                    f"{fact.event.kind} names turn {turn_id}, which nothing has opened",
                    "Admit its message, or start it with queued ones, first.",
                )
            newest[turn_id] = seq
            if writer == OUTSIDER:
                made.heard[turn_id] = made.last_seq[turn_id] = seq
    for turn_id, row in made.turns.items():
        made.turns[turn_id] = row._replace(last_seq=newest[turn_id])
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


def not_ours(row: TurnRow) -> EventRefused:
    return EventRefused(f"turn {row.turn_id} belongs to agent {row.agent_id}", "Give the message a new turn id.")


def summary(total: TokenUsage, rounds: int, last_turn: TokenUsage | None) -> AgentTokenUsageSummary:
    """The published form of an agent's usage row."""
    return AgentTokenUsageSummary(total=total, total_model_rounds=rounds, last_turn=last_turn)


def _session_started(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    assert isinstance(fact.event, SessionStarted)
    made.agent_name = fact.event.agent_name


def _message_admitted(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, MessageAdmitted)
    turn_id = fact.turn_id
    if turn_id is None:
        return  # it waits in its thread's queue, and the turn that takes it is opened by its start
    if turn_id in made.turns or known.turn(turn_id) is not None:
        return  # a further message of the same turn: its owner is given it, the row stays the first one's
    opened = _opened(made, fact, seq, known, event.prompt_preview)
    made.turns[turn_id] = opened._replace(key=event.key, fingerprint=event.fingerprint)


def _opened(made: Changes, fact: Fact, seq: int, known: Known, preview: str) -> TurnRow:
    """The row of a turn that begins with this fact."""
    return TurnRow(
        turn_id=fact.turn_id or "",
        agent_id=known.agent_id,
        agent_name=made.agent_name if made.agent_name is not None else known.agent_name,
        thread_id=fact.thread_id or "",
        state="admitted",
        first_seq=seq,
        last_seq=seq,
        window_from=seq,
        turn_index=0,
        key=None,
        fingerprint="",
        prompt_preview=preview,
        waiting_for=(),
        created_at=fact.at,
        ended_at=None,
    )


def _turn_started(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, TurnStarted)
    turn_id = fact.turn_id or ""
    there = made.turns.get(turn_id) or known.turn(turn_id)
    made.turns[turn_id] = there or _opened(made, fact, seq, known, event.prompt_preview or "")
    _move(
        made,
        fact,
        known,
        "running",
        turn_index=event.turn_index,
        window_from=event.window_from,
        agent_name=event.agent_name,
    )


def _turn_suspended(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    assert isinstance(fact.event, TurnSuspended)
    _move(made, fact, known, "suspended", waiting_for=fact.event.waiting_for)


def _turn_resumed(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    _move(made, fact, known, "running", waiting_for=())


def _turn_ended(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, Terminal)
    _move(made, fact, known, event.status, waiting_for=(), ended_at=fact.at)
    made.spending.take_in(fact, known)
    turn_id = fact.turn_id or ""
    made.costs[turn_id] = known.cost_so_far(turn_id).total(made.asked.get(turn_id, ()))
    if isinstance(event, TurnCompleted) and event.token_usage is not None:
        made.last_turn = event.token_usage


def _move(made: Changes, fact: Fact, known: Known, state: TurnState, **fields: Any) -> None:
    turn_id = fact.turn_id or ""
    row = made.turns.get(turn_id) or known.turn(turn_id)
    if row is None:
        return  # refused by the caller, with the turn's name
    if not row.is_open:
        raise EventRefused(
            f"{fact.event.kind} came after turn {turn_id} was {row.state}", "A turn ends once; fold its log again."
        )
    made.turns[turn_id] = row._replace(state=state, **fields)


def _model_completed(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ModelCompleted)
    made.rounds += 1
    if event.token_usage is not None:
        made.tokens = event.token_usage if made.tokens is None else made.tokens + event.token_usage


_RULES: dict[type, Callable[[Changes, Fact, int, Known], None]] = {
    SessionStarted: _session_started,
    MessageAdmitted: _message_admitted,
    TurnStarted: _turn_started,
    TurnSuspended: _turn_suspended,
    TurnResumed: _turn_resumed,
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
        tables.add_agent(agent_id)
        self.checks_windows = checks_windows
        self.holds: dict[HoldKey, Hold] = {}
        self.turns: dict[str, TurnRow] = {}
        self.heard: dict[str, int] = {}
        self.total = TokenUsage()
        self.rounds = 0
        self.last_turn: TokenUsage | None = None
        self.costs: dict[str, TurnCost] = {}
        self._started: dict[OpenCall, dict[str, Any]] = {}
        self._costs_so_far: dict[str, CostTally] = {}

    def has_turn(self, turn_id: str) -> bool:
        return turn_id in self.turns

    def turn(self, turn_id: str) -> TurnRow | None:
        return self.turns.get(turn_id)

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

    def cost_so_far(self, turn_id: str) -> CostTally:
        return self._costs_so_far.get(turn_id) or CostTally()

    def window(self, key: WindowKey) -> Move | None:
        return self.windows.get(key)

    def hold(self, key: HoldKey) -> Hold | None:
        return self.holds.get(key)

    def holds_of(self, turn_id: str) -> dict[HoldKey, Hold]:
        return {key: hold for key, hold in self.holds.items() if key[0] == turn_id}

    def record(self, facts: Iterable[Fact], made: Changes) -> None:
        """Take the changes over."""
        if made.agent_name is not None:
            self.agent_name = made.agent_name
        self.turns.update(made.turns)
        for turn_id, seq in made.last_seq.items():
            self.turns[turn_id] = self.turns[turn_id]._replace(last_seq=seq)
        self.heard.update(made.heard)
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
        for turn_id, asked in made.asked.items():
            tally = self._costs_so_far.get(turn_id)
            if tally is None:
                tally = self._costs_so_far[turn_id] = CostTally()
            for fact in asked:
                tally.take(fact)
        self.costs.update(made.costs)
        for turn_id in made.costs:
            self._costs_so_far.pop(turn_id, None)
        for fact in facts:
            # Once a call has its outcome, nobody asks for its arguments again.
            if isinstance(fact.event, ToolStarted):
                self._started[OpenCall(fact.turn_id or "", fact.call_id or "")] = fact.event.safe_args or {}
            elif isinstance(fact.event, ToolResult | ToolFailed):
                self._started.pop(OpenCall(fact.turn_id or "", fact.call_id or ""), None)
