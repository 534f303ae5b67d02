"""The state of a turn: a fold over its facts.

The state is the root level, and below it the levels that calls and the runtime made. What the whole tree shares (its
limits, what it has spent, what it has seen, why it has to stop) is here once. What facts do to it is in
`decisions.evolve`.
"""

from collections.abc import Mapping, MutableSequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import AUTONOMOUS, Limits
from wakeful.contracts.events import ContextResolved, PlanArtifact, StopCause, StopRule, TurnCompleted, TurnSuspended
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.events.turns import Terminal
from wakeful.contracts.skills import ActiveSkill
from wakeful.contracts.spending import WindowPassed
from wakeful.decisions.ledger import TurnLedger
from wakeful.decisions.level_conversation import LevelConversation, TurnBeginning
from wakeful.decisions.levels import Call, Level, Phase
from wakeful.decisions.policy.owner_text import OwnerText
from wakeful.decisions.policy.provenance import NOTHING_SEEN, Exposure


@dataclass(slots=True)
class Stop:
    """Why the turn is to end before it ended by itself."""

    status: Literal["incomplete", "failed", "cancelled"]
    reason: StopCause
    message: str
    interrupt_id: str | None = None
    requested_at: int = 0
    applied: bool = False
    """Running work was told."""
    abort: AbortReason = "budget"
    """What is said of the calls that end with it."""
    is_overdue: bool = False
    """The turn's time is over, too: what was to be let finish is told as well."""

    @property
    def told_as(self) -> str:
        """The id under which it is carried out."""
        if self.is_overdue:
            return "limit:wall_clock"
        return self.interrupt_id or f"limit:{self.reason}"


@dataclass(slots=True)
class LevelTree:
    """The open levels below the root, and the calls of all levels."""

    levels: dict[str, Level] = field(default_factory=dict)
    """By id."""
    opened: int = 0
    """How many there ever were."""
    calls: dict[str, Call] = field(default_factory=dict)
    """Calls of every level's newest round, by id."""
    waiting: dict[str, Call] = field(default_factory=dict)
    """Those that wait for somebody outside."""
    away: dict[str | None, Level] = field(default_factory=dict, compare=False, repr=False)
    """Levels that wait for a provider."""
    able: dict[str | None, Level] = field(default_factory=dict, compare=False, repr=False)
    """Levels that may have something to do (`touched`)."""
    in_flight: int = 0
    """Calls that run and requests that are under way, in the whole tree. A call that waits for children is none."""
    to_call_off: dict[str, None] = field(default_factory=dict)
    """Running calls and levels that have to be told that they were called off."""

    def touched(self, level: Level) -> None:
        """A fact about the level came in: may there be something for it to do, or does it wait for a provider?"""
        phase = level.phase
        if phase == "acting":
            able = level.round.untaken > 0 or level.round.calls_off or level.stop_error is not None
        else:
            able = phase in ("ready", "lost", "closing", "answered")
        if phase == "waiting":
            self.away[level.id] = level
        elif level.id in self.away:
            del self.away[level.id]
        if able:
            self.able[level.id] = level
        elif level.id in self.able:
            del self.able[level.id]


@dataclass(slots=True)
class TurnTerms:
    """What holds for a turn from its beginning."""

    turn_index: int = 0
    stop_rule: StopRule = "natural"
    structured: bool = False
    chain: tuple[str, ...] = ()
    """The models that were decided on, in the order they are tried; empty in a log of before there was routing."""
    derived_from: str = "operator_instruction"
    """The lowest authority among the turn's messages."""
    context: ContextResolved | None = None
    """What the requests rest on, as it was last written down."""
    memory_revision: int = 0
    compression_epoch: int = 0
    """Of the agent's working memory, as the turn was shown it."""


@dataclass(slots=True)
class TurnBill:
    """What the requests of all levels cost. Their tokens are counted in the root, too."""

    paid: int = 0
    """Requests that were answered, or lost after they had used what their provider counted."""
    priced: int = 0
    """How many of them have a known price."""
    lost: int = 0
    """Attempts that were lost."""
    cost: Decimal = Decimal(0)
    """Of the attempts whose price is known, lost ones included."""

    @property
    def known(self) -> Decimal | None:
        """The cost; None where a price is not known, or nothing was paid for."""
        return self.cost if self.paid and self.priced == self.paid else None


@dataclass(slots=True)
class TurnTime:
    """How long a turn has worked. The newest fact's time is the only clock that deciding has."""

    now: int = 0
    started_at: int = 0
    worked_until: int = 0
    """The time of the newest fact the owner wrote: where a stretch that was cut off ended."""
    stretch_from: int = 0
    active_us: int = 0
    """Work before the current stretch."""
    idle: bool = False
    """Nothing works, and somebody outside or a provider is waited for: that time is nobody's."""

    def active_ms(self) -> float:
        """Time spent working, up to the newest fact."""
        return (self.active_us + max(0, self.now - self.stretch_from)) / 1000


@dataclass(slots=True)
class ThreadMemory:
    """What a thread's turns hand on beside the conversation."""

    exposure: Exposure = NOTHING_SEEN
    """What the conversation has seen: untrusted input, private data."""
    owner_said: OwnerText = field(default_factory=OwnerText)
    """What people said to it: messages with the operator's authority, and their answers."""
    owner_files: OwnerText = field(default_factory=OwnerText)
    """What it has read of the owner's files."""
    begins: MutableSequence[TurnBeginning] = field(default_factory=list)
    """Where the turns of the thread begin among the items."""
    compaction_id: str | None = None
    """The newest summary the conversation rests on."""
    skills: dict[str, ActiveSkill] = field(default_factory=dict)
    """Skills that completed turns used before, by their `SKILL.md`."""


@dataclass(slots=True)
class RuleChanges:
    """Rules about calls that changed while the turn was open."""

    standing: list[dict[str, Any]] = field(default_factory=list)
    """Rules that people added while deciding about calls of this turn."""
    revoked: set[str] = field(default_factory=set)
    """Ids of rules that were taken back."""
    searches: set[str] = field(default_factory=set)
    """Tools of the provider's own that a person allowed until the turn ends."""


@dataclass(slots=True)
class PlanningProgress:
    """How far planning has come."""

    plan: PlanArtifact | None = None
    is_over: bool = False
    """It is behind the turn, with a plan or without."""


@dataclass(slots=True)
class TurnRest:
    """What a turn rests for, or is to rest for."""

    is_paused: bool = False
    """Somebody asked the turn to rest, and nobody said since that it may go on."""
    full_window: WindowPassed | None = None
    """A spend window that had no room for a request: the turn comes to rest until it turns."""
    suspended_for: TurnSuspended | None = None
    phase_before: Phase = "ready"
    """The root's phase when the turn was suspended: where it goes on."""


@dataclass(slots=True)
class TurnWorkItems:
    """What a turn has to do with the agent's work items."""

    bound: str | None = None
    """The current item when the turn began: the one that the turn advances."""
    focus: str | None = None
    """The current item, as far as this turn knows."""
    focus_before: tuple[int, str | None] = (0, None)
    """The newest round that changed it, and what it was when that round began."""
    changed_in: int = 0
    """The newest round in which an item was changed; 0: none."""
    reminded_in: int = 0
    """The newest round in which the model was reminded of its item; 0: none."""

    def focus_at(self, step: int) -> str | None:
        """The current item when this round began."""
        changed_in, before = self.focus_before
        return before if changed_in == step else self.focus


@dataclass(slots=True)
class TurnState(Level):
    """Everything that deciding needs to know about one turn: its root level, and what its whole tree shares."""

    configs: Mapping[str, TurnConfig] = field(default_factory=dict)
    """Configurations by digest, loaded before folding."""
    tree: LevelTree = field(default_factory=LevelTree)
    terms: TurnTerms = field(default_factory=TurnTerms)
    limits: Limits = AUTONOMOUS
    ledger: TurnLedger = field(default_factory=TurnLedger)
    bill: TurnBill = field(default_factory=TurnBill)
    time: TurnTime = field(default_factory=TurnTime)
    thread: ThreadMemory = field(default_factory=ThreadMemory)
    rules: RuleChanges = field(default_factory=RuleChanges)
    planning: PlanningProgress = field(default_factory=PlanningProgress)
    skills_used: dict[str, ActiveSkill] = field(default_factory=dict)
    """Skills that this turn used: its successor's, if it completes."""
    retries_asked: dict[str, int] = field(default_factory=dict)
    """How often each tool asked the model to try differently."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Calls whose outcome nobody knows, and their tools."""
    work_items: TurnWorkItems = field(default_factory=TurnWorkItems)
    rest: TurnRest = field(default_factory=TurnRest)
    stop: Stop | None = None
    unheeded: list[str] = field(default_factory=list)
    """Requests to stop that came after another one, and were not answered yet."""
    completed_by: str | None = None
    """The call with which a mediator declared the run complete."""
    waits: dict[str, str] = field(default_factory=dict)
    """Waits that the turn made, each with its call."""
    grants: dict[str, Limits] = field(default_factory=dict)
    """What child agents of this turn were given and have not given back, by their tasks. It is out of `limits`."""
    terminal: Terminal | None = None

    @property
    def is_to_rest(self) -> bool:
        """Did a call of the newest round say that the agent waits? Then the turn ends with that round."""
        made = self.waits.values()
        return bool(made) and any(call.call_id in made for call in self.round.batch)

    def chain_of(self, level: Level) -> tuple[str, ...]:
        """The models of a level, in the order they are tried. A level with models of its own is not routed."""
        config, own = level.config, self.config
        if config is None:
            return ()
        named = (config.model_ref, *config.fallbacks)
        if not self.terms.chain or own is None or config.agent_name != own.agent_name:
            return named
        return self.terms.chain if named == (own.model_ref, *own.fallbacks) else named

    def model_at(self, candidate: int, level: Level) -> str | None:
        """The model at a place of the chain. A round that was cut off keeps its place when the chain gets shorter."""
        chain = self.chain_of(level)
        return chain[min(candidate, len(chain) - 1)] if chain else None

    def has_model_after(self, candidate: int, level: Level) -> bool:
        """Whether another model follows it."""
        return candidate + 1 < len(self.chain_of(level))

    def level(self, level_id: str | None) -> Level:
        """The level of that id; None is the root."""
        return self if level_id is None else self.tree.levels[level_id]

    def all_open_calls(self) -> list[Call]:
        """Calls without an answer in the whole tree, the root's first."""
        if not self.tree.levels:
            return self.round.open_calls()
        return [call for level in (self, *self.tree.levels.values()) for call in level.round.open_calls()]


@dataclass(slots=True)
class ThreadSoFar:
    """What the turns of a thread have left: all that its next turn begins with, and all that is kept between turns."""

    conversation: LevelConversation = field(default_factory=LevelConversation)
    thread: ThreadMemory = field(default_factory=ThreadMemory)
    configs: Mapping[str, TurnConfig] = field(default_factory=dict)
    """Configurations by digest, of the newest turns."""


def left_by(turn: TurnState) -> ThreadSoFar:
    """What a turn leaves to the next one of its thread."""
    thread = turn.thread
    if turn.skills_used and isinstance(turn.terminal, TurnCompleted):
        thread = replace(thread, skills={**thread.skills, **turn.skills_used})
    return ThreadSoFar(turn.conversation, thread, turn.configs)


_conversation_of = attrgetter(*(each.name for each in fields(LevelConversation)))
_memory_of = attrgetter(*(each.name for each in fields(ThreadMemory)))


def after(before: ThreadSoFar, configs: Mapping[str, TurnConfig]) -> TurnState:
    """The thread's next turn: it goes on with the same conversation, and with what that has seen."""
    conversation = LevelConversation(*_conversation_of(before.conversation))
    return TurnState(configs=configs, conversation=conversation, thread=ThreadMemory(*_memory_of(before.thread)))
