"""Facts that only the conversation-loop facade makes: its observers, its transcript store, its declarations, and what
the options of a host come to (budgets, guards, interrupts, compaction)."""

from typing import ClassVar, Literal

from wakeful.contracts.events.base import Event, Need, Preview
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.outcomes import RunOutcome
from wakeful.contracts.values import Value


class LoopFact(Event):
    """Made beside the turn, by whoever holds the loop: no turn decides anything from it."""

    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True


class ObserverFailed(LoopFact):
    """An observer raised; it changed nothing but this trace."""

    kind: ClassVar[str] = "observer.failed"
    aliases: ClassVar[tuple[str, ...]] = ("observer_failed",)

    surface: str
    error: str


class TranscriptPersistFailed(LoopFact):
    """The caller's persister raised."""

    kind: ClassVar[str] = "transcript.persist.failed"
    aliases: ClassVar[tuple[str, ...]] = ("transcript_persist_failed",)

    surface: str
    error: str


class TranscriptLockContended(LoopFact):
    """Somebody else holds the transcript, so no turn was run."""

    kind: ClassVar[str] = "transcript.lock.contended"
    aliases: ClassVar[tuple[str, ...]] = ("transcript_lock_contention",)

    session_id: str
    error: str | None = None


class TranscriptLockReleaseFailed(LoopFact):
    """The caller's lock raised on release."""

    kind: ClassVar[str] = "transcript.lock.release_failed"
    aliases: ClassVar[tuple[str, ...]] = ("transcript_lock_release_failed",)

    surface: str
    error: str


class RejectedDeclaration(Value):
    """A declaration that was left out, and why."""

    name: str
    reason: str


class ToolDeclarationsRejected(LoopFact):
    """Some declarations were not fit to be offered."""

    kind: ClassVar[str] = "tool.declarations.rejected"
    aliases: ClassVar[tuple[str, ...]] = ("tool_declarations_rejected",)

    rejected: tuple[RejectedDeclaration, ...]
    rejected_count: int
    accepted_count: int


class ToolMediationDisabled(LoopFact):
    """There is an executor and nothing for it to execute."""

    kind: ClassVar[str] = "tool.mediation.disabled"
    aliases: ClassVar[tuple[str, ...]] = ("tool_mediation_disabled",)

    reason: str
    rejected: tuple[RejectedDeclaration, ...] = ()
    rejected_count: int = 0


class ToolMediationFailed(LoopFact):
    """A mediator, or a hook that decides, raised, ran out of time or answered nonsense: the call was denied."""

    kind: ClassVar[str] = "tool.mediation.failed"
    aliases: ClassVar[tuple[str, ...]] = ("pre_tool_mediation_error",)

    turn: int
    tool_name: str
    tool_call_id: str
    reason: str


class CompletionBlocked(LoopFact):
    """A natural end was refused by a rule: the model is told why, and another turn follows."""

    kind: ClassVar[str] = "turn.completion.blocked"
    aliases: ClassVar[tuple[str, ...]] = ("tool_call_gate_completion_blocked",)

    turn: int
    rule_id: str
    reason: str
    counters: dict[str, int] = {}
    rule: JsonDict = {}
    """What the rule says, by its own fields."""


class IterationBudgetExceeded(LoopFact):
    """A budget of the host's allows no more: what would have passed it was refused."""

    kind: ClassVar[str] = "transcript.budget.exceeded"
    aliases: ClassVar[tuple[str, ...]] = ("budget_exceeded",)

    budget: str
    dimension: str
    current: int
    """Used, the refused one not counted."""
    ceiling: int


class LoopStalled(LoopFact):
    """The same call was made too often in a row: the run ends."""

    kind: ClassVar[str] = "transcript.stalled"
    aliases: ClassVar[tuple[str, ...]] = ("loop_stalled",)

    tool_name: str
    parameters_hash: str
    """Of the redacted parameters, like `signature_hash`."""
    signature_hash: str
    turn: int
    repeat_count: int
    threshold: int


class IdenticalFailureNudged(LoopFact):
    """The same call failed in the same way too often in a row: the model is told so."""

    kind: ClassVar[str] = "transcript.failure.nudged"
    aliases: ClassVar[tuple[str, ...]] = ("identical_failure_nudged",)

    tool_name: str
    parameters_hash: str
    signature_hash: str
    turn: int
    repeat_count: int
    threshold: int
    error_code: str
    message: str
    """What the model is told."""


class CompletionPolicyStopped(LoopFact):
    """The host's completion policy said that the work is done."""

    kind: ClassVar[str] = "transcript.completion.stopped"
    aliases: ClassVar[tuple[str, ...]] = ("completion_policy_stop",)

    tool_name: str
    turn: int
    message: str = ""
    context: JsonDict = {}


class CompletionPolicyContinued(LoopFact):
    """The host's completion policy has a word for the model: the message stands in the transcript."""

    kind: ClassVar[str] = "transcript.completion.continued"
    aliases: ClassVar[tuple[str, ...]] = ("completion_policy_continue",)

    tool_name: str
    turn: int
    message: str
    context: JsonDict = {}


class InterruptReceived(LoopFact):
    """Somebody had something to say between two turns."""

    kind: ClassVar[str] = "transcript.interrupt.received"
    aliases: ClassVar[tuple[str, ...]] = ("interrupt_received",)

    turn: int
    action: Literal["cancel", "redirect", "message"]
    message: JsonDict | None = None
    """The transcript entry; None when the source itself failed."""
    details: JsonDict = {}
    """What came along with it."""


class InterruptIgnored(LoopFact):
    """What an interrupt source answered is no message."""

    kind: ClassVar[str] = "transcript.interrupt.ignored"
    aliases: ClassVar[tuple[str, ...]] = ("interrupt_ignored",)

    reason: Literal["invalid_message"]
    turn: int


class ToolResultTruncated(LoopFact):
    """A result was larger than the host wants any to be: an excerpt stands in its place."""

    kind: ClassVar[str] = "tool.result.truncated"
    aliases: ClassVar[tuple[str, ...]] = ("tool_result_truncated",)

    turn: int
    tool_name: str
    tool_call_id: str
    original_bytes: int
    excerpt_bytes: int
    citations_dropped: int | None = None


class ToolResultDiagnosed(LoopFact):
    """The host looked at a result and noted something about it."""

    kind: ClassVar[str] = "tool.result.diagnosed"
    aliases: ClassVar[tuple[str, ...]] = ("tool_result_diagnostics",)

    tool_name: str
    tool_call_id: str
    turn: int
    diagnostics: JsonDict


class TranscriptCompactionFact(LoopFact):
    """What every fact about folding a transcript says."""

    policy: JsonDict
    total_messages: int
    compact_count: int
    retained_count: int
    boundary: JsonDict
    provenance: JsonDict | None = None
    conservation: JsonDict | None = None


class TranscriptCompactionStarted(TranscriptCompactionFact):
    """The host's summarizer is about to be asked."""

    kind: ClassVar[str] = "transcript.compaction.started"
    aliases: ClassVar[tuple[str, ...]] = ("compaction_started",)


class TranscriptCompactionCompleted(TranscriptCompactionFact):
    """A summary stands in the place of the older part."""

    kind: ClassVar[str] = "transcript.compaction.completed"
    aliases: ClassVar[tuple[str, ...]] = ("compaction_completed",)

    summarizer: JsonDict
    summary_preview: Preview = ""


class TranscriptCompactionFailed(TranscriptCompactionFact):
    """The transcript stays as it was."""

    kind: ClassVar[str] = "transcript.compaction.failed"
    aliases: ClassVar[tuple[str, ...]] = ("compaction_failed",)

    summarizer: JsonDict | None = None
    error: str


class TranscriptOverflowArchived(TranscriptCompactionFact):
    """The older part was moved out; a stub stands in its place."""

    kind: ClassVar[str] = "transcript.overflow.archived"
    aliases: ClassVar[tuple[str, ...]] = ("compaction_overflow_archived",)

    archive_id: str
    archived_count: int
    archive_pointer: JsonDict | None = None


class TranscriptClosed(LoopFact):
    """The loop is done with a transcript: it was handed over and its lock let go. The outcome says how the run went."""

    kind: ClassVar[str] = "transcript.closed"
    aliases: ClassVar[tuple[str, ...]] = ("completed", "failed")

    turn: int
    """Turns executed."""
    message_count: int
    tool_results: int
    """How many calls have their result."""
    run_outcome: RunOutcome
