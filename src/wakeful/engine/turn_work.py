"""Everything one turn is carried out with: its place in the store, its configuration, its code, its time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import Approval, Decided
from wakeful.contracts.budgets import BudgetLeft
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, Recorded
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
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.contracts.tools import Principal
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph
from wakeful.decisions.ledger import left_of
from wakeful.decisions.levels import Level
from wakeful.decisions.state import TurnState
from wakeful.decisions.workflows.validation import Types
from wakeful.engine.low_limits import LowLimits
from wakeful.engine.settings_left_out import LeftOut
from wakeful.engine.spend_windows import TurnWindows
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.watchers import Glimpse, Watcher
from wakeful.engine.whole_texts import WholeTexts
from wakeful.gate.running_call import AfterCall
from wakeful.gate.turn_gate import GateParts
from wakeful.ports import Claim, Clock, Ids, Model, Pricing, Store, TurnRow
from wakeful.tools.eager_start import EagerStarts
from wakeful.tools.function import Tool

_ASKED_PEOPLE = (ActionRequired, ActionResolved)
_ABOUT_ACTIONS = (*_ASKED_PEOPLE, RuntimeToolRequested, RuntimeToolResolved)


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
            fact.parent_call_id = level.made_by.call_id if level.made_by is not None else None
        if isinstance(event, _ABOUT_ACTIONS):
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
class TurnWork:
    """One turn, ready to be run."""

    store: Store
    claim: Claim
    row: TurnRow
    state: TurnState
    config: TurnConfig
    models: Sequence[Model]
    """The model and its fallbacks, in order."""
    tools: Mapping[str, Tool[Any]]
    clock: Clock
    ids: Ids
    jitter: Callable[[], float]
    """A number from 0 to 1, drawn anew each time."""
    call_ids: set[str]
    """Every call id this conversation has seen."""
    known: KnownFacts
    """The turn's stored facts, as far as this process has seen them."""
    desk: WorkflowDesk | None = None
    """In an editor."""
    others: Mapping[str, OtherAgent] = field(default_factory=dict)
    """Agents that calls of this turn run, by the name of such a call."""
    planner: Sequence[Model] = ()
    """Who plans, where that is somebody else."""
    summariser: Sequence[Model] = ()
    """Who folds conversations that grow too long, where that is somebody else."""
    deps: Any = None
    context: Mapping[str, Any] = field(default_factory=dict)
    principal: Principal | None = None
    stream: bool = True
    watcher: Watcher | None = None
    check_answer: CheckAnswer | None = None
    ask_caller: Callable[[], Awaitable[bool]] | None = None
    pricing: Pricing | None = None
    low_limits: LowLimits = field(default_factory=LowLimits)
    left_out: LeftOut = field(default_factory=LeftOut)
    windows: TurnWindows | None = None
    """None: no spend window holds."""
    catalog: ToolCatalog = field(default_factory=lambda: ToolCatalog(entries=()))
    """The tools of the turn, as people are shown them."""
    emit_mcp_progress: bool = True
    gate: GateParts = field(default_factory=GateParts)
    tainted_roots: dict[str, str] = field(default_factory=dict)
    """Folders with files that a conversation with untrusted input wrote, and why: commands may read them."""
    after_call: AfterCall | None = None
    """The hooks after a call; None: nobody is asked, and nobody is waited for."""
    approver: Callable[[Approval], Awaitable[Any]] | None = None
    decide_action: DecideAction | None = None
    recatalog: Callable[[], Awaitable[list[Fact]]] | None = None
    """The catalogue as a fact, when a standing answer that came in the turn has changed it."""
    on_look: Callable[[], None] | None = None
    """Told when there may be something to decide although no fact came in."""
    on_dropped: Callable[[Exception], None] | None = None
    """Told when whoever watches has raised."""
    on_broken: Callable[[BaseException], None] | None = None
    """Told when work on the side broke: whoever waits for its outcome would wait for ever."""
    on_ended: Callable[[], None] | None = None
    """Told when the turn has ended, and its end is stored."""
    eager: EagerStarts | None = None
    """While the turn runs: for what may be over without ever waiting."""
    skip_said: int = 0
    """What the clock had skipped when the turn was last told of it."""
    texts: WholeTexts = field(init=False)
    """Replies that are too long for the log."""
    fact: FactMaker = field(init=False)
    _tasks: "set[asyncio.Future[Any]]" = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fact = FactMaker(self.clock, self.row.thread_id, self.row.turn_id)
        self.texts = WholeTexts(lambda digest: self.store.get_blob(digest), self.spawn, self._look)

    def models_of(self, level: Level) -> Sequence[Model]:
        """Who is asked for a level: the agent's models, unless it is a phase with one of its own."""
        if level.kind == "planner" and self.planner:
            return self.planner
        other = self.other_of(level)
        if other is not None:
            return other.models
        return self.summariser if level.kind == "summary" and self.summariser else self.models

    def tools_of(self, level: Level) -> Mapping[str, Tool[Any]]:
        """The code of a level's tools."""
        other = self.other_of(level)
        return other.tools if other is not None else self.tools

    def deps_of(self, level: Level) -> Any:
        """What the tools of a level are given."""
        other = self.other_of(level)
        return self.deps if other is None else other.deps

    def windows_of(self, level: Level) -> tuple[WindowRef, ...]:
        """The spend windows that a request of this level counts in."""
        if self.windows is None:
            return ()
        other = self.other_of(level)
        return self.windows.of(other.config.agent_name if other is not None else self.config.agent_name)

    def other_of(self, level: Level) -> OtherAgent | None:
        """The agent that works at a level, where it is not the turn's own: a child's children are the child's."""
        if not self.others:
            return None
        here: Level | None = level
        while here is not None:
            if here.started is not None and here.started.tool in self.others:
                return self.others[here.started.tool]
            here = here.parent
        return None

    def _look(self) -> None:
        if self.on_look is not None:
            self.on_look()

    # --- who sees it ------------------------------------------------------------------------------------------------

    def show(self, others: list[Recorded], facts: Sequence[Fact], first_seq: int) -> None:
        """Keep and show what is stored now, in the order of the log: what others wrote, then what the owner did."""
        if others:
            self.known.add(others)
        self.known.add_own(facts, first_seq)
        if self.watcher is not None:
            agent_id = self.claim.agent_id
            self.tell([*others, *(Recorded(agent_id, first_seq + index, fact) for index, fact in enumerate(facts))])

    def tell(self, recorded: Sequence[Recorded]) -> None:
        """Show stored facts to whoever watches."""
        if self.watcher is not None:
            try:
                self.watcher.facts(recorded)
            except Exception as error:
                self._drop_watcher(error)

    def glimpse(self, seen: Glimpse) -> None:
        if self.watcher is not None:
            try:
                self.watcher.glimpse(seen)
            except Exception as error:
                self._drop_watcher(error)

    def _drop_watcher(self, error: Exception) -> None:
        """Whoever watches must not disturb what is watched; that they see no more is on record."""
        self.watcher = None
        if self.on_dropped is not None:
            self.on_dropped(error)

    # --- tasks ------------------------------------------------------------------------------------------------------

    def spawn(
        self, work: Coroutine[Any, Any, None], cancelled: Callable[[], None] | None = None
    ) -> "asyncio.Task[None]":
        """Work on the side; kept from being forgotten until it is done. `cancelled` is told when it was."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done if cancelled is None else partial(self._done, cancelled=cancelled))
        return task

    def start(
        self, work: Coroutine[Any, Any, None], cancelled: Callable[[], None] | None = None
    ) -> "asyncio.Future[None] | None":
        """The same for work that may never wait; None: it is over."""
        if self.eager is None:
            return self.spawn(work, cancelled)
        begun = self.eager.start(work)
        if begun.done():
            self._done(begun, cancelled)
            return None
        self._tasks.add(begun)
        begun.add_done_callback(partial(self._done, cancelled=cancelled))
        return begun

    def _done(self, task: "asyncio.Future[Any]", cancelled: Callable[[], None] | None = None) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if cancelled is not None:
                cancelled()
        elif (error := task.exception()) is not None and self.on_broken is not None:
            self.on_broken(error)

    def pending_tasks(self) -> "set[asyncio.Future[Any]]":
        return set(self._tasks)

    # --- time and budget --------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.now() / 1_000_000

    def active_seconds(self) -> float:
        """Seconds of work so far. While nothing works and somebody outside is waited for, none pass."""
        state = self.state
        now = state.now if state.idle else self.clock.now() - self.unsaid_skip()
        return (state.active_us + max(0, now - (state.stretch_from or now))) / 1_000_000

    def unsaid_skip(self) -> int:
        """Microseconds in which nothing could run, and that no fact of the turn speaks of yet."""
        return self.clock.skipped() - self.skip_said

    def say_skip(self) -> list[Fact]:
        """The fact about time that does not count, where some passed."""
        skipped = self.unsaid_skip()
        if not skipped:
            return []
        self.skip_said += skipped
        return [self.fact(TurnTimeSkipped(skipped_us=skipped))]

    def out_of_time(self, seconds: float) -> Fact:
        event = LimitChanged(limit_name="wall_clock", limit=seconds, observed=round(self.active_seconds(), 3))
        return self.fact(event, self.state.step or None)

    def budget_left(self) -> BudgetLeft:
        return left_of(self.state.ledger, self.state.limits, self.active_seconds())
