"""Everything the runtime needs from the world, as Protocols, in one file.

An implementation is named nowhere but in `bootstrap`. What a method must not do is written on it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import History
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.frames import ProviderPromptFrame
from wakeful.contracts.models import AgentTokenUsageSummary, ModelGlimpse, Reply, TokenUsage, ToolChoice
from wakeful.contracts.spending import SpendRow
from wakeful.contracts.tools import ToolDeclaration

if TYPE_CHECKING:  # what only the conversation loop needs is not loaded for everybody
    from collections.abc import Mapping

    from wakeful.contracts.conversation_result import ConversationResult
    from wakeful.contracts.declarations import RuntimeToolDeclaration
    from wakeful.contracts.events import CostEstimated, CostRecorded
    from wakeful.contracts.knowledge import Passage
    from wakeful.contracts.pending_actions import PendingAction
    from wakeful.contracts.requests import ConversationRequest
    from wakeful.contracts.runtime_tools import RuntimeToolRequest, RuntimeToolResult
    from wakeful.contracts.tool_calls import ToolCall
    from wakeful.contracts.transcript import Message


class Clock(Protocol):
    """Time. Nothing else in the runtime may ask for it."""

    def now(self) -> int:
        """Microseconds since the epoch, for facts."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for durations."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """New names. Unique for ever, and of no other meaning."""

    def new(self, prefix: str) -> str: ...


# --- the store ---------------------------------------------------------------------------------------------------

TurnState: TypeAlias = Literal["admitted", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
OPEN_STATES: frozenset[TurnState] = frozenset({"admitted", "running", "suspended"})


class TurnRow(NamedTuple):
    """What the store knows of a turn without folding anything."""

    turn_id: str
    agent_id: str
    agent_name: str
    thread_id: str
    state: TurnState
    first_seq: int
    """Its `message.admitted`."""
    last_seq: int
    """Its newest event that changed this row, or that an outsider wrote; of an ended turn, its newest event."""
    window_from: int
    """The first event its conversation rests on."""
    turn_index: int
    """From 1 within its thread; 0 until it started."""
    key: str | None
    fingerprint: str
    prompt_preview: str
    waiting_for: tuple[str, ...]
    created_at: int
    ended_at: int | None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class UnknownRow(NamedTuple):
    """A call whose outcome nobody knows: somebody has to find out."""

    call_id: str
    agent_id: str
    turn_id: str
    thread_id: str
    step: int
    tool_name: str
    safe_args: dict[str, Any]
    reason: str
    since: int


ActionKind: TypeAlias = Literal["approval", "question", "client_tool", "pending_action"]


class ActionRow(NamedTuple):
    """Something a turn asked of somebody outside: an approval, a question, a call that a client runs. Decided once.

    A host may keep such things of its own here, too (`action.staged`): those have no turn.
    """

    action_id: str
    kind: ActionKind
    agent_id: str
    agent_name: str
    turn_id: str
    thread_id: str
    step: int
    call_id: str
    tool_name: str
    status: str
    """`pending`; then approved, rejected, timed_out, or, of a client's call, completed."""
    requested_at: int
    expires_at: int
    decided_at: int | None
    decided_by: str | None
    required_seq: int
    """The event that asked."""
    resolved_seq: int | None
    """The event that decided."""


class RuleRow(NamedTuple):
    """A rule somebody added while deciding: calls like that one are not asked about again."""

    rule_id: str
    agent_id: str
    agent_name: str
    rule: dict[str, Any]
    added_at: int
    added_by: str
    revoked_at: int | None
    revoked_by: str | None


class WorkflowRow(NamedTuple):
    """One revision of a workflow. Revisions are numbered from 1 without gaps and never change."""

    workflow_id: str
    revision: int
    name: str
    graph: str
    """JSON, as it was given: the store does not read it."""
    created_at: int


RunKind: TypeAlias = Literal["task", "package"]


class TaskRunRow(NamedTuple):
    """A run that was handed to an executor or to a host: a task, or a package. Claimed once."""

    run_id: str
    kind: RunKind
    session_id: str
    status: str
    record: str
    """JSON, as it was given: the store does not read it."""
    revision: int
    """From 1; each change adds one, and has to name the one it is based on."""
    created_at: int
    updated_at: int


class TaskRunEvent(NamedTuple):
    """Something that happened to a run, numbered from 1 within it."""

    seq: int
    at: int
    name: str
    payload: str
    """JSON."""


class ImportedAgent(NamedTuple):
    """An agent that came in a bundle."""

    slug: str
    definition: str
    """JSON, as it was given: the store does not read it."""
    imported_at: int


@dataclass(slots=True)
class Claim:
    """The right to append to a turn: the agent's lease and the turn's own epoch. Stale ones are refused."""

    agent_id: str
    turn_id: str
    owner: str
    agent_epoch: int
    turn_epoch: int
    seen: int
    """Up to here the owner knows the stream: after an `append` that wrote something, the number of its last fact."""
    fresh: bool = field(default=True)
    """False when the turn was claimed before, here or elsewhere: what is open in it was cut off."""


class Admitted(NamedTuple):
    """The answer to an admission."""

    turn: TurnRow
    created: bool
    """False: the key was there already and nothing was written."""


class Damage(NamedTuple):
    """A place where stored bytes are not what was written."""

    agent_id: str
    seq: int
    what: str


class Watch(Protocol):
    """Wakes whoever follows an agent's stream. May wake for nothing; never misses a commit."""

    async def wait(self, timeout: float | None = None) -> None: ...

    def close(self) -> None: ...


class TaskRunStore(Protocol):
    """Runs of tasks and packages, and what happened to each. All writing is done with a barrier."""

    async def claim(
        self,
        run_id: str,
        kind: RunKind,
        session_id: str,
        status: str,
        record: str,
        *,
        at: int,
        event: str,
        payload: str,
    ) -> bool:
        """Begin a run, with its first event. False, and nothing is written, when the id was claimed before."""
        ...

    async def get(self, run_id: str) -> TaskRunRow | None: ...

    async def all(self, kind: RunKind, *, limit: int | None = None) -> list[TaskRunRow]:
        """Newest first."""
        ...

    async def change(
        self, run_id: str, revision: int, status: str, record: str, *, at: int, event: str, payload: str
    ) -> bool:
        """The next revision, with its event. False, and nothing is written, unless `revision` is the newest."""
        ...

    async def note(self, run_id: str, *, at: int, event: str, payload: str) -> bool:
        """Add an event and change nothing else. False when there is no such run."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[TaskRunEvent]:
        """In order."""
        ...


class ImportedAgents(Protocol):
    """Agents that came in bundles, by slug. All writing is done with a barrier."""

    async def put(self, slug: str, definition: str, *, at: int, replace: bool) -> bool:
        """False, and nothing is written, when one is there and is not to be replaced."""
        ...

    async def get(self, slug: str) -> ImportedAgent | None: ...

    async def all(self) -> list[ImportedAgent]:
        """By slug."""
        ...


class Store(Protocol):
    """The log and the rows that follow from it. One interface, several backends, one contract suite.

    The store numbers events inside its transaction, chains their hashes for each agent, and changes the rows a fact
    stands for in that fact's own transaction. It never shows, returns or acknowledges what is not committed.
    """

    @property
    def location(self) -> str:
        """What a person would type after `--store`."""
        ...

    @property
    def runtime_id(self) -> str:
        """The installation this store belongs to."""
        ...

    @property
    def secret(self) -> bytes:
        """Known to this store alone: what approvals are bound with. Never shown, logged or handed on."""
        ...

    @property
    def task_runs(self) -> TaskRunStore: ...

    @property
    def imported_agents(self) -> ImportedAgents: ...

    async def admit(self, agent_id: str, facts: Sequence[Fact]) -> Admitted | None:
        """Append outsider facts, with a barrier: what returns survives a power cut.

        A `message.admitted` opens its turn's row. When its key is taken, nothing is written and the turn of that key is
        returned; the caller compares fingerprints. Returns None when no message was among the facts.
        Raises EventRefused for a kind that outsiders may not append, AlreadyDecided for a second decision.
        """
        ...

    async def claim(self, turn_id: str) -> Claim:
        """Take the agent's lease and the turn. Raises AgentBusy, naming the holder, while another live owner has it."""
        ...

    async def release(self, claim: Claim) -> None:
        """Let go. Does not raise when the claim is stale."""
        ...

    async def hold(self, claim: Claim) -> None:
        """Make sure the lease is still ours, renewing it when it is old. Raises Fenced. Asked before an effect."""
        ...

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False
    ) -> list[Recorded]:
        """Append the owner's facts in one transaction and return the outsiders' facts of this turn not seen before.

        Without `barrier` what returns survives a kill; with it, a power cut. With `rest`, raises RestRefused and writes
        nothing while an outsider's fact has not been seen. Raises Fenced when the claim is stale. Writes nothing and
        raises AlreadyDecided when it decides what somebody outside has just decided, WindowFull when a spend window has
        no room for what a request holds back, AlreadyNoticed for a second notice about a window.
        """
        ...

    async def sync(self) -> None:
        """A barrier for everything committed so far."""
        ...

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[Recorded]:
        """Events in order, verified against the chain. Raises StoreDamaged, naming the agent."""
        ...

    async def turn(self, turn_id: str) -> TurnRow | None: ...

    async def turn_of_key(self, key: str) -> TurnRow | None: ...

    async def turns(self, *, open_only: bool = False, limit: int | None = None) -> list[TurnRow]:
        """Newest first."""
        ...

    async def running(self, agent_id: str) -> list[TurnRow]:
        """The agent's turns that are under way, newest first; those that died with their process still say so."""
        ...

    async def is_held(self, agent_id: str) -> bool:
        """Does anybody who lives run turns of this agent? Looking changes nothing."""
        ...

    async def turns_of_thread(self, agent_id: str, thread_id: str) -> list[TurnRow]:
        """Oldest first."""
        ...

    async def agents(self) -> list[str]: ...

    async def unknown(self) -> list[UnknownRow]:
        """Calls whose outcome is open, oldest first."""
        ...

    async def action(self, action_id: str) -> ActionRow | None: ...

    async def actions(self, *, pending_only: bool = False, turn_id: str | None = None) -> list[ActionRow]:
        """What was asked of people and clients, oldest first."""
        ...

    async def rules(self, agent_name: str | None = None) -> list[RuleRow]:
        """Rules that were added while deciding, oldest first, revoked ones included."""
        ...

    async def spending(self, scopes: Sequence[str] | None = None, *, after: int = 0) -> list[SpendRow]:
        """Spend windows that turn after a moment, by scope, length and time; of these scopes, or of all."""
        ...

    async def usage(self, agent_id: str) -> AgentTokenUsageSummary: ...

    async def save_workflow(
        self,
        name: str,
        graph: str,
        *,
        new_id: str,
        created_at: int,
        workflow_id: str | None = None,
        key: str | None = None,
    ) -> WorkflowRow:
        """Keep a graph, with a barrier, as the next revision of `workflow_id`.

        Without one: of the workflow that has this name now, or as the first revision of `new_id`. Raises
        WorkflowNotFound, and WorkflowNameTaken when another workflow has the name. What was saved under the same key
        before is returned, and nothing is written.
        """
        ...

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        """A revision, or the newest."""
        ...

    async def workflows(self) -> list[WorkflowRow]:
        """The newest revision of each, by name."""
        ...

    async def delete_workflow(self, workflow_id: str) -> bool:
        """Forget every revision; False when there was none. What runs has its own copy of the graph."""
        ...

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        """Keep bytes under the hash of what they are. On disk before any event can refer to them."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """Raises StoreDamaged when the bytes do not match their name."""
        ...

    def reader(self, agent_id: str, turn_id: str) -> Callable[[], list[Recorded]]:
        """A function that reads a turn's events without the loop, also after this store was closed."""
        ...

    def watch(self, agent_id: str, *, outsiders_only: bool = False) -> Watch:
        """Follow an agent's stream. With `outsiders_only`, the owner's own appends do not wake it."""
        ...

    async def rebuild_views(self) -> None:
        """Throw the rows away and make them again from the log."""
        ...

    async def verify(self) -> list[Damage]:
        """Read everything and check it against what was written."""
        ...

    async def close(self) -> None: ...


# --- models --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ModelRequest:
    """One request. `history` only ever grows: a provider encodes each item once (`History.encoded`)."""

    instructions: str
    history: History
    tools: Sequence[ToolDeclaration]
    turn_id: str
    step: int
    attempt: int
    answered: int
    """Model calls of this level that were answered: what a script is indexed by."""
    tool_choice: ToolChoice = "auto"
    settings: dict[str, Any] = field(default_factory=dict)
    """temperature, max_tokens and the like."""
    output_schema: dict[str, Any] | None = None
    stream: bool = True
    watched: bool = True
    """Somebody sees the glimpses; when nobody does, none need be made."""
    level: str | None = None
    """Which level of the turn asks; None: the root."""
    depth: int = 0
    frame: ProviderPromptFrame | None = None
    """The prompt before the conversation, block by block, with what caches may key on."""
    accepted: Callable[[str], Awaitable[None]] | None = None
    """To be awaited by a model whose provider works at the request by itself, with the id its answer can be had under.

    It returns when the id is on disk; until then the model waits for nothing else.
    """


class Model(Protocol):
    """A model of a provider. What some have beyond it: `Reattachable`, `Refusing`, `Secretive`."""

    @property
    def ref(self) -> str:
        """`provider:model`."""
        ...

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, then exactly one Reply, last. Raises ModelFailure; never a reply that may not be whole."""
        ...


@runtime_checkable
class Collection(Protocol):
    """A named set of texts that a turn may look things up in."""

    @property
    def name(self) -> str: ...

    @property
    def untrusted(self) -> bool:
        """May anybody have written what it finds?"""
        ...

    async def search(self, question: str, limit: int = 8) -> "Sequence[Passage]":
        """The passages nearest to the question, best first. May raise: the turn goes on without them."""
        ...


class Pricing(Protocol):
    """What asking a model costs. None from it: nobody knows, which is not the same as nothing."""

    async def ready(self, models: "Sequence[Model]") -> None:
        """Told which models a turn may ask, before it asks one."""
        ...

    def estimate(
        self, model: Model, input_tokens: Callable[[], int], most_output: int, at: int
    ) -> "CostEstimated | None":
        """The most a request can cost. `input_tokens` is called only when the price is known."""
        ...

    def spent(
        self, model: Model, usage: TokenUsage, *, tier: str | None, at: int, attempt: int = 1, lost: bool = False
    ) -> "CostRecorded | None":
        """What an attempt cost that used these tokens, at a time in Unix microseconds."""
        ...


@runtime_checkable
class Reattachable(Protocol):
    """A model whose provider may work at a request by itself (`ModelRequest.accepted`): a crash does not lose it."""

    def reattach(self, request: ModelRequest, response_id: str) -> AsyncIterator[ModelGlimpse | Reply]:
        """The answer of an accepted request, as `respond` gives it. Nothing is sent to be answered again.

        Raises ResponseGone when the provider does not have it.
        """
        ...

    async def abandon(self, response_id: str) -> None:
        """Tell the provider that nobody waits for the answer. Raises ModelFailure."""
        ...


class Refusing(Protocol):
    """A model that can say beforehand that a request cannot be made: then it is none, and not counted as one."""

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure | None:
        """Of kind `unsupported_transport`; None when the model can be asked."""
        ...


@runtime_checkable
class Secretive(Protocol):
    """A model that knows which values must not stand in any message, such as its key."""

    def redacted(self, text: str) -> str:
        """The text without them."""
        ...


# --- the conversation loop -------------------------------------------------------------------------------------------
# What a host brings to `ConversationLoop`. Every method may be plain or async; a plain one runs off the event loop.


class ToolExecutor(Protocol):
    """Runs a host's tools."""

    def execute(self, call: "ToolCall", declaration: "RuntimeToolDeclaration", context: dict[str, Any]) -> Any:
        """An object: `{success, result | error, metadata?, runtime?}`, or a bare result. Raising fails this one call.

        `context["cancelled"]` is set when nobody waits for the call any more; `context["deadline"]`, where it is there,
        is when that will be.
        """
        ...


class ConversationLock(Protocol):
    """Keeps two runners from one transcript."""

    def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> Any:
        """A token, or None while somebody else holds the lock. A lock past its time may be taken over."""
        ...

    def release_session_lock(self, session_id: str, token: str) -> Any:
        """True when it was this token's. A stale token must not release what somebody else holds now."""
        ...


class TranscriptPersister(Protocol):
    """Keeps transcripts where the host wants them."""

    def persist(
        self, messages: "Sequence[Message]", request: "ConversationRequest", result: "ConversationResult"
    ) -> Any:
        """The transcript's id, or an empty text. Called once a run, however it ended; raising changes nothing."""
        ...


class CompletionPolicy(Protocol):
    """Says when a host's work is done."""

    def record_tool_result(
        self,
        tool_name: str,
        declaration: "RuntimeToolDeclaration | None",
        tool_result: dict[str, Any],
        context: dict[str, Any],
        turn_count: int,
    ) -> Any:
        """Called with every result: `{complete, message?, context?}`. Raising, or anything else, says nothing."""
        ...


# --- what waits for somebody outside ---------------------------------------------------------------------------------
# Methods may be plain or async, like the others that hosts bring.


class Settled(NamedTuple):
    """The answer to an attempt to end a request."""

    won: bool
    """False: it had ended before, and nothing was written."""
    request: "RuntimeToolRequest"
    """As it is stored now."""
    result: "RuntimeToolResult | None"
    """The result that is stored: the winner's."""


class RuntimeToolRequestStore(Protocol):
    """Keeps calls that somebody outside answers.

    `complete` and `timeout` compare and set: they end a request that is pending, once, and tell everybody else what it
    ended with. A store says so with `compare_and_set = True`; one that does not is refused for ending requests.
    """

    compare_and_set: bool

    def create(self, request: "RuntimeToolRequest") -> Any:
        """Keep a pending request. One with that id may be there already: then it stays as it is."""
        ...

    def get(self, request_id: str) -> Any:
        """The RuntimeToolRequest, or None."""
        ...

    def complete(self, request_id: str, result: "RuntimeToolResult") -> Any:
        """End it with a result: Settled, or None when there is no such request."""
        ...

    def timeout(self, request_id: str, result: "RuntimeToolResult | None" = None) -> Any:
        """End it unanswered, keeping `result` as what it ended with: Settled, or None when there is no such request."""
        ...

    def recent_pending(self, query: "Mapping[str, Any]") -> Any:
        """Pending requests, newest first. Keys of the query: run_id, tool_name, before (an ISO time), limit."""
        ...


class RuntimeToolContinuation(Protocol):
    """Goes on with a run once its call is answered."""

    def resume(self, request: "RuntimeToolRequest", result: "RuntimeToolResult", context: dict[str, Any]) -> Any:
        """An object. Called once, for whoever ended the request."""
        ...


class PendingActionStore(Protocol):
    """Keeps actions that wait for a decision; they are there again after a restart."""

    def store(self, action: "PendingAction") -> Any:
        """Keep a pending action. Raises when it cannot: an action that is not kept cannot be decided."""
        ...

    def get(self, action_id: str) -> Any:
        """The PendingAction, or None."""
        ...

    def list(self, query: "Mapping[str, Any]") -> Any:
        """Actions, newest first. Keys of the query: status, kind, agent, workspace, limit."""
        ...

    def summary(self, query: "Mapping[str, Any]") -> Any:
        """How many there are: an object status -> count."""
        ...

    def record_resolution(self, action: "PendingAction") -> Any:
        """Compare and set: True when the action was pending and is now as given; False when it had ended before."""
        ...

    def expire(self, now: str) -> Any:
        """End what is past its `expires_at`; how many that were."""
        ...

    def delete(self, action_id: str, *, resolver: str, now: str) -> Any:
        """End a pending action as deleted; True when it was there and pending."""
        ...
