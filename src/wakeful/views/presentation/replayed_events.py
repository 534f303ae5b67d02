"""A stored event as it is replayed: its provenance in an envelope, apart from its payload.

Replaying shows what was: nothing is let in, run or said again by it. Events of a turn have the provenance of the
message that the turn began with, as far as that is known. The order is that of `event_seq`, and of nothing else.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.envelope import RuntimeEvent, iso
from wakeful.contracts.values import Value
from wakeful.views.presentation.event_details import FAILURE_WIDTH
from wakeful.views.presentation.operator_events import OperatorEventPresentation, present
from wakeful.views.presentation.placements import Placement
from wakeful.views.presentation.plain_text import one_line


class EventEnvelope(Value):
    """Everything by which a client finds and orders an event, without reading its payload."""

    event_id: str
    event_seq: int
    """Its number in its agent's stream: the cursor."""
    ts: str
    kind: str
    agent_id: str
    thread_id: str | None = None
    turn_id: str | None = None
    origin: dict[str, Any] | None = None
    trust: str | None = None
    authority_class: str | None = None
    delivery_surface: str | None = None
    admission_context: str | None = None
    transport: str | None = None
    """The channel, webhook, trigger, timer, task or part of the runtime that it came by."""
    reply_route: str | None = None
    """Where an answer would go: the channel and who spoke there."""
    message_id: str | None = None
    task_id: str | None = None
    work_item_id: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class ReplayedEvent(Value):
    """An event of the past."""

    envelope: EventEnvelope
    presentation: OperatorEventPresentation
    """How a client may show it; that says nothing about who may see it."""
    payload: dict[str, Any]
    """As the schema of its kind describes it, in full. Secrets are hidden."""


_FROM_PAYLOAD = (
    "origin",
    "trust",
    "authority_class",
    "delivery_surface",
    "admission_context",
    "message_id",
    "task_id",
    "work_item_id",
    "correlation_id",
    "causation_id",
)
_OF_MESSAGE = (*_FROM_PAYLOAD, "transport", "reply_route")


def provenance_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What an event's own payload says of where it comes from."""
    found = {name: payload[name] for name in _FROM_PAYLOAD if payload.get(name)}
    for name in ("message_id", "task_id"):
        if payload.get(f"related_{name}"):
            found.setdefault(name, payload[f"related_{name}"])
    origin = found.get("origin")
    if isinstance(origin, dict):
        names = ("channel_id", "source", "descriptor_id", "timer_id", "task_id", "subsystem")
        found["transport"] = next((str(origin[name]) for name in names if origin.get(name)), None)
        if origin.get("kind") == "channel":
            sender = f"/{origin['sender_id']}" if origin.get("sender_id") else ""
            found["reply_route"] = f"channel:{origin.get('channel_id')}{sender}"
    elif payload.get("source"):
        found["transport"] = str(payload["source"])
    return found


def replayed(event: RuntimeEvent, *, of_turn: Mapping[str, Any] | None = None, words: str = "") -> ReplayedEvent:
    """`of_turn`: the provenance of the message that its turn began with. `words`: see `present`."""
    inherited = {name: value for name, value in (of_turn or {}).items() if name in _OF_MESSAGE}
    if event.type == "message.admitted":
        inherited = {}
    envelope = EventEnvelope(
        event_id=event.event_id,
        event_seq=event.sequence,
        ts=event.timestamp,
        kind=event.type,
        agent_id=event.agent_id,
        thread_id=event.thread_id,
        turn_id=event.turn_id,
        **(inherited | provenance_of(event.payload)),
    )
    return ReplayedEvent(envelope=envelope, presentation=present(event, words=words), payload=event.payload)


def unreadable(agent_id: str, seq: int, at: int, place: Placement, problem: str) -> ReplayedEvent:
    """Stands for an event that is there and cannot be read."""
    envelope = EventEnvelope(
        event_id=f"{agent_id}:{seq}", event_seq=seq, ts=iso(at), kind="log.unreadable", agent_id=agent_id
    )
    shown = OperatorEventPresentation(
        visibility=place.visibility,
        category=place.category,
        title="Unreadable",
        summary=one_line(f"this event cannot be read, see wakeful store verify: {problem}", FAILURE_WIDTH),
        source_event_kind=envelope.kind,
    )
    return ReplayedEvent(envelope=envelope, presentation=shown, payload={})
