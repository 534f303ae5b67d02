"""Published JSON Schemas in lines that a person can compare: one for each property, without words about it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_WORDS = frozenset({"title", "description", "examples", "$comment", "$id", "$schema"})
_NO_RULE = frozenset({"properties", "required", "$defs", *_WORDS})


def schema_lines(schema: Mapping[str, Any]) -> list[str]:
    """`ToolStarted.effect: string, required`: definitions by name, what a document is first."""
    lines = [*_object_lines("(the document)", schema)]
    for name, definition in sorted(schema.get("$defs", {}).items()):
        lines += _object_lines(name, definition)
    return lines


def _object_lines(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"{name}: {_rule({key: value for key, value in schema.items() if key not in _NO_RULE})}"
    required = schema.get("required", ())
    for field, rule in schema.get("properties", {}).items():
        yield f"{name}.{field}: {_rule(rule)}{', required' if field in required else ''}"


def _rule(rule: Any) -> str:
    """A rule in short: a reference by its name, alternatives with `|`, the rest as JSON."""
    if not isinstance(rule, Mapping):
        return json.dumps(rule)
    rest = {key: value for key, value in rule.items() if key not in _WORDS}
    short = []
    if "$ref" in rest:
        short.append(str(rest.pop("$ref")).removeprefix("#/$defs/"))
    short += [" | ".join(map(_rule, rest.pop(key))) for key in ("anyOf", "oneOf") if key in rest]
    if isinstance(rest.get("type"), str):
        short.append(rest.pop("type"))
    if "items" in rest:
        short.append(f"of {_rule(rest.pop('items'))}")
    short += [f"{key} {json.dumps(_bare(value), ensure_ascii=False)}" for key, value in rest.items()]
    return ", ".join(short)


def _bare(value: Any) -> Any:
    """Without words, whatever is inside; a property may be called like one of them."""
    match value:
        case dict():
            return {
                key: {name: _bare(each) for name, each in inner.items()} if key == "properties" else _bare(inner)
                for key, inner in value.items()
                if key not in _WORDS or not isinstance(inner, str)
            }
        case list():
            return [_bare(each) for each in value]
    return value
