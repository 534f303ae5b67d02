"""Facts of one turn to its run stream: what somebody who watches the run is shown.

It begins and ends with a status; between them are the rounds, in the order that `views/rounds` keeps. The planner's
rounds are marked as its own. What children do is inside the call that made them, and shown by `tree_stream` alone: the
end names what the whole turn used. A fact that was fed before is ignored, so a reader may reconnect and read again from
wherever it likes.

Secrets that the run gave to its tools are hidden in what comes from facts. Glimpses of the model's own words are shown
as they come: they are the answer on its way to whoever asked.
"""

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextResolved,
    PlanningStarted,
    TurnCompleted,
    TurnFailed,
    TurnInterjected,
    TurnRetried,
    TurnStarted,
    TurnSuspended,
    WarningIssued,
)
from wakeful.contracts.models import ModelGlimpse
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.views.mapping import is_roots, shown
from wakeful.views.rounds import Events, Rounds
from wakeful.views.run_stream_events import ContextEvent, MessageInjectedEvent, StatusEvent, WarningEvent


class RunStream:
    """The run stream of one turn. Feed it the turn's facts from the first, and glimpses as they come.

    Facts of other turns are ignored. Nothing follows a terminal status. With `reveal` nothing is hidden.
    """

    def __init__(self, turn_id: str, *, reveal: bool = False) -> None:
        self.turn_id = turn_id
        self._secrets = None if reveal else RunSecrets()
        self.ended = False
        self._seen = 0
        self._rounds: dict[str | None, Rounds] = {None: Rounds(self.hide)}
        """By level: the root's, and the planner's once there is one."""

    @property
    def agent_name(self) -> str:
        return self._rounds[None].agent_name

    def feed(self, recorded: StoredFact) -> Events:
        """What a stored fact adds to the stream."""
        seq, fact = recorded.seq, recorded.fact
        if fact.turn_id == self.turn_id and isinstance(fact.event, TurnRetried):
            self.ended = False
        if self.ended or fact.turn_id != self.turn_id or seq <= self._seen:
            return []
        self._seen = seq
        if self._secrets is not None:
            self._secrets.take(fact)
        if isinstance(fact.event, PlanningStarted):
            self._rounds[fact.event.level_id] = Rounds(self.hide, "planner")
        if shown(fact.event).run is None:
            return []
        made = self._of_turn(seq, fact) if is_roots(fact) else None
        if made is not None:
            return made
        rounds = self._rounds.get(fact.level)
        return rounds.feed(seq, fact) if rounds is not None else []

    def glimpse(self, step: int, glimpse: ModelGlimpse, level: str | None = None) -> Events:
        """What a glimpse of the running attempt adds. One that comes too late is dropped."""
        rounds = self._rounds.get(level)
        return [] if self.ended or rounds is None else rounds.glimpse(step, glimpse)

    def _of_turn(self, seq: int, fact: Fact) -> Events | None:
        """What is about the whole run; None: the fact belongs to a round."""
        match fact.event:
            case TurnStarted() as event:
                self._rounds[None].agent_name = event.agent_name
                return [StatusEvent(status="starting", turn_id=self.turn_id, event_seq=seq)]
            case TurnSuspended() as event:
                status = StatusEvent(
                    status="suspended",
                    turn_id=self.turn_id,
                    waiting_for=event.waiting_for,
                    reason=event.reason,
                    event_seq=seq,
                )
                return [*self._held(), status]
            case TurnCompleted() | TurnFailed() as event:
                held = self._held()
                self.ended = True
                return [
                    *held,
                    StatusEvent(
                        status=event.status,
                        turn_id=self.turn_id,
                        stop_reason=event.stop_reason,
                        retryable=event.retryable,
                        message=self.hide(event.message) if isinstance(event, TurnFailed) else "",
                        usage=event.token_usage,
                        event_seq=seq,
                    ),
                ]
            case TurnInterjected() as event:
                said = self.hide(event.item.text)
                return [
                    MessageInjectedEvent(message_id=event.message_id, text=said, said_by=event.said_by, event_seq=seq)
                ]
            case WarningIssued() as event:
                return [WarningEvent(code=event.code, message=self.hide(event.message), event_seq=seq)]
            case ContextResolved() | CompactionStarted() | CompactionCompleted() | CompactionFailed():
                return _context(seq, fact.event)
        return None

    def _held(self) -> Events:
        """What the rounds hold back, when nothing more comes for now."""
        return [event for rounds in self._rounds.values() for event in rounds.release(waiting=False)]

    def hide(self, text: str) -> str:
        """The text without the secrets that the run gave to its tools."""
        return text if self._secrets is None else self._secrets.hide(text)


def _context(seq: int, event: ContextResolved | CompactionStarted | CompactionCompleted | CompactionFailed) -> Events:
    match event:
        case ContextResolved():
            # What a run begins with is no change.
            if event.revision == 1:
                return []
            return [
                ContextEvent(
                    change="resolved",
                    tokens=event.tokens_used,
                    reason=event.reason,
                    event_seq=seq,
                    # That there is a plan now is the planner's last word.
                    phase="planner" if event.reason == "plan" else "executor",
                )
            ]
        case CompactionStarted():
            change = ContextEvent(change="compaction_started", reason=event.trigger)
        case CompactionCompleted():
            change = ContextEvent(change="compaction_completed", tokens=event.tokens_after, reason=event.trigger)
        case CompactionFailed():
            change = ContextEvent(change="compaction_failed", tokens=event.tokens_before, reason=event.message)
    known = {"compaction_id": event.compaction_id, "tokens_before": event.tokens_before, "event_seq": seq}
    return [change.model_copy(update=known)]
