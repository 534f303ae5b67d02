"""A tool's JSON Schema with some of its parameters taken out, made optional or let through.

A parameter may be spoken of in several places: beside the others, and again inside `allOf`, `anyOf`, `oneOf`,
`if`/`then`/`else` or a definition they refer to. All of them are about the same object, so all of them are changed. The
schema that was given never is.
"""

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from wakeful.contracts.sensitive_names import SCHEMA_FLAGS

Schema: TypeAlias = dict[str, Any]
_COMBINED = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("if", "then", "else", "not")
_MAX_DEPTH = 30
"""A definition that contains itself is followed this far; no object is described by more layers."""


def without(schema: Mapping[str, Any], names: Collection[str]) -> Schema:
    """The schema as if these parameters were not there: what a model is shown."""

    def drop(part: Schema) -> None:
        properties = part.get("properties")
        if isinstance(properties, dict):
            part["properties"] = {name: inner for name, inner in properties.items() if name not in names}
        _not_required(part, names)

    return _without_unused(_changed(schema, drop)) if names else copy.deepcopy(dict(schema))


def relaxed(schema: Mapping[str, Any], *, optional: Collection[str], ignored: Collection[str]) -> Schema:
    """The schema for arguments that are not whole yet: `optional` may be absent, `ignored` may be anything."""

    def relax(part: Schema) -> None:
        properties = part.get("properties")
        if isinstance(properties, dict):
            part["properties"] = {
                name: _only_flags(inner) if name in ignored else inner for name, inner in properties.items()
            }
        _not_required(part, {*optional, *ignored})

    return _changed(schema, relax) if optional or ignored else dict(schema)


def property_names(schema: Mapping[str, Any]) -> frozenset[str]:
    """Every parameter the schema speaks of, wherever it does."""
    found: set[str] = set()

    def collect(part: Schema) -> None:
        properties = part.get("properties")
        found.update(properties if isinstance(properties, dict) else ())
        required = part.get("required")
        found.update(name for name in (required if isinstance(required, list) else ()) if isinstance(name, str))

    _changed(schema, collect)
    return frozenset(found)


def _without_unused(schema: Schema) -> Schema:
    """Definitions that nothing refers to any more would still tell a model about what was taken out."""
    places = [word for word in ("$defs", "definitions") if isinstance(schema.get(word), dict)]
    named = {f"#/{word}/{name}": inner for word in places for name, inner in schema[word].items()}
    waiting: list[Any] = [inner for word, inner in schema.items() if word not in places]
    used: set[str] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            reference = part.get("$ref")
            if isinstance(reference, str):
                found = {name for name in named if reference == name or reference.startswith(f"{name}/")} - used
                used |= found
                waiting.extend(named[name] for name in found)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    for word in places:
        left = {name: inner for name, inner in schema[word].items() if f"#/{word}/{name}" in used}
        schema = {**schema, word: left} if left else {key: inner for key, inner in schema.items() if key != word}
    return schema


def _changed(schema: Mapping[str, Any], change: Callable[[Schema], None]) -> Schema:
    root = copy.deepcopy(dict(schema))
    return _walk(root, dict(schema), change, 0)


def _walk(part: Schema, root: Mapping[str, Any], change: Callable[[Schema], None], depth: int) -> Schema:
    """Change a part and every other part that speaks about the same object."""
    if depth >= _MAX_DEPTH:
        return part
    reference = part.get("$ref")
    if isinstance(reference, str) and isinstance(target := _resolved(reference, root), dict):
        # Others may mean the same definition for another object: this place gets a copy of its own.
        beside = {key: value for key, value in part.items() if key != "$ref"}
        definitions: Schema = {key: beside.pop(key) for key in ("$defs", "definitions") if key in beside}
        inlined = copy.deepcopy(target)
        part = {**definitions, "allOf": [inlined, beside]} if beside else {**definitions, **inlined}
        if "$ref" in part:  # a name for a name
            return _walk(part, root, change, depth + 1)
    change(part)
    for word in _COMBINED:
        if isinstance(part.get(word), list):
            part[word] = [_inside(inner, root, change, depth) for inner in part[word]]
    for word in _CONDITIONAL:
        if word in part:
            part[word] = _inside(part[word], root, change, depth)
    dependent = part.get("dependentSchemas")
    if isinstance(dependent, dict):
        part["dependentSchemas"] = {name: _inside(inner, root, change, depth) for name, inner in dependent.items()}
    return part


def _inside(part: Any, root: Mapping[str, Any], change: Callable[[Schema], None], depth: int) -> Any:
    return _walk(part, root, change, depth + 1) if isinstance(part, dict) else part


def _not_required(part: Schema, names: Collection[str]) -> None:
    required = part.get("required")
    if isinstance(required, list):
        left = [name for name in required if name not in names]
        if left:
            part["required"] = left
        else:
            part.pop("required")
    dependent = part.get("dependentRequired")
    if isinstance(dependent, dict):
        part["dependentRequired"] = {
            name: [each for each in needed if each not in names] if isinstance(needed, list) else needed
            for name, needed in dependent.items()
            if name not in names
        }


def _only_flags(schema: Any) -> Schema:
    """Anything may stand here, and what the schema says about secrets still holds."""
    if not isinstance(schema, dict):
        return {}
    kept = {key: schema[key] for key in SCHEMA_FLAGS if key in schema}
    return {**kept, "format": "password"} if schema.get("format") == "password" else kept


def _resolved(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#"):
        return None
    place: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place
