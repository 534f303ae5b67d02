"""Facts of one turn to its run stream: what somebody who watches the run is shown.

The order of a step is text, usage, tool calls, progress, results in model order, and then its completion. The log has
another order, because it takes each outcome when it is known; so this view holds back, and only this view:
usage until the reply is recorded, results until every call of the step was announced and the ones before them are out.
A fact that was fed before is ignored, so a reader may reconnect and read again from wherever it likes.

Secrets that the run gave to its tools are hidden in what comes from facts. Glimpses of the model's own words are shown
as they come: they are the answer on its way to whoever asked.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.events import (
    AssistantRecorded,
    CallAsked,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    TurnSuspended,
)
from wakeful.contracts.models import ModelGlimpse, TextDelta, TokenUsage
from wakeful.contracts.run_stream import (
    ErrorEvent,
    McpProgressEvent,
    RunEvent,
    StatusEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from wakeful.decisions.run_secrets import RunSecrets

Events: TypeAlias = list[RunEvent]


@dataclass(slots=True)
class _Step:
    number: int
    attempt: int = 0
    listening: bool = False
    """An attempt is under way, so a glimpse belongs to it."""
    glimpsed: list[str] = field(default_factory=list)
    usage: UsageEvent | None = None
    calls: tuple[CallAsked, ...] = ()
    announced: dict[str, str] = field(default_factory=dict)
    """Call to the name it was announced under."""
    results: dict[str, ToolResultEvent] = field(default_factory=dict)
    """Results that are held back."""
    released: int = 0
    """How many results are out."""


class RunStream:
    """The run stream of one turn. Feed it the turn's facts from the first, and glimpses as they come.

    Facts of other turns are ignored. Nothing follows a terminal status. With `reveal` nothing is hidden.
    """

    def __init__(self, turn_id: str, *, reveal: bool = False) -> None:
        self.turn_id = turn_id
        self._secrets = None if reveal else RunSecrets()
        self.ended = False
        self._seen = 0
        self._agent_name = ""
        self._step: _Step | None = None

    def feed(self, recorded: Recorded) -> Events:
        """What a stored fact adds to the stream."""
        seq, fact = recorded.seq, recorded.fact
        if self.ended or fact.turn_id != self.turn_id or seq <= self._seen:
            return []
        self._seen = seq
        if self._secrets is not None:
            self._secrets.take(fact)
        return self._of_turn(seq, fact)

    def glimpse(self, step: int, glimpse: ModelGlimpse) -> Events:
        """What a glimpse of the running attempt adds. One that comes too late is dropped."""
        current = self._step
        if self.ended or current is None or current.number != step or not current.listening:
            return []
        if not isinstance(glimpse, TextDelta) or not glimpse.text:
            return []
        current.glimpsed.append(glimpse.text)
        return [TextEvent(step=step, attempt=current.attempt, text=glimpse.text)]

    def _of_turn(self, seq: int, fact: Fact) -> Events:
        match fact.event:
            case TurnStarted() as event:
                self._agent_name = event.agent_name
                return [StatusEvent(status="starting", turn_id=self.turn_id, event_seq=seq)]
            case TurnSuspended() as event:
                status = StatusEvent(
                    status="suspended", turn_id=self.turn_id, waiting_for=event.waiting_for, event_seq=seq
                )
                return [*self._release(waiting=False), status]
            case TurnCompleted() | TurnFailed() as event:
                held = self._release(waiting=False)
                self.ended = True
                return [
                    *held,
                    StatusEvent(
                        status=event.status,
                        turn_id=self.turn_id,
                        stop_reason=event.stop_reason,
                        retryable=event.retryable,
                        message=self._safe(event.message) if isinstance(event, TurnFailed) else "",
                        event_seq=seq,
                    ),
                ]
            case ModelRequested():
                return self._requested(seq, fact.step or 0)
            case ModelFailed() if self._step is None or not self._step.listening or fact.step != self._step.number:
                # Turned down before anything was sent: whoever watches sees an attempt all the same.
                return [*self._requested(seq, fact.step or 0), *self._of_turn(seq, fact)]
        if self._step is None or fact.step != self._step.number:
            return []
        return self._of_step(seq, fact, self._step)

    def _requested(self, seq: int, number: int) -> Events:
        started: Events = []
        if self._step is None or self._step.number != number:
            self._step = _Step(number)
            started = [StepEvent(step=number, phase="started", event_seq=seq)]
        self._step.attempt += 1
        self._step.listening = True
        self._step.glimpsed.clear()
        return started

    def _of_step(self, seq: int, fact: Fact, step: _Step) -> Events:
        call_id = fact.call_id or ""
        match fact.event:
            case ModelFailed() as event:
                step.listening = False
                return [
                    ErrorEvent(
                        step=step.number,
                        attempt=step.attempt,
                        model_ref=event.model_ref,
                        failure_kind=event.failure_kind,
                        message=self._safe(event.message),
                        retryable=event.disposition != "abort",
                        event_seq=seq,
                    )
                ]
            case ModelCompleted() as event:
                step.usage = UsageEvent(
                    step=step.number,
                    model_ref=event.model_ref,
                    usage=event.token_usage or TokenUsage(),
                    event_seq=seq,
                )
                return []
            case AssistantRecorded() as event:
                return self._said(seq, step, event)
            case ToolStarted() as event:
                return [*self._announce(step, call_id, event.tool_name, seq, event), *self._release()]
            case ToolProgress() as event:
                return [
                    McpProgressEvent(
                        step=step.number,
                        agent_name=self._agent_name,
                        tool_call_id=call_id,
                        tool_name=step.announced.get(call_id, ""),
                        progress=float(event.progress_seq) if event.progress is None else event.progress,
                        total=event.total,
                        message=self._safe(event.message) if event.message is not None else None,
                        event_seq=seq,
                    )
                ]
            case ToolResult() | ToolFailed() as event:
                # A call that was refused never started; whoever watches still sees it before its result.
                announced = self._announce(step, call_id, event.tool_name, None, None)
                step.results[call_id] = self._result(seq, step.number, call_id, event)
                return [*announced, *self._release()]
        return []

    def _said(self, seq: int, step: _Step, event: AssistantRecorded) -> Events:
        step.listening = False
        step.calls = event.calls
        out: Events = []
        missing = _not_shown(event.item, step.glimpsed)
        if missing:
            words = self._safe(missing)
            out.append(TextEvent(step=step.number, attempt=step.attempt, text=words, event_seq=seq))
        if step.usage is not None:
            out.append(step.usage)
        if not step.calls:
            out.append(StepEvent(step=step.number, phase="completed"))
        return out

    def _announce(self, step: _Step, call_id: str, name: str, seq: int | None, event: ToolStarted | None) -> Events:
        if call_id in step.announced:
            return []
        step.announced[call_id] = name
        arguments = event.safe_args if event else None
        return [
            ToolCallEvent(step=step.number, tool_call_id=call_id, tool_name=name, arguments=arguments, event_seq=seq)
        ]

    def _result(self, seq: int, step: int, call_id: str, event: ToolResult | ToolFailed) -> ToolResultEvent:
        # The flat fields are read from the metadata, so that they cannot disagree with it.
        metadata = event.metadata
        return ToolResultEvent(
            step=step,
            tool_call_id=call_id,
            tool_name=event.tool_name,
            success=metadata.status == "success",
            error=self._safe(event.error) if isinstance(event, ToolFailed) else None,
            duration_ms=metadata.execution_time_ms,
            preview=self._safe(event.preview or ""),
            metadata=metadata,
            event_seq=seq,
        )

    def _safe(self, text: str) -> str:
        return text if self._secrets is None else self._secrets.hide(text)

    def _release(self, *, waiting: bool = True) -> Events:
        """Results that may be shown now: in model order, and not before every call was announced.

        Without `waiting` the turn rests or is over, and calls that were not announced are not waited for.
        """
        step = self._step
        if step is None or (waiting and len(step.announced) < len(step.calls)):
            return []
        out: Events = []
        while step.released < len(step.calls):
            result = step.results.pop(step.calls[step.released].call_id, None)
            if result is None:
                break
            step.released += 1
            out.append(result)
            if step.released == len(step.calls):
                out.append(StepEvent(step=step.number, phase="completed"))
        return out


def run_stream(turn_id: str, facts: Iterable[Recorded]) -> Events:
    """The whole stream of a turn, read from its facts."""
    stream = RunStream(turn_id)
    return [event for recorded in facts for event in stream.feed(recorded)]


def _not_shown(item: AssistantItem, glimpsed: list[str]) -> str:
    """The words of a reply that no glimpse has shown. Glimpses may be lost, facts may not."""
    shown = "".join(glimpsed)
    return item.text[len(shown) :] if item.text.startswith(shown) else ""
