"""Events in the form of the draft standard: the same facts, with names in camelCase. Pure.

Which words are names follows from the published schema: fields that it declares are renamed, and whatever is a caller's
own (arguments, metadata, the schema of a tool) stays as it is. So the schema of this form is the published one with the
same names changed, and what is exported validates against it.
"""

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.contracts.events import BY_KIND
from wakeful.contracts.schema import UNKNOWN_TYPE, event_schema

_REF = "#/$defs/"
_PARTS = ("anyOf", "oneOf", "allOf")


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


@cache
def _published() -> dict[str, Any]:
    return event_schema()


@cache
def _renamed() -> dict[str, Any]:
    schema = _rename(_published())
    return {**schema, "$id": "urn:wakeful:standard-events:1", "title": "wakeful event in the draft standard's form"}


def standard_schema() -> dict[str, Any]:
    """The schema of events in this form, a copy for each caller."""
    return deepcopy(_renamed())


def standard_form(event: RuntimeEvent) -> dict[str, Any]:
    """A published event in the draft standard's form."""
    data = event.model_dump(mode="json", exclude_none=True)
    branch = _published()["$defs"][event.type if event.type in BY_KIND else UNKNOWN_TYPE]
    payload = branch["properties"].get("payload", {})
    envelope = {key: value for key, value in data.items() if key != "payload"}
    return {**_written(envelope, _published()), "payload": _written(data["payload"], payload)}


def _rename(schema: Any) -> Any:
    """A schema whose declared fields are in camelCase."""
    if isinstance(schema, list):
        return [_rename(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {camel_case(name): _rename(each) for name, each in value.items()}
        elif key == "$defs":
            made[key] = {name: _rename(each) for name, each in value.items()}
        elif key == "required":
            made[key] = [camel_case(name) for name in value]
        elif key == "discriminator":
            made[key] = {**value, "propertyName": camel_case(value["propertyName"])}
        elif key in (*_PARTS, "items", "prefixItems", "additionalProperties", "not"):
            made[key] = _rename(value)
        elif key != "default":  # a default is written in the other form
            made[key] = value
    return made


def _written(value: Any, schema: Any) -> Any:
    """Data of a schema, with the names that it declares in camelCase."""
    schema = _choice(value, schema)
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        return [
            _written(each, first[place] if place < len(first) else schema.get("items", {}))
            for place, each in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    declared, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    return {
        camel_case(name) if name in declared else name: _written(each, declared.get(name, others))
        for name, each in value.items()
    }


def _choice(value: Any, schema: Any) -> Mapping[str, Any]:
    """The schema that a value keeps, of those that are offered."""
    if not isinstance(schema, dict):
        return {}
    if (ref := schema.get("$ref", "")).startswith(_REF):
        return _choice(value, _published()["$defs"][ref.removeprefix(_REF)])
    offered = [_choice(value, each) for part in _PARTS for each in schema.get(part, ())]
    if not offered or "properties" in schema:
        return schema
    return next((each for each in offered if _fits(value, each)), offered[0])


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = {dict: "object", list: "array", str: "string", bool: "boolean"}.get(type(value))
    if kind is not None and schema.get("type", kind) != kind:
        return False
    if not isinstance(value, dict):
        return kind is None or "properties" not in schema
    declared = schema.get("properties", {})
    named = all(value.get(name) == each["const"] for name, each in declared.items() if "const" in each)
    closed = schema.get("additionalProperties") is not False or set(value) <= set(declared)
    return named and closed and set(schema.get("required", ())) <= set(value)
