"""How a JSON Schema is read: which keywords hold schemas, what a reference stands for, and what takes null."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


def is_meant(key: str, value: Any) -> bool:
    """Whether a keyword's value is of the kind that the keyword takes."""
    if key in NAMED:
        return isinstance(value, dict)
    if key in SEVERAL:
        return isinstance(value, list) and bool(value)
    if key in ONE:
        return isinstance(value, dict | bool) or (key == "items" and isinstance(value, list))
    if key in ("enum", "required"):
        names = key == "required"
        return isinstance(value, list) and (not names or all(isinstance(name, str) for name in value))
    if key == "type":
        kinds = value if isinstance(value, list) else [value]
        return bool(kinds) and all(kind in TYPES for kind in kinds)
    if key in ("minItems", "maxItems"):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, str) if key in ("$ref", "description", "title") else True


def meant(schema: Schema) -> Schema:
    """A schema with only those of its keywords that mean something."""
    return {key: value for key, value in schema.items() if is_meant(key, value)}


def found_at(source: Mapping[str, Any], ref: Any) -> Any:
    """What a reference stands for, with only those of its keywords that mean something."""
    target = resolve(source, ref)
    return meant(target) if isinstance(target, dict) else target


def resolve(source: Mapping[str, Any], ref: Any) -> Any:
    """What a reference within a schema stands for; None when it leads out of it or nowhere."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    found: Any = source
    for step in ref[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, Mapping) and step in found:
            found = found[step]
        else:
            return None
    return found


def refers_to_itself(source: Mapping[str, Any], ref: str) -> bool:
    seen: set[str] = set()
    waiting = [ref]
    while waiting:
        for inner in _refs_in(resolve(source, waiting.pop())):
            if inner == ref:
                return True
            if inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return False


def is_recursive(source: Mapping[str, Any]) -> bool:
    """Whether some part of a schema stands for itself."""
    return any(ref == "#" or refers_to_itself(source, ref) for ref in set(_refs_in(source)))


def _refs_in(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [ref for inner in schema for ref in _refs_in(inner)]
    if not isinstance(schema, Mapping):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return own + [ref for inner in schema.values() for ref in _refs_in(inner)]


def allows(schema: Mapping[str, Any], kind: str) -> bool:
    given = schema.get("type")
    return given is None or given == kind or (isinstance(given, list) and kind in given)


def takes_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is True
    if "enum" in schema:
        return None in schema["enum"]
    if "const" in schema:
        return schema["const"] is None
    if "anyOf" in schema or "oneOf" in schema:
        return any(takes_null(branch) for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())))
    return "$ref" not in schema and allows(schema, "null")


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if takes_null(schema):
        return schema
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    out = dict(schema)
    if "const" in out:
        out["enum"] = [out.pop("const"), None]
    elif "enum" in out:
        out["enum"] = [*out["enum"], None]
    for word in ("anyOf", "oneOf"):
        if word in out:
            out[word] = [*out[word], {"type": "null"}]
    kind = out.get("type")
    if isinstance(kind, str):
        out["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        out["type"] = [*kind, "null"]
    return out


def types_of(values: list[Any]) -> str | list[str]:
    """The JSON types of some values."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    found = list(dict.fromkeys("null" if value is None else kinds.get(type(value), "string") for value in values))
    return found[0] if len(found) == 1 else found
