"""The rounds of one level as the run stream shows them: the executor's, or the planner's.

The order of a step is text, usage, tool calls, progress, results in model order, and then its completion. The log has
another order, because it takes each outcome when it is known; so this view holds back, and only this view:
usage until the reply is recorded, results until every call of the step was announced and the ones before them are out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.envelope import Fact, iso
from wakeful.contracts.events import (
    AssistantRecorded,
    CallAsked,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelWaiting,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.models import ModelGlimpse, TextDelta, TokenUsage
from wakeful.decisions.provider_waits import SHOWN_FROM
from wakeful.decisions.secret_shapes import hide_shapes_in
from wakeful.views.run_stream_events import (
    ErrorEvent,
    McpProgressEvent,
    RunEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
    WaitingEvent,
)

Events: TypeAlias = list[RunEvent]
Phase: TypeAlias = Literal["executor", "planner"]


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


class Rounds:
    """Feed it the facts of one level, in order. `safe` takes out of a text what must not be shown."""

    def __init__(self, safe: Callable[[str], str], phase: Phase = "executor") -> None:
        self.agent_name = ""
        self._safe = safe
        self._phase = phase
        self._step: _Step | None = None

    def feed(self, seq: int, fact: Fact) -> Events:
        """What a fact adds."""
        match fact.event:
            case ModelRequested():
                return self._requested(seq, fact.step or 0)
            case ModelFailed() if self._step is None or not self._step.listening or fact.step != self._step.number:
                # Turned down before anything was sent: whoever watches sees an attempt all the same.
                return [*self._requested(seq, fact.step or 0), *self.feed(seq, fact)]
        if self._step is None or fact.step != self._step.number:
            return []
        return self._of_step(seq, fact, self._step)

    def glimpse(self, step: int, glimpse: ModelGlimpse) -> Events:
        """What a glimpse of the running attempt adds. One that comes too late is dropped."""
        current = self._step
        if current is None or current.number != step or not current.listening:
            return []
        if not isinstance(glimpse, TextDelta) or not glimpse.text:
            return []
        current.glimpsed.append(glimpse.text)
        return [TextEvent(step=step, attempt=current.attempt, text=glimpse.text, phase=self._phase)]

    def release(self, *, waiting: bool = True) -> Events:
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
                out.append(StepEvent(step=step.number, status="completed", phase=self._phase))
        return out

    def _requested(self, seq: int, number: int) -> Events:
        started: Events = []
        if self._step is None or self._step.number != number:
            self._step = _Step(number)
            started = [StepEvent(step=number, status="started", event_seq=seq, phase=self._phase)]
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
                        phase=self._phase,
                    )
                ]
            case ModelWaiting() as event:
                return self._waits(seq, fact, event)
            case ModelCompleted() as event:
                step.usage = UsageEvent(
                    step=step.number,
                    model_ref=event.model_ref,
                    usage=event.token_usage or TokenUsage(),
                    event_seq=seq,
                    phase=self._phase,
                )
                return []
            case AssistantRecorded() as event:
                return self._said(seq, step, event)
            case ToolStarted() as event:
                return [*self._announce(step, call_id, event.tool_name, seq, event), *self.release()]
            case ToolProgress() as event:
                return [
                    McpProgressEvent(
                        step=step.number,
                        agent_name=self.agent_name,
                        tool_call_id=call_id,
                        tool_name=step.announced.get(call_id, ""),
                        progress=float(event.progress_seq) if event.progress is None else event.progress,
                        total=event.total,
                        message=self._safe(event.message) if event.message is not None else None,
                        event_seq=seq,
                        phase=self._phase,
                    )
                ]
            case ToolResult() | ToolFailed() as event:
                # A call that was refused never started; whoever watches still sees it before its result.
                announced = self._announce(step, call_id, event.tool_name, None, None)
                step.results[call_id] = self._result(seq, step.number, call_id, event)
                return [*announced, *self.release()]
        return []

    def _waits(self, seq: int, fact: Fact, event: ModelWaiting) -> Events:
        """What only takes a moment is not shown."""
        if event.next_try - event.since < SHOWN_FROM:
            return []
        waiting = WaitingEvent(
            step=fact.step or 0,
            provider=event.model_ref.partition(":")[0],
            model_ref=event.model_ref,
            failure_kind=event.failure_kind,
            message=self._safe(event.message),
            next_try=iso(event.next_try),
            seconds=max(0, event.next_try - fact.at) / 1_000_000,
            event_seq=seq,
            phase=self._phase,
        )
        return [waiting]

    def _said(self, seq: int, step: _Step, event: AssistantRecorded) -> Events:
        step.listening = False
        step.calls = event.calls
        out: Events = []
        missing = _not_shown(event.item, step.glimpsed)
        if missing:
            words = self._safe(missing)
            out.append(TextEvent(step=step.number, attempt=step.attempt, text=words, event_seq=seq, phase=self._phase))
        if step.usage is not None:
            out.append(step.usage)
        if not step.calls:
            out.append(StepEvent(step=step.number, status="completed", phase=self._phase))
        return out

    def _announce(self, step: _Step, call_id: str, name: str, seq: int | None, event: ToolStarted | None) -> Events:
        if call_id in step.announced:
            return []
        step.announced[call_id] = name
        return [
            ToolCallEvent(
                step=step.number,
                tool_call_id=call_id,
                tool_name=name,
                arguments=hide_shapes_in(event.safe_args) if event else None,
                event_seq=seq,
                phase=self._phase,
            )
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
            phase=self._phase,
        )


def _not_shown(item: AssistantItem, glimpsed: list[str]) -> str:
    """The words of a reply that no glimpse has shown. Glimpses may be lost, facts may not."""
    shown = "".join(glimpsed)
    return item.text[len(shown) :] if item.text.startswith(shown) else ""
