"""Delivery: what somebody outside sends to the address of a trigger. Accepted, a duplicate, or refused by name.

The order: the address (its code is compared in constant time), whether the trigger is active, the size of the body, the
signature over the raw bytes, whether the same delivery came before, its age, and only then what is in it. An accepted
delivery and the hint or message that it becomes are one transaction, with a barrier. Nothing in a body is believed: it
names no authority, no thread and no work.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import AgentStopped, EventRefused
from wakeful.contracts.events import MessageAdmitted, TriggerDelivered
from wakeful.contracts.events.waking import FRESH_THREAD
from wakeful.contracts.messages import JsonBody, TriggerOrigin
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.triggers import Refusal
from wakeful.decisions.ingress import MAX_BODY_BYTES, Arrival, classify
from wakeful.decisions.message_header import body_text
from wakeful.decisions.salted_secrets import salted
from wakeful.decisions.waking.delivery_bodies import BodyProblem, read_body
from wakeful.decisions.waking.trigger_addresses import is_genuine, presented
from wakeful.decisions.waking.webhook_signatures import SignatureProblem, check_signature, digest_of
from wakeful.engine.admission import fingerprint_of, storable
from wakeful.engine.run_request import Engine
from wakeful.gate.large_content import offload
from wakeful.ports.triggers import TriggerRow
from wakeful.ports.waits import WaitRow
from wakeful.runtime.refusals import RefusalTally
from wakeful.runtime.wake_hints import MOST_BYTES, WakeHint, hint_event
from wakeful.runtime.wake_messages import message_id_of
from wakeful.service.commands.runtime_holds import refuse_if_stopped
from wakeful.views.trigger_records import DeliveryReceipt

SOURCE_HEADER, RESOURCE_HEADER = "wakeful-source", "wakeful-resource"
CORRELATION_HEADER = "wakeful-correlation-id"
MAX_LABEL_CHARS = 200
DUPLICATE = "duplicate"
"""Under which repeated deliveries are counted."""


class _Delivery(NamedTuple):
    """A delivery whose sender was checked."""

    row: TriggerRow
    delivery_id: str
    digest: str
    size: int
    body: str | JsonBody | None
    content_type: str
    is_verified: bool
    source: str
    resource: str | None
    correlation_id: str | None


async def deliver(
    engine: Engine,
    address: str,
    raw: bytes,
    headers: Mapping[str, str],
    *,
    tally: RefusalTally,
    environ: Mapping[str, str] = os.environ,
) -> DeliveryReceipt:
    """Take in what came to an address: a token, a path or a whole URL. Raises nothing that its sender caused."""
    shown = presented(address)
    row = await engine.store.trigger(shown.trigger_id) if shown is not None else None
    if shown is None or row is None or not is_genuine(salted(engine.store.secret, row.salt), shown, row.generation):
        return DeliveryReceipt(outcome="refused", reason="unknown_trigger", message="there is no such trigger")
    found = await _checked(engine, row, raw, {name.lower(): value for name, value in headers.items()}, environ)
    receipt = found if isinstance(found, DeliveryReceipt) else await _stored(engine, found)
    if receipt.outcome != "accepted":
        await tally.count(row.agent_id, receipt.reason or DUPLICATE, row.trigger_id)
    return receipt


async def _checked(
    engine: Engine, row: TriggerRow, raw: bytes, headers: Mapping[str, str], environ: Mapping[str, str]
) -> _Delivery | DeliveryReceipt:
    if row.state != "active":
        return _refused(row, "revoked", "the trigger was revoked")
    most = MOST_BYTES if row.mode == "wake_hint" else MAX_BODY_BYTES
    if len(raw) > most:
        return _refused(row, "too_large", f"the body has {len(raw):,} bytes; the limit is {most:,}")
    secret = environ.get(row.signing_env) if row.signing_env is not None else None
    who = check_signature(row.signature, secret, raw, headers, engine.clock.now())
    if isinstance(who, SignatureProblem):
        return _refused(row, who.reason, who.message)
    digest = digest_of(raw)
    known = await engine.store.delivery(row.trigger_id, who.delivery_id) if who.delivery_id is not None else None
    if known is not None:
        return _came_before(row, known.digest == digest, known.became)
    if who.is_late:
        return _refused(row, "late", "its timestamp is too far from now")
    content_type = headers.get("content-type", "")[:MAX_LABEL_CHARS]
    body = read_body(raw, content_type)
    if isinstance(body, BodyProblem):
        return _refused(row, body.reason, body.message)
    return _Delivery(
        row,
        who.delivery_id or f"new:{engine.ids.new('delivery')}",
        digest,
        len(raw),
        body,
        content_type,
        who.is_verified,
        _label(headers, SOURCE_HEADER) or row.name or "trigger",
        _label(headers, RESOURCE_HEADER),
        _label(headers, CORRELATION_HEADER),
    )


async def _stored(engine: Engine, delivery: _Delivery) -> DeliveryReceipt:
    """One transaction: the delivery, and what it becomes."""
    row, now = delivery.row, engine.clock.now()
    waits = [wait for wait in await engine.store.open_waits(row.agent_id) if _is_about(wait, delivery)]
    if row.mode == "wake_hint":
        hint = hint_event(engine.ids.new("hint"), row.agent_id, _hint(delivery), waits)
        event = _event(delivery, waits, None, hint.hint_id, hint.authority_class, hint.derived_from)
        facts = [Fact(event, now), Fact(hint, now, MAIN_THREAD)]
    else:
        message = await _message(engine, delivery)
        thread = row.thread if row.thread != FRESH_THREAD else f"{row.name}-{message.message_id[4:16]}"
        event = _event(delivery, waits, message.message_id, None, message.authority_class, message.derived_from)
        facts = [Fact(event, now), Fact(message, now, thread)]
    try:
        await refuse_if_stopped(engine.store)
        answer = await engine.store.admit(row.agent_id, facts)
    except AgentStopped as stopped:
        return _refused(row, "agent_stopped", stopped.message)
    except EventRefused:  # the same delivery at the same moment, or somebody revoked the trigger
        return await _lost(engine, delivery)
    if answer is not None and not answer.created:
        return await _lost(engine, delivery)
    return DeliveryReceipt(
        outcome="accepted",
        external_trigger_id=row.trigger_id,
        target_agent_id=row.agent_id,
        message_id=event.message_id,
        hint_id=event.hint_id,
    )


async def _lost(engine: Engine, delivery: _Delivery) -> DeliveryReceipt:
    """Somebody else was faster: what holds now is the answer."""
    known = await engine.store.delivery(delivery.row.trigger_id, delivery.delivery_id)
    if known is not None:
        return _came_before(delivery.row, known.digest == delivery.digest, known.became)
    return _refused(delivery.row, "revoked", "the trigger was revoked")


def _event(
    delivery: _Delivery,
    waits: list[WaitRow],
    message_id: str | None,
    hint_id: str | None,
    authority: Authority,
    derived_from: Authority | None,
) -> TriggerDelivered:
    return TriggerDelivered(
        trigger_id=delivery.row.trigger_id,
        delivery_id=delivery.delivery_id,
        digest=delivery.digest,
        target_agent_id=delivery.row.agent_id,
        delivery_mode=delivery.row.mode,
        message_id=message_id,
        hint_id=hint_id,
        source=delivery.source,
        resource=delivery.resource,
        content_type=delivery.content_type or None,
        body_bytes=delivery.size,
        is_verified=delivery.is_verified,
        authority_class=authority,
        derived_from=derived_from,
        wait_ids=tuple(wait.wait_id for wait in waits),
        work_item_ids=tuple(wait.work_item_id for wait in waits if wait.work_item_id is not None),
    )


def _hint(delivery: _Delivery) -> WakeHint:
    """A hint: what comes with it is kept as evidence, and is no message."""
    body = delivery.body if isinstance(delivery.body, str) else body_text(delivery.body) if delivery.body else None
    derived: Authority | None = None if body is None or delivery.is_verified else "external_evidence"
    return WakeHint(
        reason="a trigger was called",
        source=delivery.source,
        resource=delivery.resource,
        body=body,
        content_type=delivery.content_type or None,
        trigger_id=delivery.row.trigger_id,
        correlation_id=delivery.correlation_id,
        causation_id=delivery.delivery_id,
        derived_from=derived,
    )


async def _message(engine: Engine, delivery: _Delivery) -> MessageAdmitted:
    """A message. Without a body its words are the owner's, or the runtime's where the owner gave none."""
    row, body = delivery.row, delivery.body
    origin = TriggerOrigin(descriptor_id=row.trigger_id, source=delivery.source)
    labels = {"external_trigger_id": row.trigger_id, "source": delivery.source, "resource": delivery.resource}
    arrival = Arrival(
        "http_callback_enqueue",
        "external_trigger_capability",
        "callback_event",
        origin,
        is_verified=delivery.is_verified,
        has_body=body is not None,
    )
    found = classify(arrival)
    authority, derived_from = found.authority, found.derived_from
    if body is None:
        authority, derived_from = ("operator_instruction" if row.say else "runtime_instruction"), None
    words = row.say or ("" if body is not None else f"The trigger {row.name!r} was called, with an empty body.")
    parts = [each for each in (words, body) if isinstance(each, str) and each]
    said = UserItem(parts=storable(tuple(Text(each) for each in _apart(parts))))
    data = body if isinstance(body, JsonBody) else None
    preview = said.text if data is None else f"{said.text}\n{body_text(data)}".strip()
    item = await offload(said, engine.store.put_blob)
    assert isinstance(item, UserItem)
    return MessageAdmitted(
        message_id=message_id_of("trigger", row.trigger_id, delivery.delivery_id),
        item=item,
        message_kind="callback_event",
        origin=origin,
        authority_class=authority,
        derived_from=derived_from,
        delivery_surface=arrival.surface,
        admission_context=arrival.admission,
        source_refs={name: value for name, value in labels.items() if value},
        correlation_id=delivery.correlation_id,
        causation_id=delivery.delivery_id,
        body=data,
        fingerprint=fingerprint_of(row.agent_id, UserItem(parts=(Text(preview),))),
        prompt_preview=preview[:PREVIEW_CHARS],
    )


def _apart(parts: list[str]) -> list[str]:
    """The owner's words, and a blank line between them and what came."""
    return [f"{part}\n\n" for part in parts[:-1]] + parts[-1:]


def _is_about(wait: WaitRow, delivery: _Delivery) -> bool:
    named = (delivery.resource, delivery.source, delivery.row.trigger_id)
    return wait.wake == "external" and (wait.resource is None or wait.resource in named)


def _came_before(row: TriggerRow, is_same: bool, became: str) -> DeliveryReceipt:
    if not is_same:
        return _refused(row, "key_reused", "its id belongs to a delivery with another body")
    is_hint = row.mode == "wake_hint"
    return DeliveryReceipt(
        outcome="duplicate",
        message="it came before",
        external_trigger_id=row.trigger_id,
        target_agent_id=row.agent_id,
        message_id=None if is_hint else became,
        hint_id=became if is_hint else None,
    )


def _refused(row: TriggerRow, reason: Refusal, message: str) -> DeliveryReceipt:
    return DeliveryReceipt(
        outcome="refused",
        reason=reason,
        message=message,
        external_trigger_id=row.trigger_id,
        target_agent_id=row.agent_id,
    )


def _label(headers: Mapping[str, str], name: str) -> str | None:
    """A label of the delivery's own. It says where it comes from, and routes nothing."""
    text = "".join(letter for letter in headers.get(name, "") if letter.isprintable()).strip()
    return text[:MAX_LABEL_CHARS] or None
