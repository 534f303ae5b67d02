"""Facts of a turn to where its time went. Only the durations that facts carry count; no two clocks are compared."""

from collections.abc import Iterable

from wakeful.contracts.envelope import Recorded
from wakeful.contracts.events import ContextResolved, ModelCompleted, ModelFailed, Terminal, ToolFailed, ToolResult
from wakeful.contracts.turns import RoundLatency, ToolLatency, TurnLatency


def turn_latency(turn_id: str, facts: Iterable[Recorded]) -> TurnLatency:
    """The report on one turn; facts of others are passed over."""
    context_ms = 0.0
    rounds: list[RoundLatency] = []
    tools: list[ToolLatency] = []
    lost: list[int] = []
    end: Terminal | None = None
    for _, _, fact in facts:
        if fact.turn_id != turn_id:
            continue
        match fact.event:
            case ContextResolved() as event:
                context_ms += event.context_build_ms
            case ModelFailed() as event:
                lost.append(event.duration_ms or 0)
            case ModelCompleted() as event:
                context_ms += event.context_build_ms
                rounds.append(
                    RoundLatency(
                        step=fact.step or 0,
                        model_ref=event.model_ref,
                        context_build_ms=event.context_build_ms,
                        provider_round_ms=event.provider_round_ms,
                        started_at=event.provider_started_at,
                        completed_at=event.provider_completed_at,
                        lost_attempts=len(lost),
                        lost_ms=sum(lost),
                    )
                )
                lost.clear()
            case ToolResult() | ToolFailed() as event:
                tools.append(
                    ToolLatency(
                        step=fact.step or 0,
                        tool_call_id=fact.call_id or event.item.call_id,
                        tool_name=event.tool_name,
                        execution_ms=event.metadata.execution_time_ms,
                        succeeded=isinstance(event, ToolResult),
                    )
                )
            case Terminal() as event:
                end = event
    return TurnLatency(
        turn_id=turn_id,
        context_build_ms=context_ms,
        provider_ms=sum(one.provider_round_ms + one.lost_ms for one in rounds) + sum(lost),
        tools_ms=sum(one.execution_ms for one in tools),
        turn_ms=end.duration_ms if end else None,
        active_ms=end.active_ms if end else None,
        rounds=tuple(rounds),
        tools=tuple(tools),
    )
