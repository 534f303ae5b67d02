"""What readers are shown of a runtime: timers, receipts of messages, and an agent's events as they come."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.contracts.errors import InvalidValue, MessageNotFound
from wakeful.contracts.messages import ChannelOrigin, Priority, WebhookOrigin
from wakeful.contracts.values import unchecked
from wakeful.decisions.ingress import Arrival
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_messages import admitted_message
from wakeful.ports import MessageLog, MessageRow, Store
from wakeful.ports.timers import TimerRow
from wakeful.runtime.timers import failures_in_a_row
from wakeful.service.queries.known_agents import check_known
from wakeful.service.queries.turns import EventReader
from wakeful.views.message_envelope import MessageEnvelope, message_envelope
from wakeful.views.runtime_records import SentMessage, TimerRecord

LOOK_AGAIN_SECONDS = 30.0
PAGE = 500
"""Events that are read at once."""


async def list_timers(engine: Engine, agent: str | None = None) -> list[TimerRecord]:
    """The timers of an agent or of all agents, with how often in a row each came to nothing. Raises AgentNotFound."""
    store, now = engine.store, engine.clock.now()
    rows = await store.timers(agent)
    if agent is not None and not rows:
        await check_known(store, agent)
    return [timer_record(row, await failures_in_a_row(store, row, now)) for row in rows]


def timer_record(row: TimerRow, failures: int = 0) -> TimerRecord:
    return TimerRecord(
        timer_id=row.timer_id,
        agent=row.agent_id,
        name=row.name,
        state=row.state,
        next=_seconds(row.due_at),
        cron=row.cron,
        timezone=row.timezone,
        say=row.say,
        thread=row.thread,
        catch_up=row.catch_up,
        armed_by=row.armed_by,
        armed_at=row.armed_at / 1e6,
        last=_seconds(row.last_due),
        outcome=row.last_end,
        fired=row.fired,
        folded=row.folded,
        missed=row.missed,
        failures=failures,
        check=row.check_command,
        skipped=row.skipped,
    )


def _seconds(at: int | None) -> float | None:
    return None if at is None else at / 1e6


_sent_message = unchecked(SentMessage)


def sent_message(row: MessageRow) -> SentMessage:
    return _sent_message(
        message_id=row.message_id,
        agent=row.agent_id,
        thread=row.thread_id,
        state=row.state,
        position=row.admitted_seq,
        turn_id=row.turn_id or None,
    )


def outside_arrival(
    *,
    channel: str | None,
    webhook: str | None,
    sender: str | None,
    event_type: str | None,
    verified: bool,
    priority: Priority,
    metadata: Mapping[str, Any] | None,
    fields: Mapping[str, Any] | None = None,
) -> Arrival:
    """A message that a program hands over for somebody outside. Raises InvalidValue unless it is one of the two."""
    if (channel is None) == (webhook is None):
        given = f"channel={channel!r}, webhook={webhook!r}"
        raise InvalidValue(
            "invalid_origin", "channel", f"{given}: exactly one of the two is needed", "Say which one it came from."
        )
    if not (channel if channel is not None else webhook or "").strip():
        field = "channel" if channel is not None else "webhook"
        raise InvalidValue(f"invalid_{field}", field, "its name is blank", "Say where the message came from.")
    if channel is not None:
        if verified or event_type is not None:
            field = "verified" if verified else "event_type"
            raise InvalidValue(f"invalid_{field}", field, "only a webhook has it", "Leave it out, or give webhook=.")
        origin: ChannelOrigin | WebhookOrigin = ChannelOrigin(channel_id=channel, sender_id=sender)
        return Arrival(
            "http_public_enqueue",
            "local_process",
            "channel_event",
            origin,
            priority,
            metadata=metadata,
            claims=fields or {},
        )
    assert webhook is not None
    if sender is not None:
        raise InvalidValue("invalid_sender", "sender", "only a channel has it", "Leave it out, or give channel=.")
    origin = WebhookOrigin(source=webhook, event_type=event_type)
    return Arrival(
        "http_webhook",
        "local_process",
        "webhook_event",
        origin,
        priority,
        verified,
        metadata=metadata,
        claims=fields or {},
    )


async def envelope_of(store: MessageLog, message_id: str) -> MessageEnvelope:
    """Raises MessageNotFound."""
    entry = await admitted_message(store, message_id)
    if entry is None:
        raise MessageNotFound(f"there is no message {message_id}", "Give the message_id that `send` returned.")
    return message_envelope(entry)


async def find_message(store: MessageLog, message_id: str) -> MessageRow:
    """Where a message is. Raises MessageNotFound."""
    row = await store.message(message_id)
    if row is None:
        raise MessageNotFound(f"there is no message {message_id}", "Give the message_id that `send` returned.")
    return row


async def follow_agent(
    store: Store, agent: str, *, after: int, keys: Iterable[str] = ()
) -> AsyncIterator[RuntimeEvent]:
    """What is stored of an agent, then what is being written, each once. Secrets are hidden. Raises AgentNotFound."""
    await check_known(store, agent)
    watch, reader, seen = store.watch(agent), EventReader(store, keys=keys), after
    try:
        while True:
            found = await store.read(agent, after=seen, limit=PAGE)
            for recorded in found:
                seen = recorded.seq
                yield await reader.read(recorded)
            if len(found) < PAGE:
                await watch.wait(timeout=LOOK_AGAIN_SECONDS)
    finally:
        watch.close()
