"""Which row changes a fact stands for. Pure, and the same for every backend: live rows and rebuilt rows are equal
because both come from here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import AlreadyDecided, EventRefused
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    ActionSettled,
    ActionStaged,
    ApprovalRuleAdded,
    ApprovalRuleRevoked,
    FilesTainted,
    MessageAdmitted,
    ModelCompleted,
    RuntimeToolRequested,
    RuntimeToolResolved,
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
    UnknownResolved,
)
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.contracts.spending import WindowKey
from wakeful.ports import ActionKind, ActionRow, RuleRow, TaintRow, TurnRow, TurnState, UnknownRow
from wakeful.programs import is_below
from wakeful.store.encoding import OUTSIDER
from wakeful.store.spending import CONCERNED, Hold, HoldKey, KnownSpending, Move, Spending, apply
from wakeful.views.cost import CALL_FACTS, CostTally, TurnCost

_CONCERNED, _CALL_FACTS = frozenset(CONCERNED), frozenset(CALL_FACTS)
CallKey: TypeAlias = tuple[str, str]
"""Turn and call."""
TaintKey: TypeAlias = tuple[str, str, int]
"""Workspace, path, since when."""


class Known(KnownSpending, Protocol):
    """What is stored already, as far as a fact's rows depend on it."""

    @property
    def agent_id(self) -> str: ...

    @property
    def agent_name(self) -> str: ...

    def has_turn(self, turn_id: str) -> bool: ...

    def turn(self, turn_id: str) -> TurnRow | None: ...

    def safe_args(self, turn_id: str, call_id: str) -> dict[str, Any] | None:
        """What `tool.started` shows of the arguments of a call that has no outcome yet."""
        ...

    def cost_so_far(self, turn_id: str) -> CostTally:
        """What the log says of an open turn's requests to models."""
        ...

    def action(self, action_id: str) -> ActionRow | None: ...

    def rule(self, rule_id: str) -> RuleRow | None: ...


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
    unknown: dict[CallKey, tuple[int, UnknownRow] | None] = field(default_factory=dict)
    """Opened (with the event's sequence) or, with None, closed."""
    rounds: int = 0
    tokens: TokenUsage | None = None
    last_turn: TokenUsage | None = None
    started: dict[CallKey, dict[str, Any]] = field(default_factory=dict)
    actions: dict[str, ActionRow] = field(default_factory=dict)
    """Asked of somebody outside, or decided."""
    rules: dict[str, RuleRow] = field(default_factory=dict)
    """Added or revoked."""
    tainted: dict[TaintKey, TaintRow | None] = field(default_factory=dict)
    """Tainted, or with None, known better."""
    spending: Spending = field(default_factory=Spending)
    asked: dict[str, list[Fact]] = field(default_factory=dict)
    """Facts about requests to models, by turn."""
    costs: dict[str, TurnCost] = field(default_factory=dict)
    """What the requests of turns that ended come to."""


def changes(facts: Iterable[Fact], writer: int, after: int, known: Known) -> Changes:
    """The changes for facts that come right after sequence `after`. Raises EventRefused before anything is written."""
    made = Changes()
    newest: dict[str, int] = {}
    for seq, fact in enumerate(facts, after + 1):
        turn_id, kind = fact.turn_id, type(fact.event)
        rule = _RULES.get(kind)
        if rule is not None:
            rule(made, fact, seq, known)
        if kind in _CONCERNED:
            made.spending.take_in(fact, known)
        if kind in _CALL_FACTS:
            made.asked.setdefault(turn_id or "", []).append(fact)
        if turn_id is not None:
            if turn_id not in newest and not (turn_id in made.turns or known.has_turn(turn_id)):
                raise EventRefused(
                    f"{fact.event.kind} names turn {turn_id}, which no message opened", "Admit its message first."
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
    turn_id = fact.turn_id or ""
    if turn_id in made.turns or known.turn(turn_id) is not None:
        return  # a further message of the same turn: its owner is given it, the row stays the first one's
    made.turns[turn_id] = TurnRow(
        turn_id=turn_id,
        agent_id=known.agent_id,
        agent_name=made.agent_name if made.agent_name is not None else known.agent_name,
        thread_id=fact.thread_id or "",
        state="admitted",
        first_seq=seq,
        last_seq=seq,
        window_from=seq,
        turn_index=0,
        key=event.key,
        fingerprint=event.fingerprint,
        prompt_preview=event.prompt_preview,
        waiting_for=(),
        created_at=fact.at,
        ended_at=None,
    )


def _turn_started(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, TurnStarted)
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


def _tool_started(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    assert isinstance(fact.event, ToolStarted)
    made.started[(fact.turn_id or "", fact.call_id or "")] = fact.event.safe_args or {}


def _tool_failed(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ToolFailed)
    if event.effects != "unknown":
        return
    key = (fact.turn_id or "", fact.call_id or "")
    args = made.started.get(key)
    row = UnknownRow(
        call_id=key[1],
        agent_id=known.agent_id,
        turn_id=key[0],
        thread_id=fact.thread_id or "",
        step=fact.step or 0,
        tool=event.tool_name,
        arguments=args if args is not None else known.safe_args(*key) or {},
        reason=event.message,
        since=fact.at,
    )
    made.unknown[key] = (seq, row)


def _unknown_resolved(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    assert isinstance(fact.event, UnknownResolved)
    made.unknown[(fact.turn_id or "", fact.event.call_id)] = None


def _action_required(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ActionRequired)
    _ask(made, fact, seq, known, event.action_id, event.action_type, event.tool_name, event.expires_at)


def _runtime_tool_requested(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, RuntimeToolRequested)
    _ask(made, fact, seq, known, event.request_id, "client_tool", event.tool_name, event.timeout_at)


def _action_staged(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ActionStaged)
    _ask(made, fact, seq, known, event.action_id, event.action_type, event.name, event.expires_at)


def _action_settled(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ActionSettled)
    _decide(made, fact, seq, known, event.action_id, event.status, event.settled_by)


def _ask(
    made: Changes,
    fact: Fact,
    seq: int,
    known: Known,
    action_id: str,
    kind: ActionKind,
    tool_name: str,
    expires_at: int,
) -> None:
    if action_id in made.actions or known.action(action_id) is not None:
        raise EventRefused(f"{action_id} was asked before", "Give what is asked a name of its own.")
    made.actions[action_id] = ActionRow(
        action_id=action_id,
        kind=kind,
        agent_id=known.agent_id,
        agent_name=made.agent_name if made.agent_name is not None else known.agent_name,
        turn_id=fact.turn_id or "",
        thread_id=fact.thread_id or "",
        step=fact.step or 0,
        call_id=fact.call_id or "",
        tool_name=tool_name,
        status="pending",
        requested_at=fact.at,
        expires_at=expires_at,
        decided_at=None,
        decided_by=None,
        required_seq=seq,
        resolved_seq=None,
    )


def _action_resolved(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ActionResolved)
    _decide(made, fact, seq, known, event.action_id, event.status, event.resolver)


def _runtime_tool_resolved(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, RuntimeToolResolved)
    status = "completed" if event.status == "runtime_tool_completed" else "timed_out"
    _decide(made, fact, seq, known, event.request_id, status, event.submitted_by)


def _decide(made: Changes, fact: Fact, seq: int, known: Known, action_id: str, status: str, by: str) -> None:
    """The compare and the set are in one transaction: whoever comes second changes nothing, and is told."""
    row = made.actions.get(action_id) or known.action(action_id)
    if row is None:
        raise EventRefused(f"{fact.event.kind} names {action_id}, which nobody asked for", "Ask first.")
    if row.status != "pending":
        raise AlreadyDecided(action_id, row.status, row.decided_by)
    made.actions[action_id] = row._replace(status=status, decided_at=fact.at, decided_by=by, resolved_seq=seq)


def _rule_added(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ApprovalRuleAdded)
    made.rules[event.rule_id] = RuleRow(
        event.rule_id, known.agent_id, event.agent_name, event.rule, fact.at, event.added_by, None, None
    )


def _rule_revoked(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, ApprovalRuleRevoked)
    row = made.rules.get(event.rule_id) or known.rule(event.rule_id)
    if row is not None and row.revoked_at is None:
        made.rules[event.rule_id] = row._replace(revoked_at=fact.at, revoked_by=event.revoked_by)


def _files_tainted(made: Changes, fact: Fact, seq: int, known: Known) -> None:
    event = fact.event
    assert isinstance(event, FilesTainted)
    named = [(path, 0, digest) for path, digest in event.files.items()]
    if event.settles is not None:
        made.tainted[event.workspace, "", event.settles] = None
    if event.since is not None:
        named.append(("", event.since, ""))
    for path, since, digest in named:
        made.tainted[event.workspace, path, since] = TaintRow(
            *(event.workspace, path, since, digest, event.cause, known.agent_id, fact.turn_id or "", fact.at)
        )


def holds_for(row: TaintRow, place: str, digest: str, below: bool) -> bool:
    """Is the file or folder at an absolute path among what the row names; with `below`, or anything in it?"""
    if any(workspace == row.workspace and row.path in paths for workspace, paths in workspaces_around(place)):
        return True
    if digest and digest == row.digest and is_below(place, [row.workspace]):
        return True
    return below and is_below(f"{row.workspace.rstrip('/')}/{row.path}".rstrip("/"), [place])


def workspaces_around(place: str) -> list[tuple[str, list[str]]]:
    """Every folder that the place lies in, itself included, as a workspace; and how rows of that workspace would name
    the place: its path first, then the folders on the way there."""
    parts = [part for part in place.split("/") if part]
    found = []
    for count in range(len(parts), -1, -1):
        within = parts[count:]
        above = [f"{'/'.join(within[:depth])}/" for depth in range(len(within), 0, -1)]
        found.append((f"/{'/'.join(parts[:count])}", ["/".join(within), *above, *([""] if within else [])]))
    return found


_RULES: dict[type, Callable[[Changes, Fact, int, Known], None]] = {
    SessionStarted: _session_started,
    MessageAdmitted: _message_admitted,
    TurnStarted: _turn_started,
    TurnSuspended: _turn_suspended,
    TurnResumed: _turn_resumed,
    TurnCompleted: _turn_ended,
    TurnFailed: _turn_ended,
    ModelCompleted: _model_completed,
    ToolStarted: _tool_started,
    ToolFailed: _tool_failed,
    UnknownResolved: _unknown_resolved,
    ActionRequired: _action_required,
    ActionResolved: _action_resolved,
    RuntimeToolRequested: _runtime_tool_requested,
    RuntimeToolResolved: _runtime_tool_resolved,
    ActionStaged: _action_staged,
    ActionSettled: _action_settled,
    ApprovalRuleAdded: _rule_added,
    ApprovalRuleRevoked: _rule_revoked,
    FilesTainted: _files_tainted,
}


class Book:
    """The rows of one agent, in memory: what the memory store keeps and what a rebuild is made in."""

    def __init__(
        self, agent_id: str, windows: dict[WindowKey, Move] | None = None, *, checks_windows: bool = False
    ) -> None:
        self.agent_id = agent_id
        self.agent_name = ""
        self.windows = windows if windows is not None else {}
        """Spend windows; agents share them."""
        self.checks_windows = checks_windows
        self.holds: dict[HoldKey, Hold] = {}
        self.turns: dict[str, TurnRow] = {}
        self.heard: dict[str, int] = {}
        self.unknown: dict[CallKey, tuple[int, UnknownRow]] = {}
        self.actions: dict[str, ActionRow] = {}
        self.rules: dict[str, RuleRow] = {}
        self.tainted: dict[TaintKey, TaintRow] = {}
        self.total = TokenUsage()
        self.rounds = 0
        self.last_turn: TokenUsage | None = None
        self.costs: dict[str, TurnCost] = {}
        self._started: dict[CallKey, dict[str, Any]] = {}
        self._costs_so_far: dict[str, CostTally] = {}

    def has_turn(self, turn_id: str) -> bool:
        return turn_id in self.turns

    def turn(self, turn_id: str) -> TurnRow | None:
        return self.turns.get(turn_id)

    def safe_args(self, turn_id: str, call_id: str) -> dict[str, Any] | None:
        return self._started.get((turn_id, call_id))

    def cost_so_far(self, turn_id: str) -> CostTally:
        return self._costs_so_far.get(turn_id) or CostTally()

    def action(self, action_id: str) -> ActionRow | None:
        return self.actions.get(action_id)

    def rule(self, rule_id: str) -> RuleRow | None:
        return self.rules.get(rule_id)

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
        for key, opened in made.unknown.items():
            if opened is None:
                self.unknown.pop(key, None)
            else:
                self.unknown[key] = opened
        self.actions.update(made.actions)
        self.rules.update(made.rules)
        for taint, tainted in made.tainted.items():
            if tainted is None:
                self.tainted.pop(taint, None)
            else:
                self.tainted[taint] = tainted
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
        self._started.update(made.started)
        for fact in facts:
            # Once a call has its outcome, nobody asks for its arguments again.
            if isinstance(fact.event, ToolResult | ToolFailed):
                self._started.pop((fact.turn_id or "", fact.call_id or ""), None)
