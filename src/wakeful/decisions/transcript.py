"""Facts to transcript entries, in the order of the log. Made from facts alone: nothing is read out of prose."""

from collections.abc import Iterable

from wakeful.contracts.envelope import Recorded, iso
from wakeful.contracts.events import (
    AnswerRejected,
    AssistantRecorded,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    ToolFailed,
    ToolResult,
    TurnFailed,
)
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.transcript_entries import (
    AssistantRound,
    AssistantRoundData,
    RuntimeFailure,
    RuntimeFailureData,
    ToolOutcome,
    ToolOutcomeData,
    TranscriptEntry,
    UserMessage,
    UserMessageData,
)


class Transcript:
    """Makes entries from the facts of an agent's stream, which may hold several turns. A fact counts once."""

    def __init__(self) -> None:
        self._seen = 0
        self._completed: dict[str, ModelCompleted] = {}
        """The telemetry of each turn's newest answer; what was said follows it."""
        self._lost: dict[str, TokenUsage] = {}
        """What the lost attempts of each turn's running round used, where a provider said so."""

    def feed(self, recorded: Recorded) -> TranscriptEntry | None:
        """The entry a fact stands for, if it stands for one."""
        seq, fact = recorded.seq, recorded.fact
        turn = fact.turn_id
        if seq <= self._seen or turn is None:
            return None
        self._seen = seq
        at = iso(fact.at)
        match fact.event:
            case MessageAdmitted(item=item) | AnswerRejected(item=item):
                said = UserMessageData(text=item.text, origin=item.origin)
                return UserMessage(event_seq=seq, created_at=at, turn_id=turn, step=fact.step, data=said)
            case ModelFailed(token_usage=TokenUsage() as usage):
                self._lost[turn] = self._lost.get(turn, TokenUsage()) + usage
            case ModelCompleted() as event:
                self._lost.pop(turn, None)
                self._completed[turn] = event
            case AssistantRecorded() as event:
                round_, completed = _round(event, self._completed.pop(turn, None))
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
                    preview=event.preview or "",
                    error=event.tool_error if isinstance(event, ToolFailed) else None,
                    metadata=event.metadata,
                )
                return ToolOutcome(event_seq=seq, created_at=at, turn_id=turn, step=fact.step, data=outcome)
            case TurnFailed(status="failed") as event:
                failure = RuntimeFailureData(
                    message=event.message,
                    stop_reason=event.stop_reason,
                    failure_artifact=event.failure_artifact,
                    token_usage=self._lost.pop(turn, None),
                    provider_attempt_timeline=event.timeline,
                )
                return RuntimeFailure(event_seq=seq, created_at=at, turn_id=turn, step=fact.step, data=failure)
        return None


def transcript(facts: Iterable[Recorded]) -> list[TranscriptEntry]:
    """The entries of a stretch of an agent's stream."""
    view = Transcript()
    return [entry for recorded in facts if (entry := view.feed(recorded)) is not None]


def _round(event: AssistantRecorded, completed: ModelCompleted | None) -> tuple[AssistantRoundData, TokenUsage | None]:
    usage = completed.token_usage if completed else None
    data = AssistantRoundData(
        text=event.item.text,
        calls=event.calls,
        model_ref=completed.model_ref if completed else None,
        stop_reason=completed.stop_reason if completed else None,
        token_usage=usage,
        provider_attempt_timeline=completed.whole_timeline() if completed else None,
    )
    return data, usage
