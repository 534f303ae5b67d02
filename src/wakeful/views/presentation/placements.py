"""How near to the operator an event is (its visibility), and where it belongs (its category).

One table by kind, and a function where a field decides. A kind that stands nowhere here is `trace`: a diagnostic, to
be looked at in the event inspector.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.envelope import Fact, phase_of
from wakeful.contracts.events import AnyEvent, AssistantRecorded, TurnFailed

Visibility: TypeAlias = Literal["action_required", "work_done", "turn_result", "progress", "trace"]
"""From most operator-facing to most diagnostic. action_required: somebody is waited for. work_done: a work item was
completed. turn_result: any other end, and whatever people are told without asking. progress: on the way there. trace:
tools at work, and diagnostics of the runtime."""
Category: TypeAlias = Literal[
    "operator_notification",
    "brief",
    "message",
    "work_item",
    "task",
    "waiting",
    "workspace",
    "runtime",
    "assistant_progress",
    "tool",
    "state_sync",
    "trace",
]
VISIBILITIES: Final[tuple[Visibility, ...]] = ("action_required", "work_done", "turn_result", "progress", "trace")
RESULTS: Final = VISIBILITIES[:3]
"""What the display mode `info` shows."""
Field: TypeAlias = Callable[[str], Any]
"""Reads a field of an event's payload; None where it has none."""


class Placement(NamedTuple):
    """Where an event stands."""

    visibility: Visibility
    category: Category


TRACE: Final = Placement("trace", "trace")
_TOOL: Final = Placement("trace", "tool")
_SYNC: Final = Placement("trace", "state_sync")
_TOLD: Final = Placement("turn_result", "operator_notification")
_NEEDS_YOU: Final = Placement("action_required", "operator_notification")

TOOL_ENDS: Final = frozenset(("tool.result", "tool.failed"))
"""Ends of calls: raw events of the trace, and one line a call in `verbose`."""

_BY_KIND: Final[Mapping[str, Placement]] = {
    "action.required": _NEEDS_YOU,
    "action.reminded": _NEEDS_YOU,
    "runtime_tool.requested": Placement("progress", "waiting"),
    "work_item.completed": Placement("work_done", "work_item"),
    "turn.completed": Placement("turn_result", "runtime"),
    "turn.failed": Placement("turn_result", "runtime"),
    "turn.retried": Placement("progress", "runtime"),
    "budget.noticed": _TOLD,
    "timer.missed": _TOLD,
    "liveness.violated": _TOLD,
    "progress.stalled": _TOLD,
    "notice.requested": _TOLD,
    "runtime.package_replaced": _TOLD,
    "runtime.part_failed": _TOLD,
    "store.size_noticed": _TOLD,
    "provider.disappeared": _TOLD,
    "provider.answered": _TOLD,
    "assistant.recorded": Placement("progress", "assistant_progress"),
    "message.admitted": Placement("progress", "message"),
    "message.expired": Placement("progress", "message"),
    "turn.interjected": Placement("progress", "message"),
    "task.created": Placement("progress", "task"),
    "task.status_changed": Placement("progress", "task"),
    "task.ended": Placement("progress", "task"),
    "task.retried": Placement("progress", "task"),
    "work_item.created": Placement("progress", "work_item"),
    "work_item.enqueued": Placement("progress", "work_item"),
    "work_item.picked": Placement("progress", "work_item"),
    "work_item.updated": Placement("progress", "work_item"),
    "work_item.blocker_changed": Placement("progress", "work_item"),
    "wait.created": Placement("progress", "waiting"),
    "wait.expired": Placement("progress", "waiting"),
    "wake_hint.stored": Placement("progress", "waiting"),
    "workspace.attached": Placement("progress", "workspace"),
    "workspace.used": Placement("progress", "workspace"),
    "workspace.detached": Placement("progress", "workspace"),
    "worktree.created": Placement("progress", "workspace"),
    "worktree.failed": Placement("progress", "workspace"),
    "worktree.removed": Placement("progress", "workspace"),
    "worktree.retained": Placement("progress", "workspace"),
    "model.answered": Placement("turn_result", "waiting"),
    "routing.fallback.applied": Placement("trace", "runtime"),  # the failure before it says the same
    "runtime.warning": Placement("trace", "runtime"),
    "runtime.control_changed": Placement("progress", "runtime"),
    "provider.unparked": Placement("progress", "runtime"),
    "result.changed": _TOLD,
    "channel.added": Placement("progress", "runtime"),
    "channel.paired": Placement("progress", "runtime"),
    "channel.removed": Placement("progress", "runtime"),
    "budget.granted": Placement("progress", "runtime"),
    "tool.started": _TOOL,
    "tool.dispatched": _TOOL,
    "tool.args": _TOOL,
    "tool.progress": _TOOL,
    "tool.result": _TOOL,
    "tool.failed": _TOOL,
    "session.started": _SYNC,
    "agent.created": _SYNC,
    "agent.revised": _SYNC,
    "agent.model_changed": _SYNC,
    "agent.archived": _SYNC,
    "agent.deleted": _SYNC,
    "work_queue.projected": _SYNC,
    "memory.projected": _SYNC,
    "thread.checkpointed": _SYNC,
}
_OF_A_LEVEL: Final = frozenset(("assistant.recorded", *TOOL_ENDS))
"""Events of a round: those of a planner or of a summary are nobody's conversation."""


def place(kind: str, field: Field, *, is_of_phase: bool = False) -> Placement:
    """Of an event, given its kind and its fields. `is_of_phase`: it is a planner's, or of a summary."""
    if is_of_phase and kind in _OF_A_LEVEL:
        return TRACE
    decide = _BY_FIELD.get(kind)
    return decide(field) if decide is not None else _BY_KIND.get(kind, TRACE)


def feed_placement(fact: Fact) -> Placement | None:
    """Of a fact that stands in the feed over all agents; None: it does not.

    The feed has what `verbose` shows. An end that a brief of the same commit tells in words is left to the brief.
    """
    event = fact.event
    if event.kind not in FEED_KINDS or _is_told_by_brief(fact):
        return None
    found = place(event.kind, lambda name: getattr(event, name, None), is_of_phase=phase_of(fact.level) is not None)
    return found if found.visibility != "trace" or (found.category == "tool" and event.kind in TOOL_ENDS) else None


def _is_told_by_brief(fact: Fact) -> bool:
    event: AnyEvent = fact.event
    match event.kind:
        case "turn.failed":
            return isinstance(event, TurnFailed) and event.status != "cancelled"
        case "work_item.completed":
            return getattr(event, "text_ref", None) is not None
        case "assistant.recorded":
            return (
                isinstance(event, AssistantRecorded)
                and fact.level is None
                and not event.calls
                and not event.continuation
            )
    return False


def _brief(field: Field) -> Placement:
    return Placement(field("visibility") or "turn_result", "brief")


def _decided(field: Field) -> Placement:
    return _NEEDS_YOU if field("status") == "timed_out" else Placement("progress", "waiting")


def _limit(field: Field) -> Placement:
    return _TOLD if field("window") is not None else TRACE


def _lost(field: Field) -> Placement:
    """Who follows knows of a wait; they are not told of each attempt that is made to end it."""
    return TRACE if field("after_wait") else Placement("progress", "runtime")


def _waits_for_model(field: Field) -> Placement:
    return Placement("turn_result", "waiting") if field("told") else TRACE


def _parked(field: Field) -> Placement:
    return _TOLD if not field("probes") else TRACE


def _troubled(field: Field) -> Placement:
    return _TOLD if field("words") else TRACE


def _beats(field: Field) -> Placement:
    return TRACE if field("ok") else _TOLD


def _controlled(field: Field) -> Placement:
    """A signal to refresh, unless the agent cannot go on by itself."""
    is_stuck = field("control") == "paused" and field("cause") in ("failure", "configuration")
    return _NEEDS_YOU if is_stuck else _SYNC


def _rests(field: Field) -> Placement:
    if field("reason") in ("tool_missing", "agent_missing"):
        return _NEEDS_YOU
    return Placement("progress", "waiting") if field("reason") == "paused" else TRACE


def _resumed(field: Field) -> Placement:
    return Placement("progress", "runtime") if field("cause") == "recovery" else TRACE


_BY_FIELD: Final[Mapping[str, Callable[[Field], Placement]]] = {
    "brief.created": _brief,
    "action.resolved": _decided,
    "limit.changed": _limit,
    "model.failed": _lost,
    "model.wait_started": _waits_for_model,
    "provider.parked": _parked,
    "channel.troubled": _troubled,
    "heartbeat.changed": _beats,
    "agent.state_changed": _controlled,
    "turn.suspended": _rests,
    "turn.resumed": _resumed,
}
FEED_KINDS: Final = frozenset(
    (*(kind for kind, at in _BY_KIND.items() if at.visibility != "trace"), *_BY_FIELD, *TOOL_ENDS)
) - {"turn.completed"}
"""Kinds of which some events stand in the feed."""
