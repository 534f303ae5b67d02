"""The one table: which fact of the log is shown as what, in the run stream, on the wire and to hosts of the loop.

Every view asks here before it shows a fact, and what stands in no column is not shown by that view. The words that
views share (how a call or a turn ended) are read here too, so that no two of them can say different things.
"""

from typing import Final, Literal, NamedTuple, TypeAlias, cast

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    EVENTS,
    AnyEvent,
    LimitChanged,
    LoopFact,
    StopCause,
    ToolFailed,
    ToolResult,
    TurnStatus,
)
from wakeful.contracts.tools import PREVIEW_CHARS, FailedStatus
from wakeful.views.wire_messages import WireStop

WireStatus: TypeAlias = Literal["completed", "incomplete", "error", "cancelled"]
MetadataStatus: TypeAlias = Literal["success", "error", "rejected", "timed_out", "cancelled"]


class ViewNames(NamedTuple):
    """The names of a kind of fact in each view; None: it is not shown there."""

    run: str | None = None
    wire: str | None = None
    loop: str | None = None


NOWHERE = ViewNames()
DELTA = "model.delta"
"""Words of a model that are on their way: shown and forgotten, so that no fact has this kind."""

VIEWS: dict[str, ViewNames] = {
    "turn.started": ViewNames(run="status"),
    "turn.suspended": ViewNames(run="status"),
    "turn.completed": ViewNames(run="status", wire="turn_terminal"),
    "turn.failed": ViewNames(run="status", wire="turn_terminal", loop="failed"),
    "turn.interjected": ViewNames(run="message_injected"),
    "model.requested": ViewNames(run="step", loop="turn_started"),
    DELTA: ViewNames(run="text", wire="chunk"),
    # The same words, once they are believed: what no glimpse has shown of them.
    "assistant.recorded": ViewNames(run="text", wire="chunk", loop="continuation_message_added"),
    "model.completed": ViewNames(run="usage"),
    "model.failed": ViewNames(run="error"),
    "model.wait_started": ViewNames(run="waiting"),
    "tool.started": ViewNames(run="tool_call", wire="tool_call_update", loop="tool_call"),
    "tool.progress": ViewNames(run="mcp_progress"),
    "tool.result": ViewNames(run="tool_result", wire="tool_call_update", loop="tool_result"),
    "tool.failed": ViewNames(run="tool_result", wire="tool_call_update", loop="tool_result"),
    "context.resolved": ViewNames(run="context"),
    "context.compaction.started": ViewNames(run="context"),
    "context.compaction.completed": ViewNames(run="context"),
    "context.compaction.failed": ViewNames(run="context"),
    "runtime.warning": ViewNames(run="warning"),
    # While a workflow is planned and while one runs; calls of either are told as calls as well.
    "subagent.started": ViewNames(wire="planning_update"),
    "answer.rejected": ViewNames(wire="planning_update"),
    "workflow.started": ViewNames(wire="task_update"),
    "limit.changed": ViewNames(wire="budget_exceeded", loop="budget_exceeded"),
    "cost.recorded": ViewNames(wire="cost_summary"),
    "action.required": ViewNames(loop="approval_required"),
    "runtime_tool.requested": ViewNames(loop="runtime_tool_pending"),
    # What the loop notes about itself has the name that hosts know as its first alias.
    **{event.kind: ViewNames(loop=event.aliases[0]) for event in EVENTS if issubclass(event, LoopFact)},
}

TURN_STATUS: dict[TurnStatus, WireStatus] = {
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "error",
    "cancelled": "cancelled",
}
"""How a turn ended, as the wire says it."""

WIRE_STOP: Final[dict[StopCause, WireStop]] = {
    "invalid_output": "provider_error",  # the model was asked again, and what it gave never fitted
    "cut_off": "tokens",  # the limit of one answer, and not of the turn
    "filtered": "provider_error",
    "refused": "provider_error",
    "node_failed": "stalled",  # what depended on the node of a workflow cannot go on
    "runtime_error": "interrupted",  # nothing that anybody said or did ended it
}
"""Reasons of the log for which the wire has no word, and the word it has instead. All others are the same on both."""

METADATA_STATUS: dict[FailedStatus, MetadataStatus] = {
    "failed": "error",
    "denied": "rejected",
    "rejected": "rejected",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
    "interrupted": "error",
    "skipped": "error",
    "invalid": "error",
}
"""How a call failed, as the metadata of its result says it. A result that is none of these is a `success`."""

_OF_A_LEVEL = ("max_steps", "iterations")
"""Limits that a child has for itself: reaching one ends the child and not the turn."""


def shown(event: AnyEvent) -> ViewNames:
    """The names of an event in the views."""
    return VIEWS.get(event.kind, NOWHERE)


def wire_stop(cause: StopCause) -> WireStop:
    """Why a turn ended, in a word that clients know."""
    return WIRE_STOP.get(cause, cast(WireStop, cause))


def is_roots(fact: Fact) -> bool:
    """It belongs to the turn's own conversation, and not to a child, the planner or a summary."""
    return fact.level is None


def is_conversations(fact: Fact) -> bool:
    """It belongs to the conversation or to a child that a call of it made; not to the planner or a summary."""
    return fact.level is None or fact.parent_call_id is not None


def is_turns(fact: Fact) -> bool:
    """It is about the whole turn, whoever caused it."""
    event = fact.event
    return fact.level is None or (isinstance(event, LimitChanged) and event.limit_name not in _OF_A_LEVEL)


class CallEnding(NamedTuple):
    """How a call ended, for whoever shows it."""

    name: str
    is_error: bool
    outcome: str
    """The status of the fact: succeeded, partial, failed, cancelled and the like."""
    words: str
    """What it returned, or what went wrong: the beginning, with room for hiding what must not be shown."""
    duration_ms: float


ROOM = 8 * PREVIEW_CHARS
"""More than is shown of a result, so that a secret at the edge is hidden whole before the text is cut."""


def ended(event: ToolResult | ToolFailed) -> CallEnding:
    """The end of a call."""
    if isinstance(event, ToolResult):
        words = event.item.text or event.preview
        return CallEnding(event.tool_name, False, event.status, words[:ROOM], event.duration_ms)
    return CallEnding(event.tool_name, True, event.status, event.error[:ROOM], event.duration_ms)
