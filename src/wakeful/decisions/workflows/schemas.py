"""What JSON Schemas say about parameters and results, as far as it can be known before anything runs.

Only what is certainly wrong is called wrong: the gate judges every call again with the values themselves. Messages say
what is wanted and never the value, which may be a secret.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.parameter_schemas import property_names
from wakeful.contracts.validation import path_of
from wakeful.decisions.schema_keywords import MAX_STEPS, TooMuchWork
from wakeful.decisions.schema_validator import SchemaValidator, schema_problem

_JSON = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
"""`number` stands for those that are no integers; a schema that says `number` allows both."""
_COMBINED = ("anyOf", "oneOf")
_MAX_DEPTH = 20
"""Definitions that contain themselves are followed this far, and no further."""
_MAX_WORDS = 300

Schema = Mapping[str, Any]


class ParameterSchema(NamedTuple):
    """What a tool takes."""

    root: Schema
    named: Mapping[str, Any]
    """The schema of each parameter; `{}` where it cannot be told."""
    required: frozenset[str]
    is_open: bool
    """It takes others, too."""

    def knows(self, name: str) -> bool:
        return self.is_open or name in self.named


def parameters(schema: Schema) -> ParameterSchema:
    """The parameters of an input schema, wherever it speaks of them."""
    named: dict[str, Any] = {name: {} for name in sorted(property_names(schema))}
    required: set[str] = set()
    is_open = False
    for part in _together(schema, schema):
        properties = part.get("properties")
        named.update(properties if isinstance(properties, dict) else {})
        required.update(name for name in _listed(part.get("required")) if isinstance(name, str))
        is_open = is_open or "patternProperties" in part or part.get("additionalProperties", False) is not False
    silent = not named and "additionalProperties" not in schema
    return ParameterSchema(schema, named, frozenset(required), is_open or silent)


def misfit(value: Any, schema: Any, root: Schema) -> str | None:
    """Why a value does not fit a part of a schema, or None. A schema that cannot be used refuses nothing here."""
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    whole = {**_definitions(root), **schema} if isinstance(schema, Mapping) else schema
    try:
        error = best_match(SchemaValidator(whole).errors(value))
    except (InvalidConfig, Unresolvable, RecursionError):
        return None
    except TooMuchWork:
        return f"takes more than {MAX_STEPS:,} steps to check"
    if error is None:
        return None
    if error.validator == "type":
        wanted = " or ".join(str(kind) for kind in _listed(error.validator_value) or [error.validator_value])
        words = f"must be {wanted}, not {kind_of(error.instance)}"
    else:
        words = f"must satisfy {error.validator} {json.dumps(error.validator_value, ensure_ascii=False, default=str)}"
    place = path_of(error.absolute_path)
    return (f"{place} {words}" if place else words)[:_MAX_WORDS]


def is_schema(schema: Any) -> str | None:
    """Why this is no JSON Schema, or None when it is one."""
    if not isinstance(schema, Mapping | bool):
        return f"a schema is an object, not {kind_of(schema)}"
    return schema_problem(schema)


def can_meet(source: Any, source_root: Schema, target: Any, target_root: Schema) -> bool:
    """May a value of the one schema be a value of the other?"""
    return bool(types(source, source_root) & types(target, target_root))


def types(schema: Any, root: Schema, depth: int = 0) -> frozenset[str]:
    """The JSON types a value of this schema may have."""
    if schema is False:
        return frozenset()
    if not isinstance(schema, Mapping) or depth >= _MAX_DEPTH:
        return _JSON
    possible = _JSON
    if "type" in schema:
        named = {str(kind) for kind in _listed(schema["type"]) or [schema["type"]]}
        possible &= named | ({"integer"} if "number" in named else set())
    choices = [schema["const"]] if "const" in schema else _listed(schema.get("enum"))
    if choices:
        possible &= {kind_of(choice) for choice in choices}
    target = _resolved(schema, root)
    if target is not None:
        possible &= types(target, root, depth + 1)
    for part in _listed(schema.get("allOf")):
        possible &= types(part, root, depth + 1)
    for word in _COMBINED:
        parts = _listed(schema.get(word))
        if parts:
            possible &= frozenset[str]().union(*(types(part, root, depth + 1) for part in parts))
    return possible


def leads_nowhere(schema: Any, steps: Sequence[str], root: Schema) -> bool:
    """Is there certainly nothing at this path below a value of the schema?"""
    return below(schema, steps, root) is False


def below(schema: Any, steps: Sequence[str], root: Schema) -> Any:
    """The schema of what is at a path; `{}` where nobody knows, False where there is nothing."""
    for step in steps:
        if not isinstance(schema, Mapping):
            return {} if schema is True else schema
        possible = types(schema, root)
        if not possible & {"object", "array"}:
            return False
        parts = list(_together(schema, root))
        if "object" in possible and (known := [part for part in parts if isinstance(part.get("properties"), dict)]):
            inner = next((part["properties"][step] for part in known if step in part["properties"]), None)
            others = [part["additionalProperties"] for part in known if "additionalProperties" in part]
            if inner is None and "array" not in possible and not any(_is_choice(part) for part in parts):
                inner = others[0] if others else False
            schema = {} if inner is None else inner
        elif possible == {"array"} and not step.isdigit():
            return False
        else:
            schema = next((part["items"] for part in parts if "items" in part and step.isdigit()), {})
    return schema


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _together(schema: Any, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """The parts that all hold: the schema, what it refers to, what `allOf` adds."""
    if not isinstance(schema, Mapping) or depth >= _MAX_DEPTH:
        return
    yield schema
    target = _resolved(schema, root)
    if target is not None:
        yield from _together(target, root, depth + 1)
    for part in _listed(schema.get("allOf")):
        yield from _together(part, root, depth + 1)


def _resolved(schema: Schema, root: Schema) -> Any:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    place: Any = root
    for step in reference.removeprefix("#/").split("/"):
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


def _is_choice(part: Schema) -> bool:
    return any(word in part for word in (*_COMBINED, "patternProperties"))


def _definitions(root: Schema) -> dict[str, Any]:
    return {word: root[word] for word in ("$defs", "definitions") if word in root}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
