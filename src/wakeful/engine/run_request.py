"""What somebody asks of the runtime, and what it is carried out with."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from wakeful.contracts.approvals import Approval
from wakeful.contracts.authority import Authority
from wakeful.contracts.budgets import Budget, LimitOverrides, Limits, SpendWindow
from wakeful.contracts.content import Prompt
from wakeful.contracts.events import StopRule
from wakeful.contracts.policies import PolicyContext
from wakeful.contracts.tools import Principal
from wakeful.contracts.waking import ContinuationResolution
from wakeful.contracts.workflows import WorkflowGraph, WorkflowRun
from wakeful.decisions.routing import Source
from wakeful.decisions.secret_values import SecretValues, keys_only
from wakeful.decisions.spend_windows import NO_WINDOWS, OwnerWindows
from wakeful.decisions.work_items.advice import USUAL_TERMS, ReminderTerms
from wakeful.engine.agent import Agent
from wakeful.engine.drain import Drain
from wakeful.engine.watchers import Seats, Watcher
from wakeful.gate.locks import LockTable
from wakeful.gate.turn_gate import Consult
from wakeful.ports import Clock, Ids, Model, Pricing, Store, TurnRow
from wakeful.ports.waits import WaitRow
from wakeful.settings.agent_homes import agent_home
from wakeful.settings.home import home
from wakeful.settings.model_rules import ModelRules
from wakeful.tools.hooks import Hook
from wakeful.tools.source import Surroundings

if TYPE_CHECKING:
    from wakeful.engine.workflow_registry import WorkflowRegistry

T = TypeVar("T")
ResolveModel: TypeAlias = Callable[[str | Model], Model]


class SharedReads:
    """Reads that many callers need at the same moment, done once for all of them.

    What is read is known until the loop has gone round once. What another process commits meanwhile was committed at
    the same moment, as far as anybody can tell.
    """

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}

    def __contains__(self, name: object) -> bool:
        """Has somebody read it just now?"""
        return name in self._known

    async def get(self, name: object, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` returns, or has returned to somebody else who gave the same name just now."""
        if name in self._known:
            known: T = self._known[name]
            return known
        found = await read()
        if not self._known:
            asyncio.get_running_loop().call_soon(self._known.clear)
        self._known[name] = found
        return found

    def forget(self) -> None:
        """Somebody here has written what may have been read. A store in memory does not wait for anything."""
        self._known.clear()


@dataclass(slots=True, frozen=True)
class Engine:
    """What turns are run with, whoever asks."""

    store: Store
    clock: Clock
    ids: Ids
    jitter: Callable[[], float]
    resolve_model: ResolveModel
    pricing: Pricing
    locks: LockTable
    surroundings: Surroundings
    hooks: tuple[Hook, ...]
    """Asked about every call of every agent."""
    linger: Callable[[Coroutine[Any, Any, None]], None]
    """Keeps the store open for work that outlives its turn (a thread that has yet to answer)."""
    limit_overrides: LimitOverrides
    """What the owner says instead of the numbers of a budget's profile."""
    model_rules: ModelRules
    """Which models the owner lets agents ask."""
    reminder_terms: ReminderTerms = USUAL_TERMS
    """When a model is reminded of its current work item."""
    reads: SharedReads = field(default_factory=SharedReads)
    owner_windows: OwnerWindows = NO_WINDOWS
    """What the owner lets everybody, or single principals, spend over time."""

    def agent_home(self, agent_id: str) -> Path:
        """The folder of an agent, whether it is there or not."""
        return agent_home(self.home(), agent_id)

    def home(self) -> str:
        """The home that the folders of agents are in."""
        base = self.surroundings.home
        return str(home()) if base is None else base

    def keys(self) -> SecretValues:
        """The runtime's own keys: nothing that is written down or shown may hold one."""
        return keys_only(self.surroundings.secrets() | {self.store.secret.hex()})


class ThreadRows(NamedTuple):
    """Rows that were read after a thread was claimed, to decide about its next turn. Nobody reads them again."""

    turns: Sequence[TurnRow]
    """The newest of the thread, oldest first."""
    waits: Sequence[WaitRow]
    """The open ones of its agent."""


@dataclass(slots=True, frozen=True)
class MessageOrigin:
    """Where a message comes from, and whose word it is."""

    surface: str = "run_once"
    policy_context: PolicyContext = "library"
    """Where it is said: what an agent without a policy of its own is held to."""
    authority: Authority = "operator_instruction"
    """Whose word the prompt is. Nothing public sets it: whoever takes messages in from outside does."""
    derived_from: Authority | None = None
    """The lowest authority in the chain of causes behind it; None: its own."""
    model_from: Source = "agent_config"
    """Who named the model."""


@dataclass(slots=True, frozen=True)
class WorkflowTerms:
    """What a turn runs when it is no conversation, and what it may run and build when it is one."""

    run: WorkflowRun | None = None
    """What the turn is to run. It is kept with the message."""
    agents: "tuple[Agent[Any, Any], ...]" = ()
    """Others that the turn may run: those that a workflow's nodes name."""
    find: "Callable[[WorkflowGraph], Awaitable[Sequence[Agent[Any, Any]]]] | None" = None
    """Finds those that the nodes of a graph name, where whoever runs the turn cannot know the graph beforehand."""
    editing: str | None = None
    """The workflow that is open where this is said: an editor. Its turn may build workflows."""
    registry: "WorkflowRegistry | None" = None
    """With `editing`: where workflows are saved, and what they may be made of; None: what the agents here have."""


@dataclass(slots=True, frozen=True)
class HostTerms:
    """What a host asks for that runs a loop, or a tree of turns, of its own."""

    limits: Limits | None = None
    """What is left of a budget that several turns share; it goes before any budget."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the turn's memory holds when it begins."""
    depth: int = 0
    """Of the turn in its host's own tree."""
    payers: "tuple[tuple[str, tuple[SpendWindow, ...]], ...]" = ()
    """Agents in whose spend windows everything counts besides the turn's own: those that made its agent."""
    generation: int = 0
    """How many agents made one another before this one: 0 for one that nobody made."""
    prompt_is_whole: bool = False
    """The agent's instructions are the whole prompt: the runtime puts no words of its own before them."""
    stop_rule: StopRule = "natural"
    ask_caller: Callable[[], Awaitable[bool]] | None = None
    """Asked between rounds whether to go on."""
    consult: Consult | None = None
    """Heard about every call, after the hooks."""
    consult_unfit: Consult | None = None
    announce_requests: bool = True
    """Tell the hooks of the process what clients are asked; a caller that keeps requests elsewhere tells its own."""


@dataclass(slots=True)
class Patience:
    """How long a caller waits for providers that are away, in all for one call, whatever turns it takes up."""

    seconds: float = 0.0
    """What is left."""
    is_pressing: bool = False
    """A person wants the provider to be asked now, once."""


@dataclass(slots=True)
class RunRequest:
    """What somebody asks for."""

    agent: Agent[Any, Any]
    prompt: Prompt
    deps: Any = None
    context: Mapping[str, Any] = field(default_factory=dict)
    principal: Principal | None = None
    thread: str | None = None
    key: str | None = None
    supersede: bool = False
    """Have the open turns of the thread stopped first."""
    history: Any = None
    budget: Budget | None = None
    collections: tuple[str, ...] | None = None
    """Which of the agent's collections are searched for the message; None: all of them."""
    recalls: bool = False
    """The agent's memory is searched for the message."""
    stream: bool = True
    watcher: Watcher | None = None
    seats: Seats | None = None
    """Where listeners of a runtime hear the words of this thread."""
    on_turn: Callable[[str, str], None] | None = None
    """Told the turn's and the agent's id as soon as the turn is safe."""
    approver: Callable[[Approval], Any] | None = None
    """Asked about what a person has to decide; without one the turn rests on it."""
    hooks: tuple[Hook, ...] = ()
    """Of this run; the runtime's and the agent's are asked before them."""
    origin: MessageOrigin = MessageOrigin()
    workflows: WorkflowTerms = WorkflowTerms()
    host: HostTerms = HostTerms()
    continuation: ContinuationResolution | None = None
    """What the first message of a turn that a runtime opens means to its agent."""
    rows: ThreadRows | None = None
    """What was read of its thread, where that was just now."""
    revision: str | None = None
    """The definition of the agent, where a runtime keeps them."""
    patience: Patience = field(default_factory=Patience)
    """Of whoever waits for the result. A scheduler has none: it looks when the turn is due."""
    drain: Drain = field(default_factory=Drain)
    """Of the process that runs the turn, where that ends in order."""
