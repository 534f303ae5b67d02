"""A message as readers see it: one envelope, whatever way it came."""

from datetime import UTC, datetime
from typing import Any

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import (
    AdmissionContext,
    DeliverySurface,
    MessageBody,
    MessageKind,
    Origin,
    Priority,
    TextBody,
    TriggerKind,
    Trust,
    trigger_of,
    trust_of,
)
from wakeful.contracts.values import Value


class MessageEnvelope(Value):
    """Everything that is known of a message when it is let in. Nothing of it changes afterwards."""

    id: str
    agent_id: str
    thread_id: str
    created_at: str
    """ISO-8601, UTC."""
    kind: MessageKind
    origin: Origin
    authority_class: Authority
    """Whose word it is."""
    trust: Trust
    """The older name for `authority_class`."""
    derived_from: Authority
    """The lowest authority in the chain of causes behind it."""
    priority: Priority
    trigger_kind: TriggerKind
    work_item_id: str | None = None
    task_id: str | None = None
    source_refs: dict[str, str] = {}
    body: MessageBody
    metadata: dict[str, Any] | None = None
    delivery_surface: DeliverySurface
    admission_context: AdmissionContext
    correlation_id: str | None = None
    causation_id: str | None = None


class MessageLabels(Value):
    """What a message is, apart from its words: operator's instruction, signal, evidence, result or follow-up."""

    message_id: str
    kind: MessageKind
    origin: Origin
    authority_class: Authority
    derived_from: Authority
    priority: Priority
    delivery_surface: DeliverySurface
    admission_context: AdmissionContext
    task_id: str | None = None
    work_item_id: str | None = None


def labels_of(event: MessageAdmitted) -> MessageLabels:
    """Of the event that admitted it."""
    return MessageLabels(
        message_id=event.message_id,
        kind=event.message_kind,
        origin=event.origin,
        authority_class=event.authority_class,
        derived_from=event.derived_from or event.authority_class,
        priority=event.priority,
        delivery_surface=event.delivery_surface,
        admission_context=event.admission_context,
        task_id=event.task_id,
        work_item_id=event.work_item_id,
    )


def message_envelope(entry: StoredFact) -> MessageEnvelope:
    """Of the fact that admitted it."""
    event = entry.fact.event
    assert isinstance(event, MessageAdmitted)
    return MessageEnvelope(
        id=event.message_id,
        agent_id=entry.agent_id,
        thread_id=entry.fact.thread_id or "",
        created_at=datetime.fromtimestamp(entry.fact.at / 1e6, UTC).isoformat(),
        kind=event.message_kind,
        origin=event.origin,
        authority_class=event.authority_class,
        trust=trust_of(event.authority_class),
        derived_from=event.derived_from or event.authority_class,
        priority=event.priority,
        trigger_kind=trigger_of(event.message_kind),
        work_item_id=event.work_item_id,
        task_id=event.task_id,
        source_refs=event.source_refs,
        body=event.body if event.body is not None else TextBody(text=event.item.text),
        metadata=event.metadata,
        delivery_surface=event.delivery_surface,
        admission_context=event.admission_context,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
    )
