"""A fact in its stored form, and back. The rule: stored bytes are made here and read here, and nowhere else.

Header: a JSON list of kind, payload version, time, writer, ids; empty ends are cut off. Body: 8 random bytes, then the
payload as JSON, without what has its default. The random bytes keep a digest from revealing a body that is gone.
"""

import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic_core import PydanticSerializationError, from_json, to_json

from wakeful.contracts.envelope import MAX_PAYLOAD_BYTES, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import BY_KIND, EVENTS, AnyEvent, Unrecognised
from wakeful.contracts.history import parse

SALT = 8
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
    version: int
    outsider: bool
    needs: tuple[str, ...]
    ids: Callable[[Fact], Any]
    """The needed ids of a fact; always a tuple."""
    to_json: Callable[..., bytes]


def _shape(event: type[AnyEvent]) -> _Shape:
    names = [_ATTRIBUTES[name] for name in event.needs]
    ids = attrgetter(*names) if len(names) > 1 else lambda fact: tuple(getattr(fact, name) for name in names)
    return _Shape(event.kind, event.version, event.outsider, event.needs, ids, event.__pydantic_serializer__.to_json)


_SHAPES = {event: _shape(event) for event in EVENTS}


class Stored(NamedTuple):
    """The two halves of a stored event."""

    header: bytes
    body: bytes


class Head(NamedTuple):
    """A header, read: enough to tell whose fact it is without touching the body."""

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


_FIELDS = len(Head._fields)


def encode(facts: Sequence[Fact], writer: Writer) -> list[Stored]:
    """Raises EventRefused: an id is missing, the payload is too large or cannot be JSON, outsiders may not write it."""
    salts = os.urandom(SALT * len(facts))
    return [_encode(fact, writer, salts[at * SALT : at * SALT + SALT]) for at, fact in enumerate(facts)]


def _encode(fact: Fact, writer: Writer, salt: bytes) -> Stored:
    event = fact.event
    shape = _SHAPES.get(type(event))
    if shape is None:
        kind, version, payload = _foreign(event)
    else:
        kind, version = shape.kind, shape.version
        if not all(shape.ids(fact)):
            raise _without_id(fact, shape)
        try:
            # Fields that were never set have their defaults. Excluding defaults by value would also drop, further
            # down, the `type` and `role` that tell parts and items apart.
            payload = shape.to_json(event, include=event.__pydantic_fields_set__, exclude_none=True)
        except (PydanticSerializationError, UnicodeEncodeError) as error:
            raise EventRefused(f"{kind} cannot be written as JSON: {error}", "Use JSON values only.") from error
    if writer == OUTSIDER and not event.outsider:
        raise EventRefused(
            f"{kind} may only be written by the owner of its turn", "Claim the turn and append it, or leave it out."
        )
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise EventRefused(
            f"{kind} has a payload of {len(payload)} bytes; {MAX_PAYLOAD_BYTES} are allowed",
            "Put the content in a blob and refer to it.",
        )
    header: list[Any] = [kind, version, fact.at, writer, fact.thread_id, fact.turn_id, fact.step, fact.call_id]
    if fact.level is not None or fact.depth or fact.parent_call_id is not None:
        header += (fact.action_id, fact.parent_call_id, fact.depth, fact.level)
    elif fact.action_id is not None:
        header.append(fact.action_id)
    else:
        while header[-1] is None:
            header.pop()
    return Stored(to_json(header), salt + payload)


def _without_id(fact: Fact, shape: _Shape) -> EventRefused:
    missing = next(name for name in shape.needs if not getattr(fact, _ATTRIBUTES[name]))
    return EventRefused(f"{shape.kind} needs {missing} and has none", f"Give the fact its `{_ATTRIBUTES[missing]}`.")


def _foreign(event: AnyEvent) -> tuple[str, int, bytes]:
    """Kinds this version does not define. A known name would get round what that kind requires."""
    assert isinstance(event, Unrecognised), f"{type(event).__name__} is not in the union of events"
    if event.original_kind in BY_KIND or not event.original_kind.startswith(OWN_PREFIX):
        raise EventRefused(
            f"{event.original_kind} is not the name of a foreign event",
            f"Names of events outside the contract begin with `{OWN_PREFIX}`.",
        )
    return event.original_kind, event.original_version, to_json(event.body)


def read_head(header: bytes) -> Head:
    """A header's fields."""
    return Head(*from_json(header)[:_FIELDS])  # a later version may have added ids at the end


def decode(head: Head, body: bytes) -> Fact:
    """Raises ValueError when the payload does not fit its kind."""
    return Fact(
        parse(head.kind, head.version, body[SALT:]),
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
