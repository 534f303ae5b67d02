"""The state of a turn: a fold over its facts.

The state is the root level, and below it the levels that calls and the runtime made. What the whole tree shares (its
limits, what it has spent, what it has seen, why it has to stop) is here once. What facts do to it is in
`decisions.evolve`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import AUTONOMOUS, Limits
from wakeful.contracts.events import ContextResolved, PlanArtifact, StopCause, StopRule, TurnCompleted, TurnSuspended
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.events.turns import Terminal
from wakeful.contracts.skills import ActiveSkill
from wakeful.contracts.spending import WindowPassed
from wakeful.decisions.ledger import TurnLedger
from wakeful.decisions.level_conversation import TurnBeginning
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
class TurnState(Level):
    """Everything that deciding needs to know about one turn: its root level, and what its whole tree shares."""

    configs: Mapping[str, TurnConfig] = field(default_factory=dict)
    """Configurations by digest, loaded before folding."""
    levels: dict[str, Level] = field(default_factory=dict)
    """The open levels below the root, by id."""
    levels_opened: int = 0
    calls: dict[str, Call] = field(default_factory=dict)
    """Calls of every level's newest round, by id."""
    waiting: dict[str, Call] = field(default_factory=dict)
    """Those that wait for somebody outside."""
    able: dict[str | None, Level] = field(default_factory=dict, compare=False, repr=False)
    """Levels that may have something to do (`touched`)."""
    in_flight: int = 0
    """Calls that run and requests that are under way, in the whole tree. A call that waits for children is none."""
    chain: tuple[str, ...] = ()
    """The models that were decided on, in the order they are tried; empty in a log of before there was routing."""
    limits: Limits = AUTONOMOUS
    ledger: TurnLedger = field(default_factory=TurnLedger)
    stop_rule: StopRule = "natural"
    structured: bool = False
    turn_index: int = 0
    started_at: int = 0
    now: int = 0
    """The newest fact's time: the only clock that deciding has."""
    worked_until: int = 0
    """The time of the newest fact the owner wrote: where a stretch that was cut off ended."""
    stretch_from: int = 0
    active_us: int = 0
    """Work before the current stretch."""
    idle: bool = False
    """Nothing works, and somebody outside is waited for: that time is nobody's."""
    tree_answered: int = 0
    """Model calls of all levels that were answered. Their `usage` is the root's, too: that is the turn's."""
    cost: Decimal = Decimal(0)
    """Of the attempts whose price is known, lost ones included."""
    priced: int = 0
    """How many answered ones those are."""
    derived_from: str = "operator_instruction"
    """The lowest authority among the turn's messages."""
    exposure: Exposure = NOTHING_SEEN
    """What the conversation has seen: untrusted input, private data."""
    owner_said: OwnerText = field(default_factory=OwnerText)
    """What people said to it: messages with the operator's authority, and their answers."""
    owner_files: OwnerText = field(default_factory=OwnerText)
    """What it has read of the owner's files."""
    standing_rules: list[dict[str, Any]] = field(default_factory=list)
    """Rules that people added while deciding about calls of this turn."""
    revoked_rules: set[str] = field(default_factory=set)
    """Ids of rules that were taken back while this turn was open."""
    completed_by: str | None = None
    """The call with which a mediator declared the run complete."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Calls whose outcome nobody knows, and their tools."""
    compaction_id: str | None = None
    """The newest summary the conversation rests on."""
    skills: dict[str, ActiveSkill] = field(default_factory=dict)
    """Skills that completed turns of the thread used before, by their `SKILL.md`."""
    opened: dict[str, ActiveSkill] = field(default_factory=dict)
    """Those that this turn used: the next one's, if it completes."""
    begins: list[TurnBeginning] = field(default_factory=list)
    """Where the turns of the thread begin among the items."""
    context: ContextResolved | None = None
    """What the requests rest on, as it was last written down."""
    plan: PlanArtifact | None = None
    planned: bool = False
    """Planning is behind it, with a plan or without."""
    paused: bool = False
    """Somebody asked the turn to rest, and nobody said since that it may go on."""
    full_window: WindowPassed | None = None
    """A spend window that had no room for a request: the turn comes to rest until it turns."""
    stop: Stop | None = None
    unheeded: list[str] = field(default_factory=list)
    """Requests to stop that came after another one, and were not answered yet."""
    to_call_off: dict[str, None] = field(default_factory=dict)
    """Running calls and levels that have to be told that they were called off."""
    suspended_for: TurnSuspended | None = None
    rested_from: Phase = "ready"
    """The root's phase when the turn was suspended: where it goes on."""
    terminal: Terminal | None = None

    def active_ms(self) -> float:
        """Time spent working, up to the newest fact."""
        return (self.active_us + max(0, self.now - self.stretch_from)) / 1000

    def chain_of(self, level: Level) -> tuple[str, ...]:
        """The models of a level, in the order they are tried. A level with models of its own is not routed."""
        config, own = level.config, self.config
        if config is None:
            return ()
        named = (config.model_ref, *config.fallbacks)
        if not self.chain or own is None or config.agent_name != own.agent_name:
            return named
        return self.chain if named == (own.model_ref, *own.fallbacks) else named

    def model_at(self, candidate: int, level: Level) -> str | None:
        """The model at a place of the chain. A round that was cut off keeps its place when the chain gets shorter."""
        chain = self.chain_of(level)
        return chain[min(candidate, len(chain) - 1)] if chain else None

    def has_model_after(self, candidate: int, level: Level) -> bool:
        """Whether another model follows it."""
        return candidate + 1 < len(self.chain_of(level))

    def level(self, level_id: str | None) -> Level:
        """The level of that id; None is the root."""
        return self if level_id is None else self.levels[level_id]

    def all_open_calls(self) -> list[Call]:
        """Calls without an answer in the whole tree, the root's first."""
        if not self.levels:
            return self.open_calls()
        return [call for level in (self, *self.levels.values()) for call in level.open_calls()]

    def touched(self, level: Level) -> None:
        """A fact about the level came in: may there be something for it to do?"""
        phase = level.phase
        if phase == "acting":
            able = level.untaken > 0 or level.calls_off or level.stop_error is not None
        else:
            able = phase in ("ready", "lost", "closing", "answered")
        if able:
            self.able[level.id] = level
        elif level.id in self.able:
            del self.able[level.id]


def after(before: TurnState, configs: Mapping[str, TurnConfig]) -> TurnState:
    """The thread's next turn: it goes on with the same conversation, and with what that has seen."""
    return TurnState(
        configs=configs,
        conversation=replace(before.conversation),
        exposure=before.exposure,
        owner_said=before.owner_said,
        owner_files=before.owner_files,
        compaction_id=before.compaction_id,
        begins=before.begins,
        skills={**before.skills, **before.opened} if isinstance(before.terminal, TurnCompleted) else before.skills,
    )
