"""Old event shapes to today's, on read. Stored bytes are never rewritten.

An upcaster is a pure function from one payload version to the next; the registry names it by kind and the version it
starts from. What this version does not know, a kind or a payload version from the future, is kept as
`UnrecognisedEvent`: reading goes on, and nothing is lost.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pydantic_core import from_json, to_json

from wakeful.contracts.events import BY_KIND, AnyEvent, UnrecognisedEvent
from wakeful.contracts.messages import library_message

Body: TypeAlias = dict[str, Any]
Upcasters: TypeAlias = Mapping[tuple[str, int], Callable[[Body], Body]]


def _message_origin(body: Body) -> Body:
    """An origin was one word: whose it was. What a message was followed from that."""
    body = {**body}
    if body.pop("origin", "operator") == "operator":
        return body
    kind, origin = library_message(body["authority_class"])
    return body | {"message_kind": kind, "origin": origin.model_dump(exclude_none=True)}


UPCASTERS: Upcasters = {("message.admitted", 1): _message_origin}
"""(kind, from_version) to the step that leads to from_version + 1."""


def upcast(kind: str, version: int, body: Body, upcasters: Upcasters = UPCASTERS) -> AnyEvent:
    """A stored payload as today's event. Raises ValueError when it does not fit the shape it claims."""
    return parse(kind, version, to_json(body), upcasters)


def parse(kind: str, version: int, body: bytes, upcasters: Upcasters = UPCASTERS) -> AnyEvent:
    """The same from JSON bytes: what is current already is validated without being taken apart first."""
    event = BY_KIND.get(kind)
    if event is None or version > event.version:
        return UnrecognisedEvent(original_kind=kind, original_version=version, body=from_json(body))
    if version < event.version:
        shape: Body = from_json(body)
        for old in range(version, event.version):
            step = upcasters.get((kind, old))
            if step is None:
                raise ValueError(f"{kind} of version {old} cannot be read: there is no step to version {old + 1}")
            shape = step(shape)
        body = to_json(shape)
    # JSON mode, not Python mode: only there is base64 read as the bytes it stands for.
    return event.__pydantic_validator__.validate_json(body)  # type: ignore[no-any-return]
