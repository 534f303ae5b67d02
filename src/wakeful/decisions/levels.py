"""One level of a turn: a run of the loop with a conversation of its own.

A turn is a tree of levels. The root is the turn's own (`decisions.state.TurnState`); below it are children that calls
made, and phases of the runtime's: a planner, a summary. All are the same thing one level down. Here is what a level
holds; what facts do to it is in `decisions.evolve`.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnswerAccepted,
    ModelCompleted,
    ModelFailed,
    ModelWaiting,
    RuntimeToolRequested,
    RuntimeToolResolved,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.events.context import CompactionTrigger
from wakeful.contracts.models import ProviderAttemptRecord, TokenUsage
from wakeful.contracts.spending import WindowRef
from wakeful.contracts.tools import Effect
from wakeful.decisions.guards import IdenticalFailureTracker, SpinDetector
from wakeful.decisions.level_conversation import LevelConversation, NextRequest
from wakeful.decisions.retries import CandidateLoss

Phase: TypeAlias = Literal[
    "new", "ready", "asking", "lost", "waiting", "acting", "closing", "apart", "answered", "suspended", "ended"
]
"""new: nothing started. ready: the model may be asked. asking: it is being asked. lost: an attempt was lost.
waiting: no model answers for now, and it is asked again later. acting: calls are open. closing: the round is done and
the caller is to be asked. apart: a planner or a summary is at work for it. answered: the final reply is there.
suspended: at rest until something is supplied. ended: over."""


@dataclass(slots=True)
class OutsideRequest:
    """What a call asked of somebody outside, and what they said."""

    action_id: str
    expires_at: int
    asked: ActionRequired | RuntimeToolRequested
    asked_at: int = 0
    said: ActionResolved | RuntimeToolResolved | None = None


@dataclass(slots=True)
class ChildEnd:
    """One job of a call, how it ended, and what it leaves behind."""

    started: SubagentStarted
    started_at: int
    ended_at: int = 0
    end: SubagentCompleted | SubagentFailed | None = None
    noted: dict[str, Any] = field(default_factory=dict)
    """What its tree wrote down, and its own result."""


@dataclass(slots=True)
class NodeWait:
    """What a call of a workflow waits for."""

    after: tuple["Call", ...]
    """The calls it takes something from."""
    open_before: int
    """How many of those have no answer yet."""
    unresolved: bool
    """Its arguments are not known before those have one."""


@dataclass(slots=True)
class Call:
    """One call of an open round, and how far it has come."""

    part: CallPart
    step: int
    position: int
    level: "Level" = field(compare=False, repr=False)
    taken_up: bool = False
    started: ToolStarted | None = None
    """Its beginning, as it is on record: what holds for this call, whatever its tool declares by now."""
    started_at: int = 0
    dispatches: int = 0
    """How often the effect may have begun; 0 while nothing was dispatched."""
    pending: OutsideRequest | None = None
    """The newest thing it asked of somebody outside."""
    rewritten: dict[str, Any] | None = None
    """Arguments that a hook put in the place of the model's, or a person who is asked about them once more."""
    end: ToolResult | ToolFailed | None = None
    called_off: bool = False
    """Another call of the round failed whose tool calls off the others."""
    children: list[ChildEnd] = field(default_factory=list)
    """The children it made, in the order of its jobs."""
    wrote: dict[str, Any] = field(default_factory=dict)
    """What it wrote down itself."""
    node: NodeWait | None = None
    """In a workflow: what it waits for; None: nothing."""
    call_id: str = field(init=False)
    """Its part's, which stays the same: it is asked for a dozen times a round."""

    def __post_init__(self) -> None:
        self.call_id = self.part.call_id

    @property
    def effect(self) -> Effect:
        return self.started.effect if self.started is not None else "irreversible"

    @property
    def is_alone(self) -> bool:
        """It has begun, and its arguments let nothing run beside it, whatever its tool declares."""
        started = self.started
        return started is not None and started.dispatched and not started.is_concurrency_safe

    @property
    def is_let_finish(self) -> bool:
        """It is let finish when the turn is interrupted."""
        return self.started is not None and self.started.interrupt_behavior == "block"

    @property
    def answer(self) -> ToolItem | None:
        """What the model is shown of it."""
        return self.end.item if self.end is not None else None

    @property
    def open_before(self) -> int:
        """How many calls have to end before this one is looked at."""
        return self.node.open_before if self.node is not None else 0

    @property
    def noted(self) -> dict[str, Any]:
        """What it leaves to its level when all calls of the round have ended; of its jobs, the later one wins."""
        noted = dict(self.wrote)
        for job in self.children:
            noted.update(job.noted)
        return noted

    @property
    def is_waiting(self) -> bool:
        """Somebody outside has to say something first."""
        return self.pending is not None and self.pending.said is None and self.end is None

    @property
    def edited(self) -> dict[str, Any] | None:
        """Arguments that a person put in the place of the model's."""
        said = self.pending.said if self.pending is not None else None
        return said.arguments if isinstance(said, ActionResolved) else None

    @property
    def replaced(self) -> dict[str, Any] | None:
        """What is run in the place of the model's own arguments: a person's, else a hook's; None: the model's."""
        return self.edited if self.edited is not None else self.rewritten

    @property
    def running(self) -> bool:
        return self.dispatches > 0 and self.end is None


@dataclass(slots=True)
class OpenRequest:
    """The model request that is under way, or was lost."""

    step: int
    candidate: int
    attempt: int
    model_ref: str
    at: int
    backoff_ms: int = 0
    failure: ModelFailed | None = None
    response_id: str | None = None
    """Under which the provider works at it by itself, when it does."""
    reattached: bool = False
    """A crash cut it off, and its answer is asked for by that id."""
    held_input: int = 0
    held_output: int = 0
    held_usd: Decimal = Decimal(0)
    held_unpriced: int = 0
    """What is held back of the budget until it is known what the request took."""
    priced: bool = False
    used_tokens: int = 0
    """What the provider says it took."""
    is_counted: bool = False
    """It is among the turn's model calls."""
    windows: tuple[WindowRef, ...] = ()
    """The spend windows it counts in."""


@dataclass(slots=True)
class Round:
    """The newest round of a level: its request, and the calls of the reply."""

    request: OpenRequest | None = None
    attempts: list[ProviderAttemptRecord] = field(default_factory=list)
    """Attempts that were lost."""
    lost: dict[int, CandidateLoss] = field(default_factory=dict)
    """The newest one on each candidate."""
    wait: ModelWaiting | None = None
    """The newest wait for a provider; None: none was needed."""
    told_wait: ModelWaiting | None = None
    """The newest one of which people who follow were told; None: of none, or of its end as well."""
    asks_again: bool = False
    """That wait is over, and nothing was asked since."""
    batch: list[Call] = field(default_factory=list)
    """The calls, in model order."""
    front: int = 0
    """The first call of the batch whose answer is not in the conversation yet."""
    running: int = 0
    """Calls of the batch that have begun and not ended."""
    untaken: int = 0
    """Calls of the batch that the gate has not seen, or has to see again."""
    calls_off: bool = False
    """Calls of the batch were called off."""
    continuation: tuple[UserItem | AssistantItem | ToolItem, ...] = ()
    """What stands in the conversation after the results."""
    go_on: bool | None = None
    """What the caller said who was asked whether to go on."""

    def open_calls(self) -> list[Call]:
        """Calls that have no answer yet, in model order."""
        return [call for call in self.batch[self.front :] if call.end is None]


@dataclass(slots=True)
class RepeatGuards:
    """What a level's model repeats, where the turn's limits ask for it."""

    spinning: SpinDetector | None = None
    failing: IdenticalFailureTracker | None = None
    nudge: str = ""
    """What the model is told about it with the results of the round."""


@dataclass(slots=True)
class LevelAnswer:
    """What a level came to."""

    final_text: str = ""
    """The text of its newest reply, which may be empty."""
    last_text: str = ""
    """The newest text that is not."""
    is_checked: bool = False
    rejections: int = 0
    correction: UserItem | None = None
    """What is wrong with the answer that the turn failed with: told if the turn is tried again."""
    accepted: AnswerAccepted | None = None
    ended: ModelCompleted | None = None
    """How the newest reply ended."""
    max_tokens: int | None = None
    """How long the next reply may be, because one was cut off; None: as long as the settings say."""


NO_TOKENS = TokenUsage()


@dataclass(slots=True)
class LevelUsage:
    """What the models of a level said they took."""

    answers: int = 0
    """Requests that were answered."""
    tokens: TokenUsage = NO_TOKENS
    is_reported: bool = False
    newest: TokenUsage | None = None
    """Of the newest reply."""


@dataclass(slots=True)
class Scratchpad:
    """What is written down for others in a turn."""

    visible: dict[str, Any] = field(default_factory=dict)
    """What the level can read of it."""
    at_round: dict[str, Any] = field(default_factory=dict)
    """The same when its newest round began: what children of that round begin with."""
    written: dict[str, Any] = field(default_factory=dict)
    """What its own tree wrote down: its parent's, once all children of the round have ended."""


class LevelError(NamedTuple):
    """Why a level below the root ends without a result."""

    error: str
    message: str
    details: dict[str, Any]


@dataclass(slots=True)
class ChildRole:
    """What makes a level the child of a call."""

    call: Call = field(compare=False, repr=False)
    """The call of the parent that made it."""
    started: SubagentStarted
    finish_errors: list[str] = field(default_factory=list)
    """Why payloads given to `finish_subtask` did not fit, newest last."""
    has_finished: bool = False
    payload: Any = None
    """What `finish_subtask` was given."""
    called_off: bool = False
    """Its call was: it ends as soon as nothing of it is under way."""


@dataclass(slots=True)
class PlannerRole:
    """What makes a level the planner of its turn: it reads and leaves a plan."""


@dataclass(slots=True)
class SummaryRole:
    """What makes a level the writer of a summary."""

    compaction_id: str
    cut: int
    """How many items of its parent it is about."""
    trigger: CompactionTrigger
    began_at: int


@dataclass(slots=True)
class Level:
    """What deciding needs to know about one run of the loop."""

    id: str | None = None
    role: "ChildRole | PlannerRole | SummaryRole | None" = None
    """What makes it a child, a planner or a summary; None: it is the root."""
    parent: "Level | None" = field(default=None, compare=False, repr=False)
    depth: int = 0
    rank: int = 0
    """How many levels of the turn were opened before it: which of two is looked at first does not depend on who was
    heard first."""
    config: TurnConfig | None = None
    phase: Phase = "new"
    step: int = 0
    conversation: LevelConversation = field(default_factory=LevelConversation)
    next_request: NextRequest = field(default_factory=NextRequest)
    round: Round = field(default_factory=Round)
    repeats: RepeatGuards = field(default_factory=RepeatGuards)
    answer: LevelAnswer = field(default_factory=LevelAnswer)
    model_usage: LevelUsage = field(default_factory=LevelUsage)
    scratchpad: Scratchpad = field(default_factory=Scratchpad)
    stop_error: LevelError | None = None
    """Why it has to end without a result."""


def path_of(level: Level) -> tuple[str, ...]:
    """The ids of the levels from the root's child down to this one; empty for the root."""
    above = path_of(level.parent) if level.parent is not None else ()
    return above if level.id is None else (*above, level.id)


def artifacts_of(level: Level) -> frozenset[str]:
    """The artifacts that results of the level's conversation name, by digest."""
    talk = level.conversation
    if not talk.references and not talk.conserved.artifacts:
        return frozenset()
    return frozenset(each for named, _ in talk.references.values() for each in named) | talk.conserved.artifacts


def as_child(level: Level) -> ChildRole | None:
    """What makes the level a child; None: it is none."""
    return level.role if isinstance(level.role, ChildRole) else None


def payload_schema(level: Level) -> dict[str, Any] | None:
    """What `finish_subtask` has to be given, in a child that has to end with it."""
    return level.role.started.output_schema if isinstance(level.role, ChildRole) else None


def unsatisfied(child: ChildRole, why: str) -> LevelError:
    """A child that had to end with a fitting payload, and did not."""
    return LevelError(
        "schema_not_satisfied",
        f"the subtask ended without a result that fits its schema: {why}",
        {"attempts": len(child.finish_errors), "last_errors": child.finish_errors[-3:]},
    )


def too_many_rounds(level: Level, most: int) -> LevelError:
    """A child that used up its rounds."""
    child = as_child(level)
    if child is not None and child.started.output_schema is not None:
        return unsatisfied(child, f"finish_subtask was not called in {most} rounds")
    return LevelError("iteration_limit", f"the subtask did not end within {most} rounds", {"limit": most})
