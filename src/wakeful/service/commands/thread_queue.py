"""The queue of a thread: put a message in that nobody waits for, set one aside, and run the turn that comes next.

One entrance to whoever runs agents: it looks when a wake is due, and to look too early changes nothing. What is taken
together is decided in `decisions.intake`; it is taken by the fact that opens the turn.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Prompt, parts_of
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact
from wakeful.contracts.errors import EventRefused, KeyReused
from wakeful.contracts.events import MessageAdmitted, MessageDeferred, MessageExpired, SessionStarted
from wakeful.contracts.messages import (
    AdmissionContext,
    DeliverySurface,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.decisions.intake import DEFER_DEADLINE, MOST_TAKEN, choose_intake, is_over
from wakeful.engine.admission import fingerprint_of, storable
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.turn_messages import admitted_message, admitted_messages, deferred_messages, of_turn
from wakeful.gate.large_content import offload
from wakeful.ports import Claim, MessageRow, TurnRow
from wakeful.service.commands.turns import run_claimed, run_on
from wakeful.service.run_result import RunResult

_OPERATOR = OperatorOrigin()


@dataclass(slots=True, frozen=True)
class QueuedMessage:
    """A message for a thread's queue: its body, and what its envelope says."""

    prompt: Prompt
    kind: MessageKind = "operator_prompt"
    origin: Origin = _OPERATOR
    authority: Authority = "operator_instruction"
    derived_from: Authority | None = None
    priority: Priority = "normal"
    surface: DeliverySurface = "runtime_system"
    admission: AdmissionContext = "runtime_owned"
    key: str | None = None
    """The same key again is the same message. Its sender waits for the answer to it alone."""
    expires_at: int | None = None
    principal: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    source_refs: Mapping[str, str] = field(default_factory=dict)
    correlation_id: str | None = None
    causation_id: str | None = None
    work_item_id: str | None = None
    task_id: str | None = None


async def queue_message(engine: Engine, agent_name: str, thread: str, message: QueuedMessage) -> MessageRow:
    """Make a message safe, without a turn: what returns survives a power cut. Raises KeyReused for another content."""
    store, now = engine.store, engine.clock.now()
    said = UserItem(parts=storable(parts_of(message.prompt)))
    stored = await offload(said, store.put_blob)
    assert isinstance(stored, UserItem)
    message_id = engine.ids.new("msg") if message.key is None else _id_of_key(agent_name, message.key)
    admitted = MessageAdmitted(
        message_id=message_id,
        item=stored,
        message_kind=message.kind,
        origin=message.origin,
        authority_class=message.authority,
        derived_from=message.derived_from,
        priority=message.priority,
        expires_at=message.expires_at,
        delivery_surface=message.surface,
        admission_context=message.admission,
        source_refs=dict(message.source_refs),
        correlation_id=message.correlation_id,
        causation_id=message.causation_id,
        work_item_id=message.work_item_id,
        task_id=message.task_id,
        key=message.key,
        fingerprint=fingerprint_of(agent_name, said),
        prompt_preview=said.text[:PREVIEW_CHARS],
        context=dict(message.context),
        principal=message.principal,
    )
    facts = [Fact(admitted, now, thread)]
    if not await store.read(agent_name, limit=1):
        facts.insert(0, Fact(SessionStarted(agent_name=agent_name), now))
    answer = await store.admit(agent_name, facts)
    assert answer is not None
    if not answer.created:
        await _check_same(engine, admitted)
    row = await store.message(message_id)
    assert row is not None
    return row


async def defer_message(engine: Engine, message_id: str, *, reason: str = "", within: int = DEFER_DEADLINE) -> None:
    """Let a queued message start no turn by itself for so many microseconds; the next turn is shown it all the same.

    Raises EventRefused where a turn has it, or its caller waits for it.
    """
    row, now = await engine.store.message(message_id), engine.clock.now()
    if row is None:
        raise EventRefused(f"there is no message {message_id}", "Name a message of a thread's queue.")
    event = MessageDeferred(message_id=message_id, deadline=now + within, reason=reason)
    await engine.store.admit(row.agent_id, [Fact(event, now, row.thread_id)])


async def take_next(engine: Engine, request: RunRequest) -> RunResult[Any] | None:
    """Run the turn that is next in the request's thread until it rests. None: nothing is due there.

    An open turn comes first: one that was cut off, that is due again, or that a caller opened and nobody waits for any
    more. A turn at rest that is not due holds its thread. Raises AgentBusy while somebody else is at the thread.
    """
    store, agent_id = engine.store, request.agent.name
    thread = request.thread if request.thread is not None else MAIN_THREAD
    refused: list[StoredFact] = []
    while True:
        for row in await store.turns_of_thread(agent_id, thread, open_only=True):
            if row.state == "suspended" and not await _is_due(engine, row):
                return None
            return await run_on(engine, row, request)
        claim = await store.claim_thread(agent_id, thread, engine.ids.new("turn"))
        try:
            messages = await _intake(engine, agent_id, thread)
            if not messages:
                return None
            taken = of_turn(claim.turn_id, messages)
            return await run_claimed(engine, _row_to_open(engine, request, claim), request, None, claim, taken)
        except EventRefused:
            if not claim.opens or messages == refused:
                raise
            refused = messages  # a caller opened a turn meanwhile, or a message was set aside: look again
        finally:
            await store.release(claim)


async def _intake(engine: Engine, agent_id: str, thread_id: str) -> list[StoredFact]:
    """What the next turn takes, after what expired was told so."""
    store, now = engine.store, engine.clock.now()
    while True:
        rows = await store.queued(agent_id, thread_id, limit=MOST_TAKEN)
        queue = await admitted_messages(store, [row.message_id for row in rows])
        deferred = await deferred_messages(store, agent_id, thread_id)
        known = {_event(entry).message_id: entry for entry in (*queue, *(entry for entry, _ in deferred))}
        over = [name for name, entry in known.items() if is_over(_event(entry), now)]
        if not over:
            taken = choose_intake([_event(entry) for entry in queue], [each for _, each in deferred], now)
            return [known[message.message_id] for message in taken]
        await store.admit(agent_id, [Fact(MessageExpired(message_id=name), now, thread_id) for name in over])


def _event(entry: StoredFact) -> MessageAdmitted:
    event = entry.fact.event
    assert isinstance(event, MessageAdmitted)
    return event


async def _is_due(engine: Engine, row: TurnRow) -> bool:
    wake = await engine.store.wake(row.agent_id, row.thread_id, row.turn_id)
    return wake is not None and wake.due_at is not None and wake.due_at <= engine.clock.now()


def _row_to_open(engine: Engine, request: RunRequest, claim: Claim) -> TurnRow:
    """A turn as its row will be, before its start is written."""
    first = claim.head + 1
    return TurnRow(
        turn_id=claim.turn_id,
        agent_id=claim.agent_id,
        agent_name=request.agent.name,
        thread_id=claim.thread_id,
        state="admitted",
        first_seq=first,
        last_seq=first,
        window_from=first,
        turn_index=0,
        key=None,
        fingerprint="",
        prompt_preview="",
        waiting_for=(),
        created_at=engine.clock.now(),
        ended_at=None,
    )


def _id_of_key(agent_name: str, key: str) -> str:
    """One id for one key: the message is admitted once, whoever comes first."""
    return "msg_" + hashlib.sha256(f"{agent_name}\0{key}".encode()).hexdigest()[:32]


async def _check_same(engine: Engine, message: MessageAdmitted) -> None:
    there = await admitted_message(engine.store, message.message_id)
    if there is not None and _event(there).fingerprint != message.fingerprint:
        raise KeyReused(
            f"key {message.key!r} belongs to another message:\n"
            f"  then: {_event(there).prompt_preview!r}\n"
            f"  now:  {message.prompt_preview!r}",
            "give this message a key of its own, or repeat the first one exactly",
        )
