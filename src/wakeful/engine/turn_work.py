"""What one turn is carried out with, in a few records: each is handed to those who need it.

    place      where the turn stands in the store, and what of it is known here
    code       models, tools and agents that it runs
    terms      what requests to models are held to
    people     who is asked while it runs
    audience   who is shown what happens
    tasks      work on the side

`TurnWork` holds them together with the turn's state, for those who carry out its steps.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import Approval, Decided
from wakeful.contracts.budgets import BudgetLeft
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnswerAccepted,
    AnswerRejected,
    AnyEvent,
    LimitChanged,
    RuntimeToolRequested,
    RuntimeToolResolved,
    TurnTimeSkipped,
)
from wakeful.contracts.spending import WindowRef
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph
from wakeful.contracts.workspaces import WorkspacePlace
from wakeful.decisions.ledger import left_of
from wakeful.decisions.levels import Level, PlannerRole, SummaryRole, as_child
from wakeful.decisions.spawn_terms import Family
from wakeful.decisions.state import TurnState
from wakeful.decisions.workflows.validation import Types
from wakeful.engine.drain import Drain
from wakeful.engine.low_limits import LowLimits
from wakeful.engine.settings_left_out import UnsentSettings
from wakeful.engine.spend_windows import TurnWindows
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_inbox import TurnInbox
from wakeful.engine.watchers import Glimpse, ModelGlimpsed, OutputGlimpsed, Seats, Watcher
from wakeful.engine.whole_texts import WholeTexts
from wakeful.gate.turn_gate import AfterCall, GateParts
from wakeful.ports import Claim, Clock, Model, Pricing, Store, TurnRow
from wakeful.ports.tasks import ChildBoard
from wakeful.ports.waits import WaitRow
from wakeful.tools.tool import Tool

_ASKED_PEOPLE = (ActionRequired, ActionResolved)
_ABOUT_ACTIONS = frozenset((*_ASKED_PEOPLE, RuntimeToolRequested, RuntimeToolResolved))


class FactMaker:
    """Stamps the events of one turn."""

    __slots__ = ("_clock", "_thread_id", "_turn_id")

    def __init__(self, clock: Clock, thread_id: str, turn_id: str) -> None:
        self._clock = clock
        self._thread_id = thread_id
        self._turn_id = turn_id

    def __call__(
        self, event: AnyEvent, step: int | None = None, call_id: str | None = None, level: Level | None = None
    ) -> Fact:
        """The event as a fact of its level; without one, of the root."""
        fact = Fact(event, self._clock.now(), self._thread_id, self._turn_id, step, call_id)
        if level is not None and level.id is not None:
            fact.level, fact.depth = level.id, level.depth
            fact.parent_call_id = child.call.call_id if (child := as_child(level)) is not None else None
        if type(event) in _ABOUT_ACTIONS:
            assert isinstance(event, ActionRequired | ActionResolved | RuntimeToolRequested | RuntimeToolResolved)
            fact.action_id = event.action_id if isinstance(event, _ASKED_PEOPLE) else event.request_id
        return fact


CheckAnswer: TypeAlias = Callable[[str, int], AnswerAccepted | AnswerRejected]
"""The final text and how many answers were rejected before it, to the verdict on it."""


class OtherAgent(NamedTuple):
    """An agent that a call of this turn runs: what it is, and its code."""

    config: TurnConfig
    config_ref: BlobRef
    output_schema: dict[str, Any] | None
    models: Sequence[Model]
    tools: Mapping[str, Tool[Any]]
    hooks: tuple[Any, ...] = ()
    """Its own: heard about its calls, and no others."""
    deps: Any = None


class WorkflowDesk(NamedTuple):
    """Where a turn builds workflows: what nodes may be, and where they are kept."""

    types: Types
    keep: Callable[[WorkflowGraph, str], Awaitable[SavedWorkflow]]
    """Under the key of the call that built it: once."""


DecideAction: TypeAlias = Callable[[Approval, Decided, str], Awaitable[Any]]
"""Records the decision of an approver. Raises AlreadyDecided, or what is wrong with the decision."""


@dataclass(slots=True)
class TurnPlace:
    """Where a turn stands in the store, and what of it is known in this process."""

    store: Store
    claim: Claim
    row: TurnRow
    known: KnownFacts
    """The turn's stored facts, as far as this process has seen them."""
    call_ids: set[str]
    """Every call id this conversation has seen."""
    state: TurnState
    """What the turn's facts come to so far."""


@dataclass(slots=True)
class TurnCode:
    """The code that a turn runs. None of it is in the store."""

    models: Sequence[Model] = ()
    """The model and its fallbacks, in order."""
    tools: Mapping[str, Tool[Any]] = field(default_factory=dict)
    others: Mapping[str, OtherAgent] = field(default_factory=dict)
    """Agents that calls of this turn run, by the name of such a call."""
    planner: Sequence[Model] = ()
    """Who plans, where that is somebody else."""
    summariser: Sequence[Model] = ()
    """Who folds conversations that grow too long, where that is somebody else."""
    deps: Any = None
    desk: WorkflowDesk | None = None
    """In an editor."""
    check_answer: CheckAnswer | None = None
    """None: any text is an answer."""

    def models_of(self, level: Level) -> Sequence[Model]:
        """Who is asked for a level: the agent's models, unless it is a phase with one of its own."""
        if isinstance(level.role, PlannerRole) and self.planner:
            return self.planner
        other = self.other_of(level)
        if other is not None:
            return other.models
        return self.summariser if isinstance(level.role, SummaryRole) and self.summariser else self.models

    def tools_of(self, level: Level) -> Mapping[str, Tool[Any]]:
        """The code of a level's tools."""
        other = self.other_of(level)
        return other.tools if other is not None else self.tools

    def deps_of(self, level: Level) -> Any:
        """What the tools of a level are given."""
        other = self.other_of(level)
        return self.deps if other is None else other.deps

    def other_of(self, level: Level) -> OtherAgent | None:
        """The agent that works at a level, where it is not the turn's own: a child's children are the child's."""
        if not self.others:
            return None
        here: Level | None = level
        while here is not None:
            child = as_child(here)
            if child is not None and child.started.tool in self.others:
                return self.others[child.started.tool]
            here = here.parent
        return None


@dataclass(slots=True)
class ModelTerms:
    """What requests to models are held to."""

    jitter: Callable[[], float]
    """A number from 0 to 1, drawn anew each time: the part of a backoff that is waited."""
    pricing: Pricing | None = None
    windows: TurnWindows | None = None
    """None: no spend window holds."""
    low_limits: LowLimits = field(default_factory=LowLimits)
    """Limits of providers that were told of as low."""
    left_out: UnsentSettings = field(default_factory=UnsentSettings)
    """Settings that were told of as left out."""
    stream: bool = True


@dataclass(slots=True)
class People:
    """Who is asked while a turn runs."""

    approver: Callable[[Approval], Awaitable[Any]] | None = None
    decide_action: DecideAction | None = None
    """Records what the approver decides."""
    ask_caller: Callable[[], Awaitable[bool]] | None = None
    """The caller, before each request: may it go on?"""


@dataclass(slots=True)
class Audience:
    """Who is shown what happens. Whoever watches must not disturb what is watched."""

    watcher: Watcher | None = None
    seats: Seats | None = None
    turn_id: str = ""
    on_dropped: Callable[[Exception], None] | None = None
    """Told when the watcher has raised: it is shown nothing more."""

    @property
    def is_there(self) -> bool:
        """Somebody looks on now."""
        return self.watcher is not None or (self.seats is not None and self.seats.is_taken)

    @property
    def may_come(self) -> bool:
        """Somebody looks on, or may do so before the next step."""
        return self.watcher is not None or self.seats is not None

    def tell(self, recorded: Sequence[StoredFact]) -> None:
        """Show stored facts."""
        if self.watcher is not None:
            try:
                self.watcher.facts(recorded)
            except Exception as error:
                self._drop(error)

    def hear(self, lines: OutputGlimpsed) -> None:
        """Whole lines of a call, for whoever listens."""
        if self.seats is not None:
            self.seats.hear(self.turn_id, lines)

    def glimpse(self, seen: Glimpse) -> None:
        """Show what is not stored."""
        if self.seats is not None and isinstance(seen, ModelGlimpsed):
            self.seats.hear(self.turn_id, seen)
        if self.watcher is not None:
            try:
                self.watcher.glimpse(seen)
            except Exception as error:
                self._drop(error)

    def _drop(self, error: Exception) -> None:
        self.watcher = None
        if self.on_dropped is not None:
            self.on_dropped(error)


class SpawnDesk(NamedTuple):
    """Where an agent makes others, and what it may make."""

    board: ChildBoard
    family: Family


class TurnTasks:
    """Work on the side of a turn; kept from being forgotten until it is done."""

    __slots__ = ("_tasks", "on_broken")

    def __init__(self) -> None:
        self._tasks: set[asyncio.Future[Any]] = set()
        self.on_broken: Callable[[BaseException], None] | None = None
        """Told when work on the side broke: whoever waits for its outcome would wait for ever."""

    def spawn(
        self, work: Coroutine[Any, Any, None], cancelled: Callable[[], None] | None = None
    ) -> "asyncio.Task[None]":
        """Begin a task. `cancelled` is told when it was."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done if cancelled is None else partial(self._done, cancelled=cancelled))
        return task

    def pending(self) -> "set[asyncio.Future[Any]]":
        return set(self._tasks)

    def _done(self, task: "asyncio.Future[Any]", cancelled: Callable[[], None] | None = None) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if cancelled is not None:
                cancelled()
        elif (error := task.exception()) is not None and self.on_broken is not None:
            self.on_broken(error)


@dataclass(slots=True)
class TurnWork:
    """One turn, ready to be run."""

    place: TurnPlace
    config: TurnConfig
    clock: Clock
    terms: ModelTerms
    code: TurnCode = field(default_factory=TurnCode)
    people: People = field(default_factory=People)
    audience: Audience = field(default_factory=Audience)
    gate: GateParts = field(default_factory=GateParts)
    after_call: AfterCall | None = None
    """The hooks after a call; None: nobody is asked, and nobody is waited for."""
    tainted_roots: dict[str, str] = field(default_factory=dict)
    """Folders with files that a conversation with untrusted input wrote, and why: commands may read them."""
    workspace_id: str = ""
    """Of the workspace that it works in; blank: in none."""
    works_at: WorkspacePlace | None = None
    """The place, of an agent of a runtime; None: on no files."""
    spawn_desk: SpawnDesk | None = None
    """Where other agents are made; None: nobody is there to look after them, or this agent may make none."""
    open_waits: Mapping[str, WaitRow] = field(default_factory=dict)
    """What the agent waited for when the turn was taken up, where somebody wakes it again."""
    open_tasks: Callable[[], Set[str]] = frozenset
    """The tasks that will tell the agent of their end."""
    recatalog: "Callable[[TurnWork], Awaitable[list[Fact]]] | None" = None
    """The catalogue as a fact, when a standing answer that came in the turn has changed it."""
    skip_said: int = 0
    """What the clock had skipped when the turn was last told of it."""
    tasks: TurnTasks = field(default_factory=TurnTasks)
    inbox: TurnInbox = field(default_factory=TurnInbox)
    drain: Drain = field(default_factory=Drain)
    texts: WholeTexts = field(init=False)
    """Replies that are too long for the log."""
    fact: FactMaker = field(init=False)

    def __post_init__(self) -> None:
        place = self.place
        self.fact = FactMaker(self.clock, place.row.thread_id, place.row.turn_id)
        self.tasks.on_broken = self.inbox.break_off
        self.texts = WholeTexts(lambda digest: place.store.get_blob(digest), self.tasks.spawn, self.inbox.look_again)

    @property
    def state(self) -> TurnState:
        return self.place.state

    def windows_of(self, level: Level) -> tuple[WindowRef, ...]:
        """The spend windows that a request of this level counts in."""
        windows = self.terms.windows
        if windows is None:
            return ()
        other = self.code.other_of(level)
        return windows.of(other.config.agent_name if other is not None else self.config.agent_name)

    def show(self, others: list[StoredFact], facts: Sequence[Fact], first_seq: int) -> None:
        """Keep and show what is stored now, in the order of the log: what others wrote, then what the owner did."""
        known = self.place.known
        if others:
            known.add(others)
        known.add_own(facts, first_seq)
        if self.audience.watcher is not None:
            agent_id = self.place.claim.agent_id
            own = (StoredFact(agent_id, first_seq + index, fact) for index, fact in enumerate(facts))
            self.audience.tell([*others, *own])

    # --- time and budget --------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.now() / 1_000_000

    def active_seconds(self) -> float:
        """Seconds of work so far. While nothing works and somebody outside is waited for, none pass."""
        state = self.state
        now = state.time.now if state.time.idle else self.clock.now() - self.unsaid_skip()
        return (state.time.active_us + max(0, now - (state.time.stretch_from or now))) / 1_000_000

    def unsaid_skip(self) -> int:
        """Microseconds in which nothing could run, and that no fact of the turn speaks of yet."""
        return self.clock.skipped() - self.skip_said

    def say_skip(self) -> list[Fact]:
        """The fact about time that does not count, where some passed."""
        skipped = self.clock.skipped() - self.skip_said
        if not skipped:
            return []
        self.skip_said += skipped
        return [self.fact(TurnTimeSkipped(skipped_us=skipped))]

    def out_of_time(self, seconds: float) -> Fact:
        event = LimitChanged(limit_name="wall_clock", limit=seconds, observed=round(self.active_seconds(), 3))
        return self.fact(event, self.state.step or None)

    def budget_left(self) -> BudgetLeft:
        return left_of(self.state.ledger, self.state.limits, self.active_seconds())
