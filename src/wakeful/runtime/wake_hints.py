"""Wake hints: something outside changed, and an agent may want to look. A busy agent is not disturbed, none is lost.

A hint is no message. Hints that come while the agent is busy become one; once it is free, the runtime makes one tick of
all of them. A tick that says something begins a turn, any other only shows that the agent lives.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest
from wakeful.contracts.events import WakeHintStored, WakeHintTriggered
from wakeful.contracts.messages import SystemOrigin
from wakeful.decisions.ingress import MAX_REFERENCE_CHARS
from wakeful.decisions.waking.wake_words import hint_words
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.ports.waits import PendingHintRow, WaitRow
from wakeful.runtime.inbox import check_text
from wakeful.runtime.wake_messages import WakeMessage, message_id_of

MOST_BYTES = 32_000
"""Of what comes with one hint."""
MOST_REASON = 4_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class WakeHint:
    """A hint, and what its sender said with it."""

    reason: str = ""
    source: str | None = None
    resource: str | None = None
    body: str | None = None
    content_type: str | None = None
    trigger_id: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    authority: Authority = "integration_signal"
    derived_from: Authority | None = None


async def store_hint(engine: Engine, agent_id: str, hint: WakeHint, thread_id: str = MAIN_THREAD) -> str:
    """Keep a hint until the agent is free. What returns is its id. Raises InvalidRequest for one that is too large."""
    check_text("reason", hint.reason, MOST_REASON)
    check_text("source", hint.source or "", MAX_REFERENCE_CHARS)
    size = len((hint.body or "").encode(errors="replace"))
    if size > MOST_BYTES:
        raise InvalidRequest(f"a wake hint has {size:,} bytes", f"The limit is {MOST_BYTES:,}: say where the rest is.")
    check_text("body", hint.body or "", MOST_BYTES)
    waits = [
        row
        for row in await engine.store.open_waits(agent_id)
        if row.wake == "external" and (row.resource is None or row.resource in (hint.resource, hint.source))
    ]
    event = hint_event(engine.ids.new("hint"), agent_id, hint, waits)
    await engine.store.admit(agent_id, [Fact(event, engine.clock.now(), thread_id)])
    return event.hint_id


def hint_event(hint_id: str, agent_id: str, hint: WakeHint, waits: Sequence[WaitRow]) -> WakeHintStored:
    """A hint as a fact, with the waits that it may be about."""
    return WakeHintStored(
        hint_id=hint_id,
        reason=hint.reason,
        external_trigger_id=hint.trigger_id,
        target_agent_id=agent_id,
        source=hint.source,
        resource=hint.resource,
        content_type=hint.content_type if hint.body is not None else None,
        body=hint.body,
        correlation_id=hint.correlation_id,
        causation_id=hint.causation_id,
        wait_ids=tuple(row.wait_id for row in waits),
        authority_class=hint.authority,
        derived_from=hint.derived_from,
    )


async def trigger_hints(engine: Engine, wake: WakeRow) -> None:
    """Make one tick of everything that is pending for a thread that is free."""
    row, now = await engine.store.pending_hint(wake.agent_id, wake.thread_id), engine.clock.now()
    if row is None:
        return
    message = await _tick(engine, row)
    event = WakeHintTriggered(message_id=message.message_id, first_hint_id=row.first_hint_id, hints=row.hints)
    with suppress(EventRefused):  # another hint came meanwhile: it is looked at again
        facts = [Fact(event, now, row.thread_id), message.fact(row.agent_id, row.thread_id, now)]
        await engine.store.admit(row.agent_id, facts)


async def _tick(engine: Engine, row: PendingHintRow) -> WakeMessage:
    hints: list[WakeHintStored] = []
    for seq in row.stored_seqs:
        found = await engine.store.read(row.agent_id, after=seq - 1, limit=1)
        hints += [event for entry in found if isinstance(event := entry.fact.event, WakeHintStored)]
    newest = hints[-1]
    bodies = [hint.body for hint in hints if hint.body]
    origins: list[Authority] = [hint.derived_from or hint.authority_class for hint in hints if hint.body]
    named = {
        "hint": row.first_hint_id,
        "trigger": newest.external_trigger_id,
        "source": newest.source,
        "resource": newest.resource,
    }
    return WakeMessage(
        message_id_of("hint", row.first_hint_id),
        hint_words(bodies, row.hints),
        "system_tick",
        SystemOrigin(subsystem="wake_hint"),
        newest.authority_class,
        "external_evidence" if "external_evidence" in origins else next(iter(origins), None),
        surface="http_callback_wake",
        source_refs={name: value for name, value in named.items() if value},
        correlation_id=newest.correlation_id,
        causation_id=newest.causation_id,
    )
