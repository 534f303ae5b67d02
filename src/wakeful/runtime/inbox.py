"""The inbox: a message is made safe before anybody acknowledges it, and opens no turn by itself.

What returns survives a power cut. The same key again is the same message; with other words it is refused.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Prompt, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest, InvalidValue, KeyReused
from wakeful.contracts.events import MessageAdmitted, MessageDeferred, SessionStarted, TurnInterjected
from wakeful.contracts.messages import (
    AdmissionContext,
    BriefBody,
    DeliverySurface,
    JsonBody,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.values import unchecked
from wakeful.contracts.workflows import WorkflowRun
from wakeful.decisions.ingress import MAX_BODY_BYTES, MAX_REFERENCE_CHARS, Arrival, classify
from wakeful.decisions.intake import DEFER_DEADLINE, id_of_key
from wakeful.decisions.message_header import body_text
from wakeful.decisions.waking.delivery_bodies import MAX_DEPTH, depth_of
from wakeful.engine.admission import fingerprint_of, prompt_parts, store_run
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_messages import admitted_message, keep_new
from wakeful.gate.large_content import offload
from wakeful.ports import MessageRow, TurnRow
from wakeful.ports.mailbox import BANDS

OPERATOR: Final[OperatorOrigin] = MessageAdmitted.model_fields["origin"].default
"""An operator who gave no name."""


@dataclass(slots=True)
class QueuedMessage:
    """A message for a thread's queue: its body, and what its envelope says."""

    prompt: Prompt
    kind: MessageKind = "operator_prompt"
    origin: Origin = OPERATOR
    authority: Authority = "operator_instruction"
    derived_from: Authority | None = None
    priority: Priority = "normal"
    surface: DeliverySurface = "runtime_system"
    admission: AdmissionContext = "runtime_owned"
    key: str | None = None
    """The same key again is the same message. Its sender waits for the answer to it alone."""
    expires_at: int | None = None
    principal: str | None = None
    context: Mapping[str, Any] | None = None
    source_refs: Mapping[str, str] | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    work_item_id: str | None = None
    task_id: str | None = None
    body: JsonBody | BriefBody | None = None
    """A body that is more than words; `prompt` is blank then."""
    metadata: Mapping[str, Any] | None = None
    workflow: WorkflowRun | None = None
    """What the turn that takes the message runs; it is no conversation then."""


_ENVELOPE: Final = {
    "kind": "message_kind",
    "origin": "origin",
    "authority": "authority_class",
    "derived_from": "derived_from",
    "priority": "priority",
    "surface": "delivery_surface",
    "admission": "admission_context",
    "key": "key",
    "expires_at": "expires_at",
    "principal": "principal",
    "correlation_id": "correlation_id",
    "causation_id": "causation_id",
    "work_item_id": "work_item_id",
    "task_id": "task_id",
    "body": "body",
    "context": "context",
    "source_refs": "source_refs",
    "metadata": "metadata",
}
"""Fields of a `QueuedMessage`, and what the event calls them."""
MOST_TEXT: Final = 1_000_000
"""Characters of a message: as much as the body of a request may have bytes."""
_read_envelope = attrgetter(*_ENVELOPE)
_USUAL: Final = [(name, MessageAdmitted.model_fields[name].default or None) for name in _ENVELOPE.values()]
"""What the event says by itself where a `QueuedMessage` says nothing: that is not written."""
_MAPPINGS: Final = ("context", "source_refs", "metadata")
# Of values that were checked when they came in: `_check`, and whoever made the parts, the origin and the body.
_message_admitted, _user_item = unchecked(MessageAdmitted), unchecked(UserItem)


async def queue_arrival(
    engine: Engine,
    agent_name: str,
    thread: str,
    arrival: Arrival,
    body: str | JsonBody | BriefBody,
    *,
    key: str | None = None,
    expires_at: int | None = None,
    correlation_id: str | None = None,
) -> MessageRow:
    """Take in a message for an agent that is there, as the table of surfaces says.

    Raises InvalidValue, naming the field, before anything is stored.
    """
    found = classify(arrival)
    size = len(body.encode("utf-8", "replace")) if isinstance(body, str) else len(body.model_dump_json())
    if size > MAX_BODY_BYTES:
        problem = f"it has {size:,} bytes; the limit is {MAX_BODY_BYTES:,}"
        raise InvalidValue("invalid_body", "body", problem, "Send a reference to it instead.")
    message = QueuedMessage(
        body if isinstance(body, str) else "",
        kind=arrival.kind,
        origin=arrival.origin,
        authority=found.authority,
        derived_from=found.derived_from,
        priority=arrival.priority,
        surface=arrival.surface,
        admission=arrival.admission,
        key=key,
        expires_at=expires_at,
        source_refs=found.source_refs or None,
        correlation_id=correlation_id,
        work_item_id=found.work_item_id,
        task_id=found.task_id,
        body=None if isinstance(body, str) else body,
        metadata=arrival.metadata,
    )
    return await queue_message(engine, agent_name, thread, message, is_known=True)


def checked_id(field: str, value: str | None) -> str | None:
    """An id that ties messages together. Raises InvalidValue for one that is no text, blank or too long."""
    found: Any = value
    if found is not None and not (isinstance(found, str) and 0 < len(found) <= MAX_REFERENCE_CHARS):
        given = f"{len(found)} characters" if isinstance(found, str) else f"{found!r:.80}"
        problem = f"{given}; an id has 1 to {MAX_REFERENCE_CHARS} characters"
        raise InvalidValue(f"invalid_{field}", field, problem, "Give a short id, or leave it out.")
    return value


def check_json(field: str, value: Any) -> None:
    """Raises InvalidValue for what could not be written down as JSON and read again as the same."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as problem:
        reason = f"it is not JSON: {str(problem)[:200]}"
        raise InvalidValue(f"invalid_{field}", field, reason, "Give texts, numbers, lists and mappings.") from None
    if written.count(b"[") + written.count(b"{") > MAX_DEPTH and depth_of(written) > MAX_DEPTH:
        words = f"it is nested deeper than {MAX_DEPTH}"
        raise InvalidValue(f"invalid_{field}", field, words, "Use fewer levels.")


def check_text(field: str, value: str, most: int) -> None:
    """Raises InvalidRequest for words that are too long, or that could not be written down."""
    if len(value) > most:
        raise InvalidRequest(f"{field} has {len(value):,} characters", f"Give at most {most:,}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"{field} holds half of a surrogate pair: {value!r:.80}", "Use plain Unicode text."
        ) from None


async def queue_message(
    engine: Engine, agent_name: str, thread: str, message: QueuedMessage, *, is_known: bool = False
) -> MessageRow:
    """Make a message safe, without a turn: what returns survives a power cut. `is_known`: the agent has a stream, and
    its key belongs to this thread and this priority.

    Raises InvalidValue before anything is stored, and KeyReused for another content.
    """
    _check(thread, message)
    store, now = engine.store, engine.clock.now()
    said = _user_item(parts=() if message.body is not None else prompt_parts(message.prompt))
    preview = said.text if message.body is None else body_text(message.body)
    if len(preview) > MOST_TEXT:
        problem = f"it has {len(preview):,} characters of text"
        raise InvalidValue("invalid_prompt", "prompt", problem, f"Give at most {MOST_TEXT:,}, or send a File.")
    stored = await offload(said, store.put_blob)
    assert isinstance(stored, UserItem)
    message_id = engine.ids.new("msg") if message.key is None else id_of_key(agent_name, message.key)
    envelope = zip(_USUAL, _read_envelope(message), strict=True)
    given: dict[str, Any] = {name: value for (name, usual), value in envelope if value is not usual}
    for name in _MAPPINGS:
        if name in given:
            given[name] = dict(given[name])  # its sender may go on writing to it
    if message.key is not None:
        words = UserItem(parts=(Text(preview),)) if message.body else said
        given["fingerprint"] = fingerprint_of(agent_name, words, message.workflow)
    if message.workflow is not None:
        given["workflow_ref"] = await store_run(store, message.workflow)
    admitted = _message_admitted(message_id=message_id, item=stored, prompt_preview=preview[:PREVIEW_CHARS], **given)
    admission = Fact(admitted, now, thread)
    facts = [admission]
    if message.priority == "interject":
        facts += await _interjection(engine, agent_name, thread, message, admitted)
    if not is_known and not await store.read(agent_name, limit=1):
        facts.insert(0, Fact(SessionStarted(agent_name=agent_name), now))
    answer = await store.admit(agent_name, facts)
    assert answer is not None
    if answer.queued is not None:
        if answer.queued.message_id == admitted.message_id:
            keep_new(store, answer.queued, admission)
        return answer.queued
    message_id = await _same_as(engine, admitted, answer.turn, thread if is_known else None)
    row = await store.message(message_id)
    assert row is not None
    return row


def _check(thread: str, message: QueuedMessage) -> None:
    """What a caller may have got wrong. Raises InvalidValue, naming the field."""
    key: Any
    if not isinstance(thread, str):
        raise InvalidValue("invalid_thread", "thread", f"{thread!r:.80} is not a text", 'Name one: thread="main".')
    if not thread.strip():
        raise InvalidValue("invalid_thread", "thread", "it is blank", 'Name one, or leave it out: thread="main".')
    if message.priority not in BANDS:
        problem = f"{message.priority!r:.80} is none of {', '.join(BANDS)}"
        raise InvalidValue("invalid_priority", "priority", problem, "Give one of these, or leave it out.")
    if message.key is not None:
        _check_key(message.key)
    if len(thread) > MAX_REFERENCE_CHARS:
        problem = f"it has {len(thread):,} characters"
        raise InvalidValue("invalid_thread", "thread", problem, f"Give at most {MAX_REFERENCE_CHARS}.")
    if message.context:
        for key in message.context:
            if not isinstance(key, str):
                problem = f"the name {key!r:.80} is not a text"
                raise InvalidValue("invalid_context", "context", problem, "Give names as texts.")
        check_json("context", message.context)


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise InvalidValue("invalid_key", "key", f"{key!r:.80} is not a text", "Give a text, or leave it out.")
    if not key.strip():
        raise InvalidValue("invalid_key", "key", "it is blank", "Give this message a key of its own, or leave it out.")
    check_json("key", key)


async def _interjection(
    engine: Engine, agent_name: str, thread: str, message: QueuedMessage, admitted: MessageAdmitted
) -> list[Fact]:
    """An operator's word that is to be heard at once enters the turn that runs, with its admission; where that turn is
    over by then, it is first in the queue. Nobody else's does, and none with a context, which a turn begins with."""
    may = message.kind == "operator_prompt" and message.authority == "operator_instruction"
    if not may or message.context or message.expires_at is not None:
        return []
    for row in await engine.store.turns_of_thread(agent_name, thread, open_only=True):
        if row.state in ("running", "suspended"):
            said_by = (message.origin.actor_id if isinstance(message.origin, OperatorOrigin) else None) or "program"
            event = TurnInterjected(message_id=admitted.message_id, item=admitted.item, said_by=said_by)
            return [Fact(event, engine.clock.now(), thread, row.turn_id)]
    return []


async def defer_message(engine: Engine, message_id: str, *, reason: str = "", within: int = DEFER_DEADLINE) -> None:
    """Let a queued message start no turn by itself for so many microseconds; the next turn is shown it all the same.

    Raises EventRefused where a turn has it, or its caller waits for it.
    """
    row, now = await engine.store.message(message_id), engine.clock.now()
    if row is None:
        raise EventRefused(f"there is no message {message_id}", "Name a message of a thread's queue.")
    event = MessageDeferred(message_id=message_id, deadline=now + within, reason=reason)
    await engine.store.admit(row.agent_id, [Fact(event, now, row.thread_id)])


async def _same_as(engine: Engine, message: MessageAdmitted, turn: TurnRow | None, thread: str | None) -> str:
    """The id of the message that has this key already, of a queue or of a run. Raises KeyReused for another content,
    and where a thread is given for another one, and for another priority."""
    there = await admitted_message(engine.store, message.message_id)
    if there is None and turn is not None:  # of a run, before ids of messages followed from keys
        there = next(iter(await engine.store.read(turn.agent_id, after=turn.first_seq - 1, limit=1)), None)
    first = there.fact.event if there is not None else None
    assert isinstance(first, MessageAdmitted), f"the message of key {message.key!r} is in the log"
    then = now = ""
    if thread is not None and there is not None and there.fact.turn_id is None:  # of a queue, as this one
        then = f" in thread {there.fact.thread_id!r}, {first.priority}"
        now = f" in thread {thread!r}, {message.priority}"
    if first.fingerprint != message.fingerprint or then != now:
        raise KeyReused(
            f"key {message.key!r} belongs to another message:\n"
            f"  then: {first.prompt_preview!r}{then} ({_digest(first, then)})\n"
            f"  now:  {message.prompt_preview!r}{now} ({_digest(message, now)})",
            "give this message a key of its own, or repeat the first one exactly",
        )
    return first.message_id


def _digest(message: MessageAdmitted, place: str) -> str:
    return hashlib.sha256(f"{message.fingerprint}{place}".encode()).hexdigest() if place else message.fingerprint
