"""Facts in their stored form, and back. The rule: stored bytes are made here and read here, and nowhere else.

An append is one row, or one for each of its turns. Header: a JSON list of writer, time, thread and turn, and then for
each fact its kind (a number where it has one, `store.kind_numbers`), the length of its payload, how long after that
time it was, and its other ids; empty ends are cut off. Body: 8 random bytes, then the payloads one after the other, as
JSON without what has its default, packed (`store.row_compression`). The random bytes keep a digest from revealing a
body that is gone (`store.chain`). Rows some of whose facts have expired have another form (`store.hollow_rows`).
"""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic_core import PydanticSerializationError, from_json, to_json

from wakeful.contracts.envelope import MAX_PAYLOAD_BYTES, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import BY_KIND, EVENTS, AnyEvent, EventExpired, PermissionEvaluated, UnrecognisedEvent
from wakeful.contracts.history import parse
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.values import Value
from wakeful.store import chain
from wakeful.store.chain import SALT
from wakeful.store.hollow_rows import is_hollow, read_hollow
from wakeful.store.kind_numbers import NUMBERS, kind_of
from wakeful.store.row_compression import pack, unpack

Writer: TypeAlias = Literal[0, 1]
OWNER: Writer = 0
OUTSIDER: Writer = 1
OWN_PREFIX = "wakeful."

_ATTRIBUTES = {
    "thread_id": "thread_id",
    "turn_id": "turn_id",
    "step_id": "step",
    "tool_call_id": "call_id",
    "action_id": "action_id",
}


class _Shape(NamedTuple):
    """What is asked for every event of a class, looked up once."""

    kind: str
    label: str | int
    """What a header calls it."""
    version: int
    outsider: bool
    needs: tuple[str, ...]
    has_ids: Callable[[Fact], Any]
    """True of a fact that has all it needs."""
    to_json: Callable[..., bytes]
    defaults: dict[str, Any]
    """What a field comes back as when it is not stored."""
    values: dict[str, Value]
    """The same of fields that are values: by what they hold, two are compared in a third of the time."""
    counts_tokens: bool


def _shape(event: type[AnyEvent]) -> _Shape:
    optional = {name: field for name, field in event.model_fields.items() if not field.is_required()}
    # What can be changed is written out: a default of that kind is copied, slowly, each time it is filled in.
    filled = {name: field.get_default(call_default_factory=True) for name, field in optional.items()}
    defaults = {name: each for name, each in filled.items() if not isinstance(each, dict | list | Value)}
    values = {name: each for name, each in filled.items() if isinstance(each, Value)}
    to_json = event.__pydantic_serializer__.to_json
    has_ids = _id_check([_ATTRIBUTES[name] for name in event.needs])
    counts = "token_usage" in event.model_fields
    label = NUMBERS.get(event.kind, event.kind)
    kept = has_ids, to_json, defaults, values, counts
    return _Shape(event.kind, label, event.version, event.outsider, event.needs, *kept)


def _id_check(names: Sequence[str]) -> Callable[[Fact], Any]:
    if not names:
        return lambda fact: True
    read = attrgetter(*names)
    return read if len(names) == 1 else lambda fact: all(read(fact))


class _Shapes(dict[type[AnyEvent], _Shape | None]):
    """Each made when the first event of its class is written: to make all of them is a seventh of a command's start."""

    def __missing__(self, event: type[AnyEvent]) -> _Shape | None:
        found = self[event] = _shape(event) if event in _OWN else None
        return found


_OWN = frozenset(EVENTS)
_SHAPES = _Shapes()

_TOKENS = tuple(TokenUsage.model_fields)
_VERDICT = PermissionEvaluated.kind
_VERDICTS: dict[int, tuple[AnyEvent, bytes]] = {}
_MOST_VERDICTS = 16


class PackedRow(NamedTuple):
    """Facts of one turn, or of none, as one row."""

    header: bytes
    body: bytes
    turn_id: str | None
    payloads: tuple[bytes, ...]
    """What the body holds."""

    def link(self, previous: bytes) -> bytes:
        """Its hash, given the hash of the row before it."""
        return chain.link(previous, self.header, self.body[:SALT], self.payloads)


class Head(NamedTuple):
    """What stands around a fact: enough to tell whose it is without touching its payload."""

    kind: str
    version: int
    at: int
    writer: int
    thread_id: str | None = None
    turn_id: str | None = None
    step: int | None = None
    call_id: str | None = None
    action_id: str | None = None
    parent_call_id: str | None = None
    depth: int = 0
    level: str | None = None


class EncodedFact(NamedTuple):
    """A stored fact that was not decoded yet."""

    seq: int
    head: Head
    payload: bytes | None
    """None: it has expired."""


def encode(facts: Sequence[Fact], writer: Writer) -> list[PackedRow]:
    """Raises EventRefused: an id is missing, the payload is too large or cannot be JSON, outsiders may not write it."""
    if len(facts) == 1:
        return [_encode(facts, writer)]
    return [_encode(list(run), writer) for _, run in groupby(facts, _WHERE)]


_WHERE = attrgetter("thread_id", "turn_id")


def _encode(facts: Sequence[Fact], writer: Writer) -> PackedRow:
    first = facts[0]
    began = first.at
    payloads: list[bytes] = []
    header: list[Any] = [writer, began, first.thread_id, first.turn_id]
    for fact in facts:
        label, version, payload = _payload(fact, writer)
        payloads.append(payload)
        head = (label, len(payload), fact.at - began, fact.step, fact.call_id)
        if fact.level is None and fact.action_id is fact.parent_call_id is None and version == 1 and not fact.depth:
            header.append(head if fact.call_id is not None else _cut(head))
        else:
            header.append(_cut((*head, fact.action_id, fact.parent_call_id, fact.depth, fact.level, version)))
    try:
        return PackedRow(to_json(header), os.urandom(SALT) + pack(b"".join(payloads)), first.turn_id, tuple(payloads))
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        named = ", ".join(fact.event.kind for fact in facts)
        raise EventRefused(f"{named} has an id that is not text: {error}", "Use plain Unicode text.") from error


_ABSENT = (None, None, 0, None, None, None, None, 0, None, 1)


def _cut(head: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without the end that says nothing."""
    length = len(head)
    while head[length - 1] == _ABSENT[length - 1]:
        length -= 1
    return head[:length]


def _payload(fact: Fact, writer: Writer) -> tuple[str | int, int, bytes]:
    """What a header calls the kind, its version, and the payload."""
    event = fact.event
    shape = _SHAPES[type(event)]
    if shape is None:
        kind, version, payload = _foreign(event)
        label: str | int = kind
    else:
        kind, label, version = shape.kind, shape.label, shape.version
        if not shape.has_ids(fact):
            raise _without_id(fact, shape)
        try:
            payload = _verdict_json(event, shape) if kind == _VERDICT else _json(event, shape)
        except (PydanticSerializationError, UnicodeEncodeError) as error:
            raise EventRefused(f"{kind} cannot be written as JSON: {error}", "Use JSON values only.") from error
    if shape is not None and shape.kind == EventExpired.kind:
        raise EventRefused(f"{kind} stands for an event that is gone and cannot be written", "Leave it out.")
    if writer == OUTSIDER and not event.outsider:
        raise EventRefused(
            f"{kind} may only be written by the owner of its turn", "Claim the turn and append it, or leave it out."
        )
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise EventRefused(
            f"{kind} has a payload of {len(payload)} bytes; {MAX_PAYLOAD_BYTES} are allowed",
            "Put the content in a blob and refer to it.",
        )
    return label, version, payload


def _json(event: AnyEvent, shape: _Shape) -> bytes:
    """The fields that are not as they would come back anyway.

    Further down only counts of tokens are looked at: excluding defaults by value everywhere would also drop the `type`
    and `role` that tell parts and items apart.
    """
    values, defaults = event.__dict__, shape.defaults
    given = event.__pydantic_fields_set__
    usual = [name for name in given if name in defaults and values[name] == defaults[name]]
    for name, default in shape.values.items():
        if name in given and type(values[name]) is type(default) and values[name].__dict__ == default.__dict__:
            usual.append(name)
    kept = given.difference(usual) if usual else given
    if shape.counts_tokens and (usage := values["token_usage"]) is not None:
        counts = usage.__dict__
        none = {name for name in _TOKENS if not counts[name]}
        return shape.to_json(event, exclude_none=True, include=kept, exclude={"token_usage": none})
    return shape.to_json(event, exclude_none=True, include=kept)


def _verdict_json(event: AnyEvent, shape: _Shape) -> bytes:
    """Most verdicts are one and the same value: what the newest ones were written as is known."""
    known = _VERDICTS.get(id(event))
    if known is not None:  # and kept alive here: no other value has its id
        return known[1]
    payload = _json(event, shape)
    if len(_VERDICTS) >= _MOST_VERDICTS:
        _VERDICTS.clear()
    _VERDICTS[id(event)] = event, payload
    return payload


def _without_id(fact: Fact, shape: _Shape) -> EventRefused:
    missing = next(name for name in shape.needs if not getattr(fact, _ATTRIBUTES[name]))
    return EventRefused(f"{shape.kind} needs {missing} and has none", f"Give the fact its `{_ATTRIBUTES[missing]}`.")


def _foreign(event: AnyEvent) -> tuple[str, int, bytes]:
    """Kinds this version does not define. A known name would get round what that kind requires."""
    assert isinstance(event, UnrecognisedEvent), f"{type(event).__name__} is not in the union of events"
    if event.original_kind in BY_KIND or not event.original_kind.startswith(OWN_PREFIX):
        raise EventRefused(
            f"{event.original_kind} is not the name of a foreign event",
            f"Names of events outside the contract begin with `{OWN_PREFIX}`.",
        )
    return event.original_kind, event.original_version, to_json(event.body)


NO_ROW = (ValueError, TypeError, LookupError, ArithmeticError)
"""What reading raises for bytes that are no row: they were not checked against the chain yet, and may be anything."""


def read_row(first: int, header: bytes, body: bytes) -> list[EncodedFact]:
    """The facts of a row. Raises one of `NO_ROW`."""
    writer, at, thread_id, turn_id, *heads = from_json(header)
    entries: list[EncodedFact] = []
    kept: list[bytes | None] | None = None
    if is_hollow(body):
        kept = [fact.payload for fact in read_hollow(body, [head[1] for head in heads])]
        payloads = b""
    else:
        payloads = unpack(body[SALT:], sum(head[1] for head in heads))
    begin = 0
    for seq, head in enumerate(heads, first):
        # A later version may have added something at the end.
        values = (*head, *_ABSENT[len(head) :])
        kind, length, after, step, call_id, action_id, parent, depth, level, version = values[: len(_ABSENT)]
        if type(kind) is int:
            kind = kind_of(kind)
        where = Head(
            kind, version, at + after, writer, thread_id, turn_id, step, call_id, action_id, parent, depth, level
        )
        payload = payloads[begin : begin + length] if kept is None else kept[seq - first]
        entries.append(EncodedFact(seq, where, payload))
        begin += length
    return entries


def count_facts(header: bytes) -> int:
    """How many facts a row has. Raises one of `NO_ROW`."""
    _, _, _, _, *heads = from_json(header)
    return len(heads)


def link_row(previous: bytes, header: bytes, body: bytes, entries: Iterable[EncodedFact]) -> bytes:
    """The hash of a row that was read, given the hash of the one before it. Raises one of `NO_ROW`."""
    if is_hollow(body):
        digests = [fact.digest for fact in read_hollow(body, lengths_of(header))]
        return chain.link_digests(previous, header, digests)
    return chain.link(previous, header, body[:SALT], [entry.payload or b"" for entry in entries])


def lengths_of(header: bytes) -> list[int]:
    """How long the payload of each fact of a row is, or was. Raises one of `NO_ROW`."""
    return [head[1] for head in from_json(header)[4:]]


def decode(head: Head, payload: bytes | None) -> Fact:
    """Raises ValueError when the payload does not fit its kind."""
    return fact_of(head, decode_event(head, payload))


def decode_event(head: Head, payload: bytes | None) -> AnyEvent:
    """Raises ValueError when the payload does not fit its kind."""
    if payload is None:
        return EventExpired(event_type=head.kind, event_version=head.version)
    return parse(head.kind, head.version, payload)


def fact_of(head: Head, event: AnyEvent) -> Fact:
    """What stands around an event, and the event."""
    return Fact(
        event,
        head.at,
        head.thread_id,
        head.turn_id,
        head.step,
        head.call_id,
        head.action_id,
        head.parent_call_id,
        head.depth,
        head.level,
    )
