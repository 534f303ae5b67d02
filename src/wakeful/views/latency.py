"""Facts of a turn to where its time went.

Only durations that facts carry count, and no two clocks are compared; but for the wait in the queue, which is the time
between two facts of the runtime's own clock.
"""

from collections.abc import Iterable

from wakeful.contracts.envelope import Fact, StoredFact, once
from wakeful.contracts.events import (
    ContextResolved,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    Terminal,
    ToolFailed,
    ToolResult,
    TurnRetried,
    TurnStarted,
)
from wakeful.views.turn_record import RoundLatency, ToolLatency, TurnLatency


def turn_latency(turn_id: str, facts: Iterable[StoredFact]) -> TurnLatency:
    """The report on one turn; facts of others are passed over."""
    context_ms = 0.0
    rounds: list[RoundLatency] = []
    tools: list[ToolLatency] = []
    lost: dict[tuple[bool, str | None], list[int]] = {}
    """Attempts of each level's running round that were lost, by whether it is inside a call."""
    end: Terminal | None = None
    admitted_at: int | None = None
    taken_up_at: int | None = None
    asked_at: int | None = None
    for _, _, fact in once(facts):
        if fact.turn_id != turn_id:
            continue
        match fact.event:
            case MessageAdmitted():
                admitted_at = fact.at if admitted_at is None else admitted_at
            case TurnStarted():
                taken_up_at = fact.at
            case ContextResolved() as event:
                context_ms += event.context_build_ms
            case ModelRequested() if not _is_inside_a_call(fact):
                asked_at = fact.at
            case ModelFailed() as event:
                asked_at = asked_at if _is_inside_a_call(fact) else None
                lost.setdefault((_is_inside_a_call(fact), fact.level), []).append(event.duration_ms or 0)
            case ModelCompleted() as event:
                gone = lost.pop((_is_inside_a_call(fact), fact.level), [])
                if not _is_inside_a_call(fact):
                    context_ms += event.context_build_ms
                    asked_at = None
                rounds.append(
                    RoundLatency(
                        step=fact.step or 0,
                        model_ref=event.model_ref,
                        context_build_ms=event.context_build_ms,
                        provider_round_ms=event.provider_round_ms,
                        started_at=event.provider_started_at,
                        completed_at=event.provider_completed_at,
                        lost_attempts=len(gone),
                        lost_ms=sum(gone),
                        depth=_depth(fact),
                    )
                )
            case ToolResult() | ToolFailed() as event:
                tools.append(
                    ToolLatency(
                        step=fact.step or 0,
                        call_id=fact.call_id or event.item.call_id,
                        tool=event.tool_name,
                        execution_ms=event.metadata.execution_time_ms,
                        succeeded=isinstance(event, ToolResult),
                        depth=_depth(fact),
                    )
                )
            case Terminal() as event:
                end = event
            case TurnRetried():
                end = None
    own = [one for one in rounds if one.depth == 0]
    provider_ms = sum(one.provider_round_ms + one.lost_ms for one in own) + sum(
        sum(each) for (inside, _), each in lost.items() if not inside
    )
    tools_ms = sum(one.execution_ms for one in tools if one.depth == 0)
    # What was assembled before the loop began is no part of the time at work, and neither is the wait in the queue.
    in_loop = provider_ms + tools_ms + sum(one.context_build_ms for one in own)
    waited = None if admitted_at is None or taken_up_at is None else max(0, taken_up_at - admitted_at) / 1000
    return TurnLatency(
        turn_id=turn_id,
        queue_wait_ms=waited,
        cleanup_ms=max(0.0, round(end.active_ms - in_loop, 3)) if end else None,
        context_build_ms=context_ms,
        provider_ms=provider_ms,
        tools_ms=tools_ms,
        turn_ms=end.duration_ms if end else None,
        active_ms=end.active_ms if end else None,
        asked_at=asked_at / 1e6 if asked_at is not None and end is None else None,
        rounds=tuple(rounds),
        tools=tuple(tools),
    )


def _is_inside_a_call(fact: Fact) -> bool:
    """It happened in a child: its time is part of the time of the call that made the child."""
    return fact.parent_call_id is not None


def _depth(fact: Fact) -> int:
    """The planner and summaries take the turn's own time, at whatever depth they count."""
    return fact.depth if _is_inside_a_call(fact) else 0
