"""Where the arguments of a call come from: the owner's words, or whatever else the model read.

Each leaf of the arguments is looked at by itself. It is the owner's when it stands whole in the owner's words, or when
it is the default that the tool's schema names. Everything else is derived: rewritten, put together from pieces, read
somewhere, made up. Empty values (`null`, `""`, `[]`, `{}`) carry nothing and are passed over; so are the parameters
that the tool declares as free text (`content`). Names of fields that the schema does not know are the model's words
and are looked at, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from wakeful.contracts.tools import ToolDeclaration

MOST_NAMED = 3
"""How many derived arguments are named; one is enough to ask."""
MOST_CHARS = 100
"""Of one name, which may be the model's own."""
_DEPTH = 32


class OwnerWords(Protocol):
    """What the owner said."""

    def holds_text(self, value: str) -> bool: ...

    def holds_number(self, value: int | float | Decimal) -> bool: ...


@dataclass(frozen=True, slots=True)
class Origins:
    """What was found out about the arguments of one call."""

    derived: tuple[str, ...] = ()
    """Dotted paths of arguments that are not the owner's; at most `MOST_NAMED`."""
    owned: int = 0
    """How many leaves are the owner's."""


def argument_origins(arguments: Mapping[str, Any], declaration: ToolDeclaration, owner: OwnerWords) -> Origins:
    """Compare the arguments with the owner's words."""
    schema = declaration.input_schema
    derived: list[str] = []
    owned = 0
    for path, value, default in _leaves(arguments, schema, schema, "", frozenset(declaration.content), 0):
        if _is_same(value, default) or _stands(value, owner):
            owned += 1
            continue
        derived.append(path[:MOST_CHARS])
        if len(derived) == MOST_NAMED:
            break
    return Origins(tuple(dict.fromkeys(derived)), owned)


class _NoDefault:
    pass


_NONE = _NoDefault()


def _leaves(
    value: Any, schema: Any, root: Mapping[str, Any], path: str, content: frozenset[str], depth: int
) -> Iterator[tuple[str, Any, Any]]:
    """Path, value and default of every leaf that is compared."""
    if path in content or value is None or value == "" or (isinstance(value, Mapping | list | tuple) and not value):
        return
    known = _resolved(schema, root)
    default = known.get("default", _NONE)
    if depth > _DEPTH or not isinstance(value, Mapping | list | tuple) or _is_same(value, default):
        yield path, value, default
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            below = f"{path}.{name}" if path else str(name)
            field = _field(known, str(name), root)
            if field is None:
                yield below, str(name), _NONE
            yield from _leaves(inner, field or {}, root, below, content, depth + 1)
    else:
        for inner in value:
            yield from _leaves(inner, known.get("items", {}), root, path, content, depth + 1)


def _resolved(schema: Any, root: Mapping[str, Any], hops: int = 8) -> Mapping[str, Any]:
    """The schema that a local reference leads to, with what stands beside the reference."""
    if not isinstance(schema, Mapping):
        return {}
    reference = schema.get("$ref")
    if not hops or not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    beside = {key: inner for key, inner in schema.items() if key != "$ref"}
    return {**_resolved(found, root, hops - 1), **beside}


def _field(schema: Mapping[str, Any], name: str, root: Mapping[str, Any], hops: int = 4) -> Mapping[str, Any] | None:
    """The schema of a field that the object is declared to have; None: the model named it."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name] if isinstance(properties[name], Mapping) else {}
    if not hops:
        return None
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            found = _field(_resolved(branch, root), name, root, hops - 1)
            if found is not None:
                return found
    return None


def _is_same(value: Any, default: Any) -> bool:
    """Equal, and of one kind: `true` is not 1."""
    return default is not _NONE and isinstance(value, bool) == isinstance(default, bool) and bool(value == default)


def _stands(value: Any, owner: OwnerWords) -> bool:
    if isinstance(value, bool):
        return False  # a yes or a no has no words that could be compared
    if isinstance(value, int | float):
        return owner.holds_number(value)
    if not isinstance(value, str):
        return False
    if owner.holds_text(value):
        return True
    try:
        return owner.holds_number(Decimal(value))
    except InvalidOperation:
        return False
