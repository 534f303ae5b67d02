"""The one redaction there is: used for every argument, event, audit entry and export that leaves the runtime.

A value is hidden when the name of its key is sensitive, or when the tool's declaration says so. It becomes the string
`[redacted]`; nothing about it remains, neither its type nor its length. Counts of tokens are not secrets. What is
known to be a secret by its value is hidden by `decisions.secret_values`.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.contracts.sensitive_names import (
    COUNT,
    MAX_DEPTH,
    PLAIN,
    REDACTED,
    SENSITIVE,
    hide_by_name,
    is_flagged,
    is_sensitive,
    only_numbers,
    verdict,
)
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.linear_patterns import PatternRefused, found_by
from wakeful.decisions.secret_values import SecretValues

__all__ = [
    "REDACTED",
    "SensitiveFields",
    "call_envelope",
    "declared_by",
    "is_sensitive",
    "redact",
    "redact_event",
    "redact_parameters",
    "redact_payload",
    "stable_hash",
]

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


class SensitiveFields(NamedTuple):
    """What a declaration calls sensitive: dotted paths, and the schema when it carries flags."""

    paths: tuple[tuple[str, ...], ...] = ()
    schema: dict[str, Any] | None = None


NOTHING_DECLARED = SensitiveFields()


def redact(value: Any, declared: SensitiveFields = NOTHING_DECLARED) -> Any:
    """A copy in which every secret is `[redacted]`, in objects and lists at every depth."""
    if declared is NOTHING_DECLARED or declared == NOTHING_DECLARED:
        return hide_by_name(value, 0)
    schemas = (declared.schema,) if declared.schema is not None else ()
    return _by_declaration(value, declared.paths, _expanded(schemas, declared.schema), declared.schema, 0)


def _by_declaration(
    value: Any,
    paths: tuple[tuple[str, ...], ...],
    schemas: tuple[dict[str, Any], ...],
    root: dict[str, Any] | None,
    depth: int,
) -> Any:
    if not paths and not schemas:
        return hide_by_name(value, depth)
    if any(not path for path in paths) or any(is_flagged(schema) for schema in schemas) or depth >= MAX_DEPTH:
        return REDACTED
    if isinstance(value, dict):
        copy = {}
        for key, inner in value.items():
            found = verdict(key) if isinstance(key, str) else PLAIN
            below = tuple(path[1:] for path in paths if path[0] in (key, "*"))
            inside = _expanded(_of_property(schemas, key), root)
            if found == SENSITIVE or () in below or any(is_flagged(schema) for schema in inside):
                copy[key] = REDACTED
            elif found == COUNT and not isinstance(inner, dict):
                copy[key] = only_numbers(inner, depth + 1)
            else:
                copy[key] = _by_declaration(inner, below, inside, root, depth + 1)
        return copy
    if isinstance(value, list | tuple):
        # a path that names no list item means the field in every item
        below = tuple(path[1:] if path[0] == "*" else path for path in paths)
        return [
            _by_declaration(inner, below, _expanded(_of_item(schemas, index), root), root, depth + 1)
            for index, inner in enumerate(value)
        ]
    return value


# --- what a declaration says ---------------------------------------------------------------------------------------

_COMPILED: dict[int, tuple[dict[str, Any], tuple[str, ...], SensitiveFields]] = {}
"""By the schema's identity; the schema is kept beside it, so that its id cannot be taken by another."""


def declared_by(declaration: ToolDeclaration | None) -> SensitiveFields:
    """What a tool's declaration calls sensitive."""
    if declaration is None:
        return NOTHING_DECLARED
    return _declared(declaration.input_schema, declaration.sensitive_parameters)


def _declared(schema: dict[str, Any], sensitive_parameters: tuple[str, ...]) -> SensitiveFields:
    if not schema and not sensitive_parameters:
        return NOTHING_DECLARED
    known = _COMPILED.get(id(schema))
    if known is None or known[1] != sensitive_parameters:
        paths = tuple(tuple(path.split(".")) for path in sensitive_parameters if path)
        flagged = schema if _has_flags(schema) else None
        declared = SensitiveFields(paths, flagged) if paths or flagged is not None else NOTHING_DECLARED
        if len(_COMPILED) >= 4096:
            _COMPILED.clear()
        known = _COMPILED[id(schema)] = (schema, sensitive_parameters, declared)
    return known[2]


def _has_flags(schema: Any) -> bool:
    if isinstance(schema, dict):
        return is_flagged(schema) or any(_has_flags(inner) for inner in schema.values())
    return isinstance(schema, list) and any(_has_flags(inner) for inner in schema)


def _expanded(schemas: tuple[Any, ...], root: dict[str, Any] | None) -> tuple[dict[str, Any], ...]:
    """Every schema that may speak about the same value: references followed, alternatives all taken."""
    found: list[dict[str, Any]] = []
    waiting = list(schemas)
    seen: set[int] = set()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        found.append(schema)
        for word in ("allOf", "anyOf", "oneOf"):
            alternatives = schema.get(word)
            waiting.extend(alternatives if isinstance(alternatives, list) else ())
        waiting.extend(schema[word] for word in ("if", "then", "else") if word in schema)
        reference = schema.get("$ref")
        if isinstance(reference, str) and root is not None:
            waiting.append(_resolved(reference, root))
    return tuple(found)


def _resolved(reference: str, root: dict[str, Any]) -> Any:
    place: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
    return place


def _of_property(schemas: tuple[dict[str, Any], ...], key: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for schema in schemas:
        properties = schema.get("properties")
        patterns = schema.get("patternProperties")
        found.extend(inner for pattern, inner in (patterns or {}).items() if _matches(pattern, key))
        if isinstance(properties, dict) and key in properties:
            found.append(properties[key])
        else:
            found.append(schema.get("additionalProperties"))
    return tuple(found)


def _matches(pattern: str, key: Any) -> bool:
    try:
        return found_by(pattern)(str(key))
    except PatternRefused:  # better to hide too much
        return True


def _of_item(schemas: tuple[dict[str, Any], ...], index: int) -> tuple[Any, ...]:
    found: list[Any] = []
    for schema in schemas:
        found.append(schema.get("items"))
        prefix = schema.get("prefixItems")
        if isinstance(prefix, list) and index < len(prefix):
            found.append(prefix[index])
    return tuple(found)


# --- hashes and envelopes ------------------------------------------------------------------------------------------


def stable_hash(value: Any) -> str:
    """`sha256:` and the hex digest of canonical JSON: equal data in another key order hashes the same."""
    return "sha256:" + hashlib.sha256(_canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def redact_parameters(
    parameters: Mapping[str, Any] | None, schema: dict[str, Any], sensitive_parameters: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A call's arguments without secrets: by their names, by the schema's flags, by the declared paths."""
    safe: dict[str, Any] = redact(dict(parameters or {}), _declared(schema, sensitive_parameters))
    return safe


def call_envelope(parameters: Mapping[str, Any] | None, declaration: ToolDeclaration | None = None) -> dict[str, Any]:
    """What observers get of a call's arguments: the redacted form and its hash."""
    safe = redact(dict(parameters or {}), declared_by(declaration))
    return {"parameters": safe, "parameters_sha256": stable_hash(safe), "parameters_redacted": True}


# --- events on read surfaces ---------------------------------------------------------------------------------------


def redact_event(
    event: RuntimeEvent,
    declarations: Mapping[str, ToolDeclaration] | None = None,
    secrets: SecretValues | None = None,
) -> RuntimeEvent:
    """An event as readers without the right to see arguments get it."""
    return event.model_copy(update={"payload": redact_payload(event.payload, declarations, secrets)})


def redact_payload(
    payload: Any,
    declarations: Mapping[str, ToolDeclaration] | None = None,
    secrets: SecretValues | None = None,
) -> Any:
    """JSON data of an event or of a conversation, for readers without the right to see arguments.

    Arguments are redacted wherever they stand: in the calls of an assistant item, in `safe_args`, in pieces of
    arguments as they came. `declarations` adds what the tools themselves call sensitive, `secrets` what is known to be
    one by its value.
    """
    named = hide_by_name(_without_arguments(payload, declarations or {}, 0), 0)
    return secrets.hide_in(named) if secrets is not None else named


def _without_arguments(value: Any, declarations: Mapping[str, ToolDeclaration], depth: int) -> Any:
    if depth >= MAX_DEPTH:
        return REDACTED
    if isinstance(value, list | tuple):
        return [_without_arguments(inner, declarations, depth + 1) for inner in value]
    if not isinstance(value, dict):
        return value
    copy = {key: _without_arguments(inner, declarations, depth + 1) for key, inner in value.items()}
    if value.get("type") == "call" and "call_id" in value:
        declared = declared_by(declarations.get(value.get("name", "")))
        if "arguments" in value:
            copy["arguments"] = redact(value["arguments"], declared)
        if value.get("raw_arguments") is not None:
            copy["raw_arguments"] = REDACTED  # not an object, so nobody can say which of it is secret
        if value.get("opaque"):
            copy["opaque"] = {"redacted": True}  # a provider may repeat the arguments in here
    if isinstance(value.get("safe_args"), dict):
        declared = declared_by(declarations.get(value.get("tool_name", "")))
        copy["safe_args"] = redact(value["safe_args"], declared)
    if isinstance(value.get("arguments"), dict) and "tool_name" in value:
        declared = declared_by(declarations.get(value.get("tool_name", "")))
        copy["arguments"] = redact(value["arguments"], declared)
    elif isinstance(value.get("arguments"), dict) and "by" in value:
        copy["arguments"] = {"redacted": True}  # a hook's own: the safe form of what was run stands in `tool.args`
    if "changed_by" in value and value.get("delta") is not None:
        copy["delta"] = REDACTED
    return copy
