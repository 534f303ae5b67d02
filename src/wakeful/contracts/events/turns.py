"""Facts about sessions, messages and turns."""

from typing import Any, ClassVar, Literal, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import Item, UserItem
from wakeful.contracts.events.base import THREAD, Event, Need, Preview
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.messages import (
    AdmissionContext,
    BriefBody,
    DeliverySurface,
    JsonBody,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
    TriggerKind,
    Trust,
)
from wakeful.contracts.models import ProviderAttemptTimeline, TokenUsage
from wakeful.contracts.policies import PolicyContext
from wakeful.contracts.spending import WindowPassed, WindowRef
from wakeful.contracts.waking import ContinuationResolution


class BudgetNoticed(Event):
    """Most of a window is used up. Once a window, by whoever saw it first."""

    kind: ClassVar[str] = "budget.noticed"

    window: WindowRef
    percent: int
    spent: str
    """Dollars, as a decimal text."""
    held: str
    """Dollars that requests under way may cost."""
    granted: str = "0"


class BudgetGranted(Event):
    """Somebody allowed more in one window, beyond its limit."""

    kind: ClassVar[str] = "budget.granted"
    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True

    window: WindowRef
    """Its `usd` is what the owner's file said of it then; 0 where the file says nothing."""
    usd: str
    """How much more, as a decimal text."""
    granted_by: str
    reason: str = ""


TurnStatus: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled"]
StopCause: TypeAlias = Literal[
    "natural",
    "max_steps",
    "iterations",
    "subtasks",
    "llm_calls",
    "tool_calls",
    "wall_clock",
    "tokens",
    "bytes",
    "cost",
    "context_budget",
    "stalled",
    "node_failed",
    "provider_error",
    "planner_error",
    "routing_not_possible",
    "invalid_output",
    "cut_off",
    "filtered",
    "refused",
    "cancelled",
    "superseded",
    "interrupted",
    "runtime_error",
]
LimitName: TypeAlias = Literal[
    "max_steps",
    "iterations",
    "subtasks",
    "llm_calls",
    "tool_calls",
    "wall_clock",
    "tokens",
    "bytes",
    "cost",
    "context_budget",
    "stalled",
]
"""A limit of a turn, and the reason of a turn that reached it."""
InterruptReason: TypeAlias = Literal["user_interrupt", "superseded", "budget", "runtime_shutdown", "parent_cancelled"]
"""Why a turn is asked to stop."""
IgnoreReason: TypeAlias = Literal["no_active_turn", "already_ending", "not_allowed", "unknown_target"]
"""Why such a request changes nothing."""
StopRule: TypeAlias = Literal["natural", "single", "caller"]
"""natural: until a reply without calls. single: one round. caller: somebody is asked after each round."""


class SessionStarted(Event):
    """An agent's stream began."""

    kind: ClassVar[str] = "session.started"
    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True

    agent_name: str
    temporary: bool = False
    """Made for a single run that named no thread."""


class MessageAdmitted(Event):
    """Input is safe: from here on the runtime owes it an answer. Acknowledged only after this is on disk.

    With a turn's id it opens that turn, or is said to it; without one it waits in its thread's queue until a turn is
    started that takes it.
    """

    kind: ClassVar[str] = "message.admitted"
    aliases: ClassVar[tuple[str, ...]] = ("message_admitted",)
    needs: ClassVar[tuple[Need, ...]] = THREAD
    version: ClassVar[int] = 2
    outsider: ClassVar[bool] = True

    message_id: str
    item: UserItem
    """Its body, unless that is data: then it has no parts."""
    body: JsonBody | BriefBody | None = None
    """A body that is more than words; shown to a model as text when its prompt is made. None: `item` is the body."""
    message_kind: MessageKind = "operator_prompt"
    trigger_kind: TriggerKind | None = None
    """Not stored, because it follows from `message_kind`; readers get it always."""
    origin: Origin = OperatorOrigin()
    authority_class: Authority = "operator_instruction"
    trust: Trust | None = None
    """Not stored, because it follows from `authority_class`; readers get it always."""
    derived_from: Authority | None = None
    """The lowest authority in the chain of causes behind it; None: its own."""
    priority: Priority = "normal"
    expires_at: int | None = None
    """Unix microseconds after which no turn is to begin with it: whoever sent it wants no late answer. None: never."""
    delivery_surface: DeliverySurface = "run_once"
    admission_context: AdmissionContext = "local_process"
    source_refs: dict[str, str] = {}
    """Ids of what it comes from: an external trigger, a wait, a timer, a task's result."""
    metadata: dict[str, Any] | None = None
    """What its transport knows of it. Nothing is routed by it."""
    correlation_id: str | None = None
    """The same for all messages of one piece of work."""
    causation_id: str | None = None
    """The message or task that caused it."""
    work_item_id: str | None = None
    task_id: str | None = None
    key: str | None = None
    fingerprint: str = ""
    """Hash of agent name and prompt: what `key` was given with the first time. Where it waits in a queue without a key,
    it is blank."""
    prompt_preview: Preview = ""
    context: dict[str, Any] = {}
    """What the caller passed along; whoever runs the turn gives it to the tools."""
    principal: str | None = None
    limits: Limits | None = None
    """What the caller allowed the turn; None: whatever holds where it is run."""
    workflow_ref: BlobRef | None = None
    """A workflow and its inputs, as JSON, when that is what the turn is to run."""
    editing: str | None = None
    """The workflow that is open in the editor this was said in; None: it was said elsewhere."""
    collections: tuple[str, ...] | None = None
    """Which of the agent's collections are searched for it; None: all of them."""
    memory_enabled: bool = False
    """The agent's memory is searched for it."""
    notes: dict[str, Any] = {}
    """What the turn's memory holds when it begins; a turn of its own begins with none."""
    depth: int = 0
    """How deep in a tree of its host's the turn is; what it splits off is deeper."""
    policy_context: PolicyContext = "library"
    """Where it was said. An agent without a policy of its own is held to what is the default there, whoever runs it."""


class MessageDeferred(Event):
    """A queued message starts no turn by itself for now. The thread's next turn is shown it, whatever starts that."""

    kind: ClassVar[str] = "message.deferred"
    needs: ClassVar[tuple[Need, ...]] = THREAD
    outsider: ClassVar[bool] = True

    message_id: str
    deadline: int
    """Unix microseconds: from then on it starts a turn by itself."""
    reason: str = ""
    folder: str = ""
    """The folder that its turn could not begin without: once that is back, the message is due at once."""


class MessageExpired(Event):
    """The time of a message was over before a turn took it: its sender gave it no more, or somebody cleared the queue.
    No turn will take it."""

    kind: ClassVar[str] = "message.expired"
    needs: ClassVar[tuple[Need, ...]] = THREAD
    outsider: ClassVar[bool] = True

    message_id: str
    reason: str = ""
    """Why, where it was not its sender's time."""


class HistoryImported(Event):
    """Earlier conversation that the caller brought along."""

    kind: ClassVar[str] = "history.imported"
    outsider: ClassVar[bool] = True

    items: tuple[Item, ...] = ()
    items_ref: BlobRef | None = None
    """A JSON list of items, when they are too large to stand here."""
    count: int


class TurnStarted(Event):
    """A turn took up its messages. What holds for the whole turn is named here.

    Messages that had no turn are opened one for by this: the turn's first fact.
    """

    kind: ClassVar[str] = "turn.started"
    aliases: ClassVar[tuple[str, ...]] = ("message_processing_started", "status(starting)")

    turn_index: int
    message_ids: tuple[str, ...]
    """In the order in which the model is shown them. The first says for whom and within which limits the turn works."""
    prompt_preview: Preview | None = None
    """Of a turn that its messages did not open; None: theirs."""
    agent_name: str
    config_ref: BlobRef
    """Instructions, declarations, model, limits: the turn's configuration, by content."""
    model_ref: str
    fallbacks: tuple[str, ...] = ()
    limits: Limits
    stop_rule: StopRule = "natural"
    structured: bool = False
    """The answer has to fit an output type."""
    window_from: int = 1
    """The first event of the stream that this turn's conversation rests on."""
    context: dict[str, Any] = {}
    principal: str | None = None
    stream: bool = True
    continuation: ContinuationResolution | None = None
    """Of a turn that a runtime opened: what its first message meant to the agent."""
    revision: str | None = None
    """Of a turn of a runtime: the definition of the agent that it began with."""
    rules: int = 0
    """The number of the rules by which the turn is decided, until it is resumed. 0: from before they were numbered."""

    @property
    def opens_turn(self) -> bool:
        """Is this the turn's first fact? Else a message has opened it."""
        return self.prompt_preview is not None


class TurnConfigChanged(Event):
    """The code that resumed the turn is not the code that began it."""

    kind: ClassVar[str] = "turn.config_changed"

    config_ref: BlobRef
    """The configuration that holds from here on."""
    previous: str
    """Digest of the one before."""
    changed: tuple[str, ...]
    """Which parts differ: instructions, model, `tool:<name> removed|added|schema|effect|declaration`."""
    model_ref: str
    limits: Limits


class TurnInterruptRequested(Event):
    """Somebody asked the turn to stop."""

    kind: ClassVar[str] = "turn.interrupt.requested"
    outsider: ClassVar[bool] = True

    interrupt_id: str
    requested_by: str
    reason: InterruptReason = "user_interrupt"
    queue: Literal["keep", "clear"] = "keep"


class TurnInterruptApplied(Event):
    """The request was carried out: running calls were told, waiting ones will not start."""

    kind: ClassVar[str] = "turn.interrupt.applied"

    interrupt_id: str
    cancelled_tool_call_ids: tuple[str, ...] = ()
    blocking_tool_call_ids: tuple[str, ...] = ()
    """Calls that run and are let finish first."""
    skipped_tool_call_ids: tuple[str, ...] = ()
    cancelled_children: tuple[str, ...] = ()
    """Levels below the turn's own that end with it."""
    latency_ms: int


class TurnInterruptIgnored(Event):
    """A request that changes nothing: the turn was over, or about to end by an earlier one."""

    kind: ClassVar[str] = "turn.interrupt.ignored"
    outsider: ClassVar[bool] = True

    interrupt_id: str
    ignore_reason: IgnoreReason


class LimitChanged(Event):
    """A limit of the turn was reached. N allows N; this is about the one after."""

    kind: ClassVar[str] = "limit.changed"
    aliases: ClassVar[tuple[str, ...]] = ("budget_exceeded",)

    limit_name: LimitName
    limit: float
    observed: float
    """The ordinal that was refused, or the seconds that have passed."""
    what: str = ""
    """What it is a limit of, where the name does not say it all."""
    left: str | None = None
    """Dollars that are left of a limit on money, for whoever asked."""
    needed: str | None = None
    """Dollars that the refused request would have needed at most, with what has to be kept beside it."""
    window: WindowPassed | None = None
    """A spend window that is used up: the turn does not end, it rests until the window turns."""


class TurnTimeSkipped(Event):
    """Time that does not count as work: the process was stopped, the machine was suspended, or the clock was set."""

    kind: ClassVar[str] = "turn.time_skipped"

    skipped_us: int
    """Microseconds of the wall clock. Negative when the clock was set back."""


class AnswerAccepted(Event):
    """The final text fits the output type."""

    kind: ClassVar[str] = "answer.accepted"

    value: Any = None
    value_ref: BlobRef | None = None


class AnswerRejected(Event):
    """The final text does not fit the output type; the model is told why and asked again."""

    kind: ClassVar[str] = "answer.rejected"

    item: UserItem
    errors: tuple[str, ...]
    final: bool = False
    """There will be no further try."""
    max_tokens: int | None = None
    """The answer was cut off, and the next one may have so many tokens."""


class ContinuationDecided(Event):
    """Somebody outside the loop was asked whether to go on."""

    kind: ClassVar[str] = "continuation.decided"

    go_on: bool


RestReason: TypeAlias = Literal[
    "tool_missing",
    "agent_missing",
    "approval_required",
    "runtime_tool_pending",
    "paused",
    "budget_window",
    "provider",
]
"""What a turn rests for."""


class TurnSuspended(Event):
    """The turn rests until something it names is there."""

    kind: ClassVar[str] = "turn.suspended"

    reason: RestReason
    waiting_for: tuple[str, ...]
    """Names: the tools that are missing, the approvals that are pending, the window that has to turn, the providers
    that are away."""
    next_try: int | None = None
    """Unix microseconds: when a provider that is away is asked again; also where the turn rests for somebody else,
    too."""


class TurnProviderReturned(Event):
    """A provider that the turn waits for answers again: it is asked at once, whenever it was to be."""

    kind: ClassVar[str] = "turn.provider_returned"
    outsider: ClassVar[bool] = True

    provider: str


class TurnPatienceEnded(Event):
    """A provider has been away for as long as it is waited for: the turn fails, and may be tried again."""

    kind: ClassVar[str] = "turn.patience_ended"
    outsider: ClassVar[bool] = True

    seconds: float
    """How long it was waited for."""


class TurnResumed(Event):
    """The same turn goes on, in this process or another."""

    kind: ClassVar[str] = "turn.resumed"

    cause: Literal["recovery", "supplied", "decision", "window", "provider", "retry", "closing"] = "recovery"
    """provider: one that is away is asked again, because it is time or because somebody wants it. retry: it had failed,
    and is tried again. closing: it goes on later; what died with its process is closed, because something of the agent
    is to run."""
    taken_from: Literal["dead", "late"] | None = None
    """The owner that was replaced. dead: its process is gone. late: its lease ran out and its process lives, stopped or
    hung, so that it may still carry out what it began: such calls are not probed, and their outcome is unknown."""
    rules: int = 0
    """The number of the rules by which the turn is decided from here on. 0: from before they were numbered."""


class TurnRetried(Event):
    """A turn that had failed is open again. What happened in it stands, and it goes on at the step in which it failed.

    Refused where a newer turn of its thread has begun: that one's conversation rests on the failure.
    """

    kind: ClassVar[str] = "turn.retried"
    outsider: ClassVar[bool] = True

    requested_by: str
    message_ids: tuple[str, ...] = ()
    """The messages that it is to answer: those with which it began."""
    limits: Limits | None = None
    """What the turn may use from here on, what it has used included; None: as before."""


class Terminal(Event):
    """How a turn ended. One a turn, after the terminal facts of all its calls; one more for each time it is retried."""

    turn_index: int
    status: TurnStatus
    stop_reason: StopCause
    retryable: bool
    duration_ms: float
    """From `turn.started` to here, downtime included."""
    active_ms: float
    """The stretches in which the turn was being worked on."""
    token_usage: TokenUsage | None = None
    """Absent when no reply carried token data."""
    model_calls: int = 0
    tool_calls: int = 0
    steps: int = 0
    final_preview: Preview = ""
    """The beginning of the final assistant text."""
    unknown: tuple[str, ...] = ()
    """Calls whose outcome nobody knows yet."""


class TurnCompleted(Terminal):
    """The loop drained by itself, and nothing else is called completion."""

    kind: ClassVar[str] = "turn.completed"
    aliases: ClassVar[tuple[str, ...]] = ("turn_terminal", "completed", "status(completed)")

    status: Literal["completed"] = "completed"
    wait_ids: tuple[str, ...] | None = None
    """The waits that the agent ended it with; None: it answered."""


class TurnFailed(Terminal):
    """The turn ended in any other way: a limit, a failure, a cancel."""

    kind: ClassVar[str] = "turn.failed"
    aliases: ClassVar[tuple[str, ...]] = ("turn_terminal", "failed", "runtime_error", "status(failed)")

    status: Literal["incomplete", "failed", "cancelled"]
    message: str = ""
    failure_artifact: FailureArtifact | None = None
    timeline: ProviderAttemptTimeline | None = None
    """The attempts of the round that was lost, when a provider was the reason."""
