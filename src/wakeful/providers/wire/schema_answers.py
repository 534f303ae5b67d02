"""Back from a strict answer to what the source schema says: strict has no optional fields, only nullable ones."""

from collections.abc import Mapping
from typing import Any

from wakeful.providers.wire.schema_reader import Schema, found_at, meant, takes_null


def without_added_nulls(schema: Mapping[str, Any], value: Any) -> Any:
    """What a model gave for a strict schema, in terms of the source: a null that only stood for `left out` goes."""
    return _unfilled(dict(schema), dict(schema), value)


def _unfilled(root: Schema, schema: Any, value: Any) -> Any:
    schema = _stood_for(root, schema)
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_unfilled(root, schema.get("items"), inner) for inner in value]
    if not isinstance(value, dict):
        return value
    branches = [schema, *schema.get("allOf", []), *schema.get("anyOf", []), *schema.get("oneOf", [])]
    resolved = [_stood_for(root, branch) for branch in branches]
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        owners = [b for b in resolved if isinstance(b, dict) and name in b.get("properties", {})]
        if inner is None and owners and all(_only_added(root, owner, name) for owner in owners):
            continue
        kept[name] = _unfilled(root, owners[0]["properties"][name], inner) if owners else inner
    return kept


def _only_added(root: Schema, owner: Schema, name: str) -> bool:
    inner = _stood_for(root, owner["properties"][name])
    return name not in owner.get("required", []) and isinstance(inner, dict) and not takes_null(inner)


def _stood_for(root: Schema, schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    schema = meant(schema)
    return found_at(root, schema["$ref"]) if "$ref" in schema else schema
