"""JSON Schemas as Gemini takes them: a part of the standard's keywords. Pure.

Rule: what Gemini has no keyword for is said in the description, where the model reads it, and the change is reported.
"""

import json
from typing import Any

from wakeful.providers.wire.schema_reader import NAMED, ONE, SEVERAL, Schema
from wakeful.providers.wire.schemas import EmittedSchema, emit

TAKEN = frozenset(
    {
        *("$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems"),
        *("minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties"),
        *("required", "propertyOrdering"),
    }
)
"""The keywords that Google documents for `responseJsonSchema` and `parametersJsonSchema`."""
_SAYS_NOTHING = ("default", "examples", "discriminator")
"""Left out without a word: the model needs none of them to answer."""


def gemini_schema(source: dict[str, Any]) -> EmittedSchema:
    """The schema of a tool's arguments or of an answer."""
    emitted = emit(source, "relaxed", "openai")
    changes = list(emitted.changes)
    return EmittedSchema(_written(emitted.schema, "#", changes), tuple(changes), False)


def _written(schema: Any, path: str, changes: list[str]) -> Any:
    if not isinstance(schema, dict):
        return schema
    out: Schema = {}
    said: list[str] = []
    for key, value in schema.items():
        at = f"{path}/{key}"
        if key == "const":
            out["enum"] = [value]
            changes.append(f"{path}: const became an enum of one")
        elif key == "definitions":
            out["$defs"] = {name: _written(inner, f"{at}/{name}", changes) for name, inner in value.items()}
            changes.append(f"{path}: definitions became $defs")
        elif key == "$ref":
            out[key] = str(value).replace("#/definitions/", "#/$defs/")
        elif key in _SAYS_NOTHING:
            changes.append(f"{path}: {key} was left out")
        elif key not in TAKEN:
            said.append(f"({key}: {json.dumps(value, ensure_ascii=False, default=str)})")
            changes.append(f"{path}: {key} was moved into the description")
        elif key in NAMED and isinstance(value, dict):
            out[key] = {name: _written(inner, f"{at}/{name}", changes) for name, inner in value.items()}
        elif key in SEVERAL and isinstance(value, list):
            out[key] = [_written(inner, f"{at}/{number}", changes) for number, inner in enumerate(value)]
        elif key in ONE:
            out[key] = _written(value, at, changes)
        else:
            out[key] = value
    if said:
        out["description"] = " ".join([*([out["description"]] if out.get("description") else []), *said])
    return out
