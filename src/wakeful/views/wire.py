"""Facts and glimpses of a turn to the messages its client is sent, in the order of the log.

Exactly one `cost_summary` and then one `turn_terminal` end a turn, however it ended, and nothing follows. Once somebody
asked the turn to stop, nothing new is shown: only how the calls ended that were under way, and the end itself. What the
planner and a summary do is not part of the conversation and is not sent; what it cost is. A fact that makes several
messages has its number on the last: who has that one has them all.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast, get_args

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    AssistantRecorded,
    HistoryImported,
    LimitChanged,
    ModelFailed,
    ModelRequested,
    Terminal,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
    TurnFailed,
    TurnInterruptRequested,
    TurnRetried,
)
from wakeful.contracts.models import ModelGlimpse, TextDelta
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.values import unchecked
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.views.cost import cost_summary
from wakeful.views.mapping import (
    DELTA,
    TURN_STATUS,
    VIEWS,
    ended,
    is_conversations,
    is_turns,
    shown,
    wire_stop,
)
from wakeful.views.wire_messages import BudgetExceeded, BudgetReason, Chunk, ToolCallUpdate, TurnTerminal, WireMessage
from wakeful.views.workflow_updates import WorkflowUpdates

Messages: TypeAlias = list[WireMessage]
_made_chunk, _turn_terminal = unchecked(Chunk), unchecked(TurnTerminal)
_REASONS = frozenset(get_args(BudgetReason))
_OF_LEVEL = (ModelRequested, ModelFailed, AssistantRecorded, ToolStarted, ToolResult, ToolFailed)
"""What is shown of a conversation, or says who speaks in it. Most facts of a turn are not."""
_COSTS_NOTHING = (AssistantRecorded, HistoryImported, ToolProgress, ToolResult, ToolFailed)
"""Facts that hold texts, and nothing that a sum is made of: they are not kept."""


@dataclass(slots=True)
class _Level:
    """Who speaks, and what of the running attempt was shown."""

    parent_id: str | None
    depth: int
    step: int = 0
    attempt: int = 0
    asked: int = 0
    """The attempt, as its request says."""
    listening: bool = False
    glimpsed: list[str] = field(default_factory=list)


class WireView:
    """The wire messages of one turn. Feed it the turn's facts from the first, and glimpses as they come.

    Facts of other turns, and facts that were fed before, are ignored. `secrets` is what is known to be one beforehand.
    """

    def __init__(self, turn_id: str, *, secrets: RunSecrets | None = None) -> None:
        self.turn_id = turn_id
        self.ended = False
        self.secrets = secrets if secrets is not None else RunSecrets()
        """Learned from the facts as they come; who has them all beforehand lets it learn them first."""
        self._facts: list[StoredFact] = []
        """What the cost is summed up from."""
        self._seen = 0
        self._thread_id = ""
        self._levels: dict[str | None, _Level] = {}
        self._announced: set[str] = set()
        self._stopping = False
        """Somebody asked the turn to stop."""
        self._workflows = WorkflowUpdates(self.secrets.hide)

    def feed(self, recorded: StoredFact) -> Messages:
        """What a stored fact is sent as."""
        seq, fact = recorded.seq, recorded.fact
        if fact.turn_id == self.turn_id and isinstance(fact.event, TurnRetried):
            self.ended = False
        if self.ended or fact.turn_id != self.turn_id or seq <= self._seen:
            return []
        self._seen = seq
        self._thread_id = fact.thread_id or self._thread_id
        self.secrets.take(fact)
        if not isinstance(fact.event, _COSTS_NOTHING):
            self._facts.append(recorded)
        told = [] if self._stopping else self._workflows.feed(fact, self._ids(None))
        made = self._of_turn(seq, fact) if is_turns(fact) else []
        if not made and isinstance(fact.event, _OF_LEVEL) and is_conversations(fact):
            made = self._of_level(seq, fact)
        if told and not made:
            told[-1] = told[-1].model_copy(update={"event_seq": seq})
        return [*told, *made]

    def glimpse(self, step: int, glimpse: ModelGlimpse, level: str | None = None) -> Messages:
        """What a glimpse of a running attempt is sent as. One that comes too late is dropped."""
        at = self._levels.get(level)
        if self.ended or self._stopping or at is None or at.step != step or not at.listening:
            return []
        if not isinstance(glimpse, TextDelta) or not glimpse.text or VIEWS[DELTA].wire is None:
            return []
        at.glimpsed.append(glimpse.text)
        return [self._chunk(at, glimpse.text, None)]

    def knows(self, step: int, attempt: int, level: str | None = None) -> bool:
        """Was the request of an attempt fed? Words that come before it are kept back until it was."""
        at = self._levels.get(level)
        return at is not None and (at.step, at.asked) >= (step, attempt)

    def hears(self, step: int, attempt: int, level: str | None = None) -> bool:
        """Is this the attempt that is under way?"""
        at = self._levels.get(level)
        return at is not None and at.listening and (at.step, at.asked) == (step, attempt)

    @property
    def is_stopping(self) -> bool:
        """Somebody asked the turn to stop: nothing new is shown."""
        return self._stopping

    def _of_turn(self, seq: int, fact: Fact) -> Messages:
        event = fact.event
        match event:
            case TurnInterruptRequested():
                self._stopping = True
            case TurnRetried():
                self._stopping = False
            case LimitChanged() if shown(event).wire is not None and event.limit_name in _REASONS:
                return [
                    BudgetExceeded(
                        **self._ids(seq),
                        reason=cast(BudgetReason, event.limit_name),
                        limit=event.limit,
                        observed=event.observed,
                    )
                ]
            case Terminal() if shown(event).wire is not None:
                self.ended = True
                words = self.secrets.hide(event.message) if isinstance(event, TurnFailed) else ""
                end = _turn_terminal(
                    **self._ids(seq),
                    status=TURN_STATUS[event.status],
                    stop_reason=wire_stop(event.stop_reason),
                    retryable=event.retryable,
                    message=words or None,
                )
                return [cost_summary(self.turn_id, self._facts), end]
        return []

    def _of_level(self, seq: int, fact: Fact) -> Messages:
        event = fact.event
        at = self._levels.get(fact.level)
        if at is None:
            at = self._levels[fact.level] = _Level(fact.parent_call_id, fact.depth)
        match event:
            case ModelRequested():
                at.attempt = at.attempt + 1 if at.step == fact.step else 1
                at.step = fact.step or 0
                at.asked = event.attempt
                at.listening = True
                at.glimpsed.clear()
            case ModelFailed():
                at.listening = False
            case AssistantRecorded() if shown(event).wire is not None:
                at.listening = False
                whole = event.item.text
                if not whole or self._stopping:
                    return []
                glimpsed = "".join(at.glimpsed)
                if not whole.startswith(glimpsed):
                    at.attempt, glimpsed = at.attempt + 1, ""  # what was shown is not what was said: all of it anew
                return [self._chunk(at, self.secrets.hide(whole[len(glimpsed) :]), seq, done=True)]
            case ToolStarted() if shown(event).wire is not None and not self._stopping:
                return self._start(seq, fact, event.tool_name, event.safe_args)
            case ToolResult() | ToolFailed() if shown(event).wire is not None:
                return self._end(seq, fact, event)
        return []

    def _start(self, seq: int | None, fact: Fact, name: str, args: dict[str, Any] | None) -> Messages:
        call_id = fact.call_id or ""
        if call_id in self._announced:
            return []
        self._announced.add(call_id)
        return [
            ToolCallUpdate(
                **self._ids(seq),
                tool_call_id=call_id,
                name=name,
                args=self.secrets.hide_keys_in(args),
                parent_id=fact.parent_call_id,
                depth=fact.depth,
                status="start",
            )
        ]

    def _end(self, seq: int, fact: Fact, event: ToolResult | ToolFailed) -> Messages:
        end = ended(event)
        call_id = fact.call_id or ""
        if self._stopping and call_id not in self._announced:
            return []  # it never began, and now it never will
        # A call that was refused was never taken up; whoever watches still sees it before its end.
        began = self._start(None, fact, end.name, None)
        over = ToolCallUpdate(
            **self._ids(seq),
            tool_call_id=call_id,
            name=end.name,
            result=self.secrets.hide(end.words)[:PREVIEW_CHARS],
            is_error=end.is_error,
            outcome=end.outcome,
            parent_id=fact.parent_call_id,
            depth=fact.depth,
            status="end",
        )
        return [*began, over]

    def _chunk(self, at: _Level, content: str, seq: int | None, *, done: bool = False) -> Chunk:
        return _made_chunk(
            **self._ids(seq),
            content=content,
            done=done,
            parent_id=at.parent_id,
            depth=at.depth,
            step=at.step,
            attempt=max(1, at.attempt),
        )

    def _ids(self, seq: int | None) -> dict[str, Any]:
        return {"thread_id": self._thread_id, "turn_id": self.turn_id, "event_seq": seq}
