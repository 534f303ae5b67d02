"""Rules of `triggers`, `trigger_deliveries` and `refused_input`: an address per generation, a delivery once.

Every agent of a runtime has its default trigger from its creation on: no fact says so, and none has to.
"""

from collections.abc import Sequence
from typing import TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    AgentCreated,
    InputRefused,
    TriggerCreated,
    TriggerDelivered,
    TriggerRevised,
    TriggerRevoked,
    TriggerRotated,
)
from wakeful.decisions.waking.trigger_addresses import trigger_id_of
from wakeful.ports.triggers import (
    REFUSED_INPUT,
    TRIGGER_DELIVERIES,
    TRIGGERS,
    DeliveryRow,
    RefusedInputRow,
    TriggerRow,
)
from wakeful.store.tables.row_rules import AtHand, LogEntry, Need, RowKey, RowRule, Rules

TriggerFact: TypeAlias = TriggerCreated | TriggerRevised | TriggerRotated | TriggerRevoked | TriggerDelivered


def _provisioned(entry: LogEntry, event: AgentCreated, rows: AtHand) -> list[TriggerRow]:
    trigger_id = trigger_id_of(entry.agent_id)
    if rows.get(TRIGGERS, trigger_id) is not None:
        return []
    return [
        TriggerRow(
            trigger_id=trigger_id,
            agent_id=entry.agent_id,
            name="",
            state="active",
            mode="wake_hint",
            generation=1,
            say="",
            thread="main",
            signature=None,
            signing_env=None,
            created_by="runtime",
            created_at=entry.fact.at,
            revoked_at=None,
            deliveries=0,
            last_delivered_at=None,
            last_delivery=None,
            last_source=None,
            salt=event.salt,
        )
    ]


def _created(entry: LogEntry, event: TriggerCreated, rows: AtHand) -> list[TriggerRow]:
    """A revoked one may be there again, and keeps its counts; never with an address that it had before."""
    known = rows.get(TRIGGERS, event.trigger_id)
    if known is not None and (known.state == "active" or event.generation <= known.generation):
        raise EventRefused(
            f"trigger {event.trigger_id} is there, {known.state}, with generation {known.generation}",
            "Revoke it first, or rotate it.",
        )
    return [
        TriggerRow(
            trigger_id=event.trigger_id,
            agent_id=entry.agent_id,
            name=event.name,
            state="active",
            mode=event.delivery_mode,
            generation=event.generation,
            say=event.say,
            thread=event.thread,
            signature=event.signature,
            signing_env=event.signing_env,
            created_by=event.created_by,
            created_at=known.created_at if known is not None else entry.fact.at,
            revoked_at=None,
            deliveries=known.deliveries if known is not None else 0,
            last_delivered_at=known.last_delivered_at if known is not None else None,
            last_delivery=known.last_delivery if known is not None else None,
            last_source=known.last_source if known is not None else None,
            salt=event.salt,
        )
    ]


def _revised(entry: LogEntry, event: TriggerRevised, rows: AtHand) -> list[TriggerRow]:
    row = _active(event, rows)
    return [row._replace(say=event.say, thread=event.thread, signature=event.signature, signing_env=event.signing_env)]


def _rotated(entry: LogEntry, event: TriggerRotated, rows: AtHand) -> list[TriggerRow]:
    row = _active(event, rows)
    if event.generation != row.generation + 1:
        raise EventRefused(
            f"{event.kind} names generation {event.generation} of trigger {event.trigger_id}, which has "
            f"{row.generation}",
            "Look at the trigger again: somebody else rotated it.",
        )
    return [row._replace(generation=event.generation, salt=event.salt)]


def _revoked(entry: LogEntry, event: TriggerRevoked, rows: AtHand) -> list[TriggerRow]:
    return [_active(event, rows)._replace(state="revoked", revoked_at=entry.fact.at)]


def _delivered(entry: LogEntry, event: TriggerDelivered, rows: AtHand) -> list[TriggerRow]:
    row = _active(event, rows)
    return [
        row._replace(
            deliveries=row.deliveries + 1,
            last_delivered_at=entry.fact.at,
            last_delivery=event.message_id or event.hint_id,
            last_source=event.source,
        )
    ]


def _active(event: TriggerFact, rows: AtHand) -> TriggerRow:
    row = rows.get(TRIGGERS, event.trigger_id)
    if row is None or row.state != "active":
        found = "there is none" if row is None else f"it is {row.state}"
        raise EventRefused(f"{event.kind} names trigger {event.trigger_id}, and {found}", "Look at the trigger again.")
    return row


def _taken_in(entry: LogEntry, event: TriggerDelivered, rows: AtHand) -> list[DeliveryRow]:
    if rows.get(TRIGGER_DELIVERIES, event.trigger_id, event.delivery_id) is not None:
        raise EventRefused(
            f"delivery {event.delivery_id} of trigger {event.trigger_id} came before", "Answer it as a duplicate."
        )
    return [
        DeliveryRow(
            trigger_id=event.trigger_id,
            delivery_id=event.delivery_id,
            agent_id=entry.agent_id,
            digest=event.digest,
            became=event.message_id or event.hint_id or "",
            delivered_at=entry.fact.at,
        )
    ]


def _refused(entry: LogEntry, event: InputRefused, rows: AtHand) -> list[RefusedInputRow]:
    known = rows.get(REFUSED_INPUT, entry.agent_id, event.door, event.reason)
    before = known.number if known is not None else 0
    return [RefusedInputRow(entry.agent_id, event.door, event.reason, before + event.number, entry.fact.at)]


def _of_default(agent_id: str, fact: Fact, event: AgentCreated) -> Sequence[Need]:
    return (RowKey(TRIGGERS, (trigger_id_of(agent_id),)),)


def _of_trigger(agent_id: str, fact: Fact, event: TriggerFact) -> Sequence[Need]:
    return (RowKey(TRIGGERS, (event.trigger_id,)),)


def _of_delivery(agent_id: str, fact: Fact, event: TriggerDelivered) -> Sequence[Need]:
    return (RowKey(TRIGGER_DELIVERIES, (event.trigger_id, event.delivery_id)),)


def _of_refused(agent_id: str, fact: Fact, event: InputRefused) -> Sequence[Need]:
    return (RowKey(REFUSED_INPUT, (agent_id, event.door, event.reason)),)


TRIGGER_RULES: Rules = {
    AgentCreated: RowRule(_provisioned, (_of_default,)),
    TriggerCreated: RowRule(_created, (_of_trigger,)),
    TriggerRevised: RowRule(_revised, (_of_trigger,)),
    TriggerRotated: RowRule(_rotated, (_of_trigger,)),
    TriggerRevoked: RowRule(_revoked, (_of_trigger,)),
    TriggerDelivered: RowRule(_delivered, (_of_trigger,)),
}
DELIVERY_RULES: Rules = {TriggerDelivered: RowRule(_taken_in, (_of_delivery,))}
REFUSED_RULES: Rules = {InputRefused: RowRule(_refused, (_of_refused,))}
