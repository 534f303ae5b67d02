"""Facts that only the conversation-loop facade makes: its observers, its transcript store, its declarations."""

from typing import ClassVar

from wakeful.contracts.events.base import Event, Need
from wakeful.contracts.outcomes import RunOutcome
from wakeful.contracts.values import Value

ANY: tuple[Need, ...] = ()


class ObserverFailed(Event):
    """An observer raised; it changed nothing but this trace."""

    kind: ClassVar[str] = "observer.failed"
    aliases: ClassVar[tuple[str, ...]] = ("observer_failed",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    surface: str
    error: str


class TranscriptPersistFailed(Event):
    """The caller's persister raised."""

    kind: ClassVar[str] = "transcript.persist.failed"
    aliases: ClassVar[tuple[str, ...]] = ("transcript_persist_failed",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    surface: str
    error: str


class TranscriptLockContended(Event):
    """Somebody else holds the transcript, so no turn was run."""

    kind: ClassVar[str] = "transcript.lock.contended"
    aliases: ClassVar[tuple[str, ...]] = ("transcript_lock_contention",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    session_id: str
    error: str | None = None


class TranscriptLockReleaseFailed(Event):
    """The caller's lock raised on release."""

    kind: ClassVar[str] = "transcript.lock.release_failed"
    aliases: ClassVar[tuple[str, ...]] = ("transcript_lock_release_failed",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    surface: str
    error: str


class RejectedDeclaration(Value):
    """A declaration that was left out, and why."""

    name: str
    reason: str


class ToolDeclarationsRejected(Event):
    """Some declarations were not fit to be offered."""

    kind: ClassVar[str] = "tool.declarations.rejected"
    aliases: ClassVar[tuple[str, ...]] = ("tool_declarations_rejected",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    rejected: tuple[RejectedDeclaration, ...]
    rejected_count: int
    accepted_count: int


class ToolMediationDisabled(Event):
    """There is an executor and nothing for it to execute."""

    kind: ClassVar[str] = "tool.mediation.disabled"
    aliases: ClassVar[tuple[str, ...]] = ("tool_mediation_disabled",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    reason: str
    rejected: tuple[RejectedDeclaration, ...] = ()
    rejected_count: int = 0


class ToolMediationFailed(Event):
    """A mediator, or a hook that decides, raised, ran out of time or answered nonsense: the call was denied."""

    kind: ClassVar[str] = "tool.mediation.failed"
    aliases: ClassVar[tuple[str, ...]] = ("pre_tool_mediation_error",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    turn: int
    tool_name: str
    tool_call_id: str
    reason: str


class CompletionBlocked(Event):
    """A natural end was refused by a rule: the model is told why, and another turn follows."""

    kind: ClassVar[str] = "turn.completion.blocked"
    aliases: ClassVar[tuple[str, ...]] = ("tool_call_gate_completion_blocked",)
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    turn: int
    rule_id: str
    reason: str
    counters: dict[str, int] = {}


class TranscriptClosed(Event):
    """The loop is done with a transcript: it was handed over and its lock let go. The outcome says how the run went."""

    kind: ClassVar[str] = "transcript.closed"
    aliases: ClassVar[tuple[str, ...]] = ("completed", "failed")
    needs: ClassVar[tuple[Need, ...]] = ANY
    outsider: ClassVar[bool] = True

    turn: int
    """Turns executed."""
    message_count: int
    tool_results: int
    """How many calls have their result."""
    run_outcome: RunOutcome
