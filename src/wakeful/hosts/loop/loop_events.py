"""Facts as the loop's own events, spelled as hosts know them, and the telling of them.

Every event is made from one fact of the log, so their order is the log's, and nothing is told before it is stored.
Which fact has which name is said by the one mapping of all views. Parameters in events are redacted. An observer that
raises changes nothing but the log, where it leaves a trace.
"""

import asyncio
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    ActionRequired,
    AnyEvent,
    AssistantRecorded,
    CompletionBlocked,
    Event,
    InterruptReceived,
    LimitChanged,
    LoopFact,
    ModelRequested,
    ObserverFailed,
    RuntimeToolRequested,
    ToolResult,
    ToolResultDiagnosed,
    ToolStarted,
    TranscriptClosed,
    TranscriptLockContended,
    TurnFailed,
)
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.ports import Clock, Log
from wakeful.service.hooks import HookRegistry
from wakeful.views.conversation_export import ResultEvent, event_of
from wakeful.views.mapping import VIEWS

ON_EVENT = "on_event"
HOOK = "loop_event"


class LoopEvent(NamedTuple):
    """A name and its payload."""

    name: str
    payload: dict[str, Any]


class HostIds(NamedTuple):
    """How the host calls this run; empty where it said nothing."""

    run_id: str = ""
    session_id: str = ""


def _name(event: Event | type[Event]) -> str:
    """What hosts call a fact. Only those that have a name there are told."""
    name = VIEWS[event.kind].loop
    assert name is not None, event.kind
    return name


def turn_started(turn: int, max_turns: int, message_count: int) -> LoopEvent:
    return LoopEvent(_name(ModelRequested), {"turn": turn, "max_turns": max_turns, "message_count": message_count})


def tool_call(turn: int, tool_name: str, tool_call_id: str, envelope: dict[str, Any]) -> LoopEvent:
    """`envelope` is the redacted form of the parameters with its hash."""
    return LoopEvent(
        _name(ToolStarted), {"turn": turn, "tool_name": tool_name, "tool_call_id": tool_call_id, **envelope}
    )


def tool_result(turn: int, tool_name: str, tool_call_id: str, *, success: bool) -> LoopEvent:
    payload = {"turn": turn, "tool_name": tool_name, "tool_call_id": tool_call_id, "success": success}
    return LoopEvent(_name(ToolResult), payload)


def approval_required(turn: int, tool_name: str, tool_call_id: str, action_id: str) -> LoopEvent:
    payload = {"turn": turn, "tool_name": tool_name, "tool_call_id": tool_call_id, "action_id": action_id}
    return LoopEvent(_name(ActionRequired), payload)


def runtime_tool_pending(turn: int, request: RuntimeToolRequest) -> LoopEvent:
    named = {"tool_name": request.tool_name, "tool_call_id": request.tool_call_id, "request_id": request.request_id}
    return LoopEvent(_name(RuntimeToolRequested), {"turn": turn, **named})


def continuation_message_added(turn: int, role: str) -> LoopEvent:
    return LoopEvent(_name(AssistantRecorded), {"turn": turn, "role": role})


def failed(error: str, turn: int | None = None) -> LoopEvent:
    return LoopEvent(_name(TurnFailed), {"error": error} if turn is None else {"turn": turn, "error": error})


def budget_exceeded(event: LimitChanged, budgets: RunBudgets) -> LoopEvent:
    """`current` is what was used; the one after was refused."""
    budget = budgets.reached(event)
    figures = {"budget": budget.name, "dimension": budget.dimension}
    return LoopEvent(_name(event), {**figures, "current": budget.current, "ceiling": budget.ceiling})


def noted(event: LoopFact) -> LoopEvent:
    """What the loop itself noted, with what it holds. What a payload need not have is absent."""
    payload = event.model_dump(mode="json", exclude_none=True)
    match event:
        case TranscriptLockContended():
            payload = {"session_id": event.session_id}
        case CompletionBlocked():
            payload = {**payload.pop("rule"), **payload}
        case ToolResultDiagnosed():
            payload = {**payload.pop("diagnostics"), **payload}
        case InterruptReceived():
            message = payload.pop("message", None) or {}
            payload = {**payload.pop("details"), **payload, "message": message.get("content", "")}
        case _:
            pass
    return LoopEvent(_name(event), payload)


def completed(event: TranscriptClosed) -> LoopEvent:
    """The loop ended; `run_outcome` tells whether the work is done."""
    return LoopEvent(
        _name(event),
        {
            "turn": event.turn,
            "message_count": event.message_count,
            "tool_results": event.tool_results,
            "run_outcome": event.run_outcome.model_dump(mode="json", exclude_none=True),
        },
    )


def as_result_event(event: LoopEvent, recorded: StoredFact, ids: HostIds) -> ResultEvent:
    """An event as the result lists it, with its place in the log."""
    own = {"run_id": ids.run_id, "session_id": ids.session_id}
    return event_of(
        recorded, type=event.name, metadata=event.payload, **{name: each for name, each in own.items() if each}
    )


class Teller:
    """Follows one run's stream: into the view, and to whoever listens."""

    def __init__(
        self,
        store: Log,
        clock: Clock,
        agent_id: str,
        take: Callable[[StoredFact], list[LoopEvent]],
        on_event: Callable[[str, dict[str, Any]], Any] | None,
        hooks: HookRegistry,
    ) -> None:
        self._store = store
        self._clock = clock
        self._agent_id = agent_id
        self._take = take
        """Takes a fact into the view of the run; returns the events it stands for."""
        self._on_event = on_event
        self._hooks = hooks
        self._seen = 0
        self._one_at_a_time = asyncio.Lock()
        self._thread_id: str | None = None
        self._turn_id: str | None = None

    async def catch_up(self) -> None:
        """Tell everything that is stored and has not been told."""
        async with self._one_at_a_time:
            while new := await self._store.read(self._agent_id, after=self._seen):
                for recorded in new:
                    self._seen = recorded.seq
                    fact = recorded.fact
                    self._thread_id, self._turn_id = fact.thread_id or self._thread_id, fact.turn_id or self._turn_id
                    for event in self._take(recorded):
                        await self._tell(event)

    async def record(self, *events: AnyEvent) -> None:
        """Append facts of the loop itself, under the run's ids once it has some."""
        now = self._clock.now()
        facts = [Fact(event, now, self._thread_id, self._turn_id) for event in events]
        await self._store.admit(self._agent_id, facts)

    async def _tell(self, event: LoopEvent) -> None:
        failures: list[tuple[str, Exception]] = []
        if self._on_event is not None:
            try:
                await at_once(self._on_event, event.name, copy.deepcopy(event.payload))
            except Exception as error:
                failures.append((ON_EVENT, error))
        failures += [(HOOK, error) for error in await self._hooks.observe(HOOK, event.name, event.payload)]
        # An observer that fails at hearing that an observer failed is not worth another trace: there would be no end.
        if event.name != "observer_failed":
            await self._trace(failures)

    async def _trace(self, failures: list[tuple[str, Exception]]) -> None:
        for surface, error in failures:
            await self.record(ObserverFailed(surface=surface, error=describe(error)))


def describe(error: Exception) -> str:
    """An exception in a line that fits an event."""
    return f"{type(error).__name__}: {error}"[:500]
