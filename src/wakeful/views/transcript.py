"""Facts to transcript entries, in the order of the log. Made from facts alone: nothing is read out of prose.

It is the transcript of the turns' own conversation: what children, the planner and summaries said is not in it.
"""

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from wakeful.contracts.envelope import StoredFact, iso
from wakeful.contracts.events import (
    AnswerRejected,
    AssistantRecorded,
    CallAsked,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    StopCause,
    ToolFailed,
    ToolResult,
    TurnFailed,
    TurnInterjected,
)
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import ProviderAttemptTimeline, StopReason, TokenUsage
from wakeful.contracts.tools import ToolError, ToolResultMetadata
from wakeful.contracts.values import Value
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.views.mapping import is_roots
from wakeful.views.message_envelope import MessageLabels, labels_of


class _Entry(Value):
    event_seq: int
    """The fact this entry stands for."""
    created_at: str
    turn_id: str
    step: int | None = None


class UserMessageData(Value):
    text: str
    origin: Literal["person", "runtime"]
    """`runtime` is a note of the runtime to the model, such as why an answer was refused."""
    message: MessageLabels | None = None
    """Where it comes from and whose word it is; None: it was said to the turn while it ran, or is the runtime's."""


class UserMessage(_Entry):
    """Input to the model."""

    kind: Literal["user_message"] = "user_message"
    data: UserMessageData


class AssistantRoundData(Value):
    text: str
    """Its beginning, when the reply was too large to stand in the log."""
    calls: tuple[CallAsked, ...] = ()
    model_ref: str | None = None
    stop_reason: StopReason | None = None
    token_usage: TokenUsage | None = None
    provider_attempt_timeline: ProviderAttemptTimeline | None = None
    """Every attempt of the round."""


class AssistantRound(_Entry):
    """One answered round. The token counts stand here and again in `data.token_usage`; None is not reported."""

    kind: Literal["assistant_round"] = "assistant_round"
    input_tokens: int | None = None
    output_tokens: int | None = None
    data: AssistantRoundData


class ToolOutcomeData(Value):
    tool_call_id: str
    tool_name: str
    status: str
    preview: str
    error: ToolError | None = None
    """The structured error, as the model's receipt was made from it."""
    metadata: ToolResultMetadata


class ToolOutcome(_Entry):
    """The one result of one call."""

    kind: Literal["tool_result"] = "tool_result"
    data: ToolOutcomeData


class RuntimeFailureData(Value):
    message: str
    stop_reason: StopCause
    failure_artifact: FailureArtifact | None = None
    token_usage: TokenUsage | None = None
    """What the lost attempts of the last round used, as far as their provider said; None when it said nothing."""
    provider_attempt_timeline: ProviderAttemptTimeline | None = None
    """Every attempt of the round that was lost, when a provider lost it."""


class RuntimeFailure(_Entry):
    """The turn was lost to a failure."""

    kind: Literal["runtime_failure"] = "runtime_failure"
    data: RuntimeFailureData


TranscriptEntry: TypeAlias = Annotated[
    UserMessage | AssistantRound | ToolOutcome | RuntimeFailure, Field(discriminator="kind")
]


class Transcript:
    """Makes entries from the facts of an agent's stream, which may hold several turns. A fact counts once.

    Secrets that the run gave to its tools are hidden, unless `reveal`.
    """

    def __init__(self, *, reveal: bool = False) -> None:
        self._secrets = None if reveal else RunSecrets()
        self._seen = 0
        self._completed: dict[str, ModelCompleted] = {}
        """The telemetry of each turn's newest answer; what was said follows it."""
        self._lost: dict[str, TokenUsage] = {}
        """What the lost attempts of each turn's running round used, where a provider said so."""

    def learn(self, facts: Iterable[StoredFact]) -> None:
        """Know the secrets of these facts before any of them is shown; who reads along learns them as they come."""
        if self._secrets is not None:
            self._secrets.learn(facts)

    def feed(self, recorded: StoredFact) -> TranscriptEntry | None:
        """The entry a fact stands for, if it stands for one."""
        seq, fact = recorded.seq, recorded.fact
        turn = fact.turn_id
        if seq <= self._seen or turn is None:
            return None
        self._seen = seq
        secrets = self._secrets
        if secrets is not None:
            secrets.take(fact)
        if not is_roots(fact):
            return None
        at = iso(fact.at)
        match fact.event:
            case MessageAdmitted(item=item) | TurnInterjected(item=item) | AnswerRejected(item=item):
                labels = labels_of(fact.event) if isinstance(fact.event, MessageAdmitted) else None
                said = UserMessageData(text=_safe(secrets, item.text), origin=item.origin, message=labels)
                return UserMessage(event_seq=seq, created_at=at, turn_id=turn, step=fact.step, data=said)
            case ModelFailed(token_usage=TokenUsage() as usage):
                self._lost[turn] = self._lost.get(turn, TokenUsage()) + usage
            case ModelCompleted() as event:
                self._lost.pop(turn, None)
                self._completed[turn] = event
            case AssistantRecorded() as event:
                round_, completed = _round(event, self._completed.pop(turn, None), secrets)
                return AssistantRound(
                    event_seq=seq,
                    created_at=at,
                    turn_id=turn,
                    step=fact.step,
                    input_tokens=completed.input_tokens if completed else None,
                    output_tokens=completed.output_tokens if completed else None,
                    data=round_,
                )
            case ToolResult() | ToolFailed() as event:
                outcome = ToolOutcomeData(
                    tool_call_id=fact.call_id or event.item.call_id,
                    tool_name=event.tool_name,
                    status=event.status,
                    preview=_safe(secrets, event.preview or ""),
                    error=_safe_error(secrets, event.tool_error) if isinstance(event, ToolFailed) else None,
                    metadata=event.metadata,
                )
                return ToolOutcome(event_seq=seq, created_at=at, turn_id=turn, step=fact.step, data=outcome)
            case TurnFailed(status="failed") as event:
                failure = RuntimeFailureData(
                    message=_safe(secrets, event.message),
                    stop_reason=event.stop_reason,
                    failure_artifact=event.failure_artifact,
                    token_usage=self._lost.pop(turn, None),
                    provider_attempt_timeline=event.timeline,
                )
                return RuntimeFailure(event_seq=seq, created_at=at, turn_id=turn, step=fact.step, data=failure)
        return None


def _safe(secrets: RunSecrets | None, text: str) -> str:
    return text if secrets is None else secrets.hide(text)


def _safe_error(secrets: RunSecrets | None, error: ToolError) -> ToolError:
    if not secrets:
        return error
    hint = error.recovery_hint
    return error.model_copy(
        update={
            "message": secrets.hide(error.message),
            "recovery_hint": secrets.hide(hint) if hint is not None else None,
            "details": secrets.hide_in(error.details),
        }
    )


def _round(
    event: AssistantRecorded, completed: ModelCompleted | None, secrets: RunSecrets | None
) -> tuple[AssistantRoundData, TokenUsage | None]:
    usage = completed.token_usage if completed else None
    data = AssistantRoundData(
        text=_safe(secrets, event.item.text),
        calls=event.calls,
        model_ref=completed.model_ref if completed else None,
        stop_reason=completed.stop_reason if completed else None,
        token_usage=usage,
        provider_attempt_timeline=completed.whole_timeline() if completed else None,
    )
    return data, usage
