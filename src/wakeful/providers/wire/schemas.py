"""JSON Schemas as a provider takes them. The source schema stays as it is; what is sent is emitted from it.

`relaxed` (the default at run time) closes objects and leaves the shape honest: optional stays optional. `strict` lists
every property as required and makes what was optional nullable. What a provider refuses is rewritten to the nearest
thing it takes, and every such rewriting is reported: nothing is dropped in silence.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.wire.schema_answers import without_added_nulls
from wakeful.providers.wire.schema_reader import (
    NAMED,
    ONE,
    SEVERAL,
    Schema,
    allows,
    found_at,
    is_meant,
    nullable,
    refers_to_itself,
    resolve,
    types_of,
)

__all__ = ["Dialect", "EmittedSchema", "Mode", "emit", "without_added_nulls"]

Mode: TypeAlias = Literal["relaxed", "strict"]
Dialect: TypeAlias = Literal["openai", "anthropic"]
"""Whose refusals apply. Servers that speak OpenAI's format refuse what OpenAI refuses, or less."""

_UNIONS = ("anyOf", "oneOf", "allOf")
_NOWHERE_STRICT = frozenset(
    {
        "contains",
        "contentEncoding",
        "contentMediaType",
        "default",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "maxLength",
        "maxProperties",
        "minContains",
        "minLength",
        "minProperties",
        "not",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
_REFUSED_STRICT: dict[Dialect, frozenset[str]] = {
    "openai": _NOWHERE_STRICT,
    "anthropic": _NOWHERE_STRICT
    | {
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minimum",
        "multipleOf",
    },
}
"""Keywords that are moved into the description, where the model can still read them."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_TAKEN_FORMATS: dict[Dialect, frozenset[str]] = {"openai": _FORMATS, "anthropic": _FORMATS | {"uri"}}
_LOOKS_AROUND = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]")
"""What no provider's engine has in a pattern: a look ahead or behind, and a reference back."""
_REFUSED_ROOT = ("enum", "const", "not", "if", "then", "else")
_MOST_STEPS = 8
"""How often a reference or a conjunction may lead to another one."""
_SCALARS = ("string", "number", "boolean", "null")
_SAYS_NOTHING = frozenset({"$comment", "$id", "$schema"})


class EmittedSchema(NamedTuple):
    """A schema to send, whether it may be sent as strict, and what had to be changed, each with its place."""

    schema: Schema
    changes: tuple[str, ...]
    strict: bool
    faithful: bool = True
    """False: held to it, a model could not give every answer that the source takes."""


def emit(schema: Mapping[str, Any], mode: Mode = "relaxed", dialect: Dialect = "openai") -> EmittedSchema:
    """The schema of an object (a tool's arguments, an answer) for a provider. The source is not touched."""
    emission = _Emission(schema, mode, dialect)
    return EmittedSchema(emission.root(), tuple(emission.changes), mode == "strict", emission.faithful)


class _Emission:
    """One emission: the source it resolves references in, and the changes so far."""

    def __init__(self, source: Mapping[str, Any], mode: Mode, dialect: Dialect) -> None:
        self.strict = mode == "strict"
        self.dialect = dialect
        self.changes: list[str] = []
        self.faithful = True
        self.source: Schema = self.sound(dict(source), "#")

    def root(self) -> Schema:
        source = dict(self.source)
        for _ in range(_MOST_STEPS):
            target = self.resolved({"$ref": source.pop("$ref")}) if "$ref" in source else {}
            if target:
                self.note("#", "the reference at the top was followed")
            source = {**target, **source}
        source.pop("$ref", None)
        if any(word in source for word in _UNIONS):
            source = self.one_object(source)
        kind = source.get("type", "object")
        if isinstance(kind, list) and "object" in kind:
            self.note("#", f"type {kind} became object")
            kind = "object"
        if kind != "object":
            raise InvalidConfig(
                f"a schema of type {kind!r} cannot be sent to a provider",
                "Tools take an object, and answers are one: put the value into a property.",
            )
        if source.pop("nullable", False) is True:
            self.note("#", "nullable was left out: arguments and answers are an object")
        for word in _REFUSED_ROOT:
            if word in source:
                self.into_description(source, word, "#")
        out: Schema = self.emitted({**source, "type": "object", "properties": source.get("properties", {})}, "#")
        if not source.get("properties"):
            self.close(out, "#")
        return out

    def note(self, path: str, what: str) -> None:
        self.changes.append(f"{path}: {what}")

    def sound(self, schema: Any, path: str) -> Any:
        """A schema without the keywords that have no meaning as they are written; schemas come from anywhere."""
        if not isinstance(schema, dict):
            return schema
        out: Schema = {}
        for key, value in schema.items():
            at = f"{path}/{key}"
            if not is_meant(key, value):
                self.note(at, f"{json.dumps(value, default=str)[:80]} means nothing here; it was left out")
            elif key in NAMED:
                out[key] = {name: self.sound(inner, f"{at}/{name}") for name, inner in value.items()}
            elif key in SEVERAL or (key == "items" and isinstance(value, list)):
                out[key] = [self.sound(inner, f"{at}/{number}") for number, inner in enumerate(value)]
            elif key in ONE:
                out[key] = self.sound(value, at)
            else:
                out[key] = value
        return out

    def emitted(self, schema: Any, path: str) -> Any:
        """One schema and everything within it."""
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            self.note(path, f"{json.dumps(schema)} is not a schema; anything is accepted")
            return {}
        schema = {key: value for key, value in schema.items() if not self.is_silent(key, path)}
        schema = self.rewritten(schema, path)
        out: Schema = {}
        for key, value in schema.items():
            at = f"{path}/{key}"
            if key in NAMED and isinstance(value, dict):
                out[key] = {
                    name: self.emitted(inner, f"{at}/{name}")
                    for name, inner in value.items()
                    if not self.is_impossible(inner, f"{at}/{name}")
                }
            elif key in SEVERAL and isinstance(value, list):
                out[key] = [self.emitted(inner, f"{at}/{number}") for number, inner in enumerate(value)]
            elif key in ONE and isinstance(value, dict):
                out[key] = self.emitted(value, at)
            else:
                out[key] = value
        if self.is_object(out):
            self.as_object(out, schema, path)
        return out

    def is_silent(self, key: str, path: str) -> bool:
        if key in _SAYS_NOTHING:
            self.note(path, f"{key} was left out; it says nothing to a provider")
            return True
        return False

    def is_impossible(self, schema: Any, path: str) -> bool:
        if schema is False:
            self.note(path, "nothing can be given here, so the name was left out")
            return True
        return False

    # --- what a provider refuses ---------------------------------------------------------------------------------

    def rewritten(self, schema: Schema, path: str) -> Schema:
        schema = dict(schema)
        if "$ref" in schema:
            schema = self.reference(schema, path)
        if schema.pop("nullable", False) is True:
            self.note(path, "nullable became the type null")
            schema = nullable(schema)
        if isinstance(schema.get("items"), list):
            self.note(path, "items as a list became prefixItems")
            schema["prefixItems"] = schema.pop("items")
        if allows(schema, "array") and "items" not in schema and schema.get("type") is not None:
            self.items(schema, path)
        if self.strict:
            schema = self.strictly(schema, path)
        return schema

    def reference(self, schema: Schema, path: str) -> Schema:
        """References within the schema are kept. Those that lead elsewhere, or carry more than a name, cannot be."""
        ref = schema["$ref"]
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        target = resolve(self.source, ref)
        if target is None:
            self.note(path, f"the reference {ref!r} cannot be followed; anything is accepted")
            return siblings
        if not self.strict or not siblings:
            return schema
        if refers_to_itself(self.source, ref):
            self.note(path, f"{', '.join(siblings)} beside a reference to itself was left out")
            return {"$ref": ref}
        self.note(path, f"the reference {ref!r} was replaced by what it stands for")
        whole = {**self.resolved({"$ref": ref}), **siblings}
        return self.reference(whole, path) if "$ref" in whole else whole

    def items(self, schema: Schema, path: str) -> None:
        """A list must say what is in it."""
        several = schema.get("prefixItems")
        if several:
            schema["items"] = several[0] if len(several) == 1 else {"anyOf": list(several)}
            self.note(path, "items was added from prefixItems")
        else:
            self.faithful = not self.strict
            schema["items"] = {"type": "string"} if self.strict else {}
            self.note(path, "items was added: " + ("strict lists need a type" if self.strict else "anything"))

    def strictly(self, schema: Schema, path: str) -> Schema:
        for _ in range(_MOST_STEPS):
            if "allOf" in schema:
                schema = self.all_of(schema, path)
        if "allOf" in schema:
            self.into_description(schema, "allOf", path)
        if "$ref" in schema:
            schema = self.reference(schema, path)
        if "oneOf" in schema:
            self.note(path, "oneOf became anyOf")
            schema["anyOf"] = [*schema.get("anyOf", []), *schema.pop("oneOf")]
        if schema.get("default", ...) is None:
            del schema["default"]
            self.note(path, "the default null was left out; what is optional is nullable")
        if schema.pop("discriminator", None) is not None:
            self.note(path, "discriminator was left out; the constants of its branches say the same")
        self.faithful = self.faithful and "patternProperties" not in schema
        for word in sorted(_REFUSED_STRICT[self.dialect] & schema.keys()):
            self.into_description(schema, word, path)
        if schema.get("format", "date") not in _TAKEN_FORMATS[self.dialect]:
            self.into_description(schema, "format", path)
        if _LOOKS_AROUND.search(str(schema.get("pattern", ""))):
            self.into_description(schema, "pattern", path)
        if "type" not in schema and ("enum" in schema or "const" in schema):
            schema["type"] = types_of(schema["enum"] if "enum" in schema else [schema["const"]])
            self.note(path, "type was added from the values")
        if self.dialect == "openai" and not self.are_distinct(schema.get("anyOf", ())):
            self.note(path, "branches that begin with the same property cannot be told apart in strict")
            self.faithful = False
        if self.dialect == "anthropic" and schema.get("minItems", 0) not in (0, 1):
            self.into_description(schema, "minItems", path)
        if not any(word in schema for word in ("type", "$ref", "anyOf", "enum", "const", "properties")):
            self.note(path, "anything became any scalar: strict values have a type")
            self.faithful = False
            schema["type"] = list(_SCALARS)
        return schema

    def are_distinct(self, branches: Any) -> bool:
        """Objects of a union have to begin with different properties, or with different values of the same one."""
        begun: dict[str, set[str]] = {}
        for branch in branches:
            first = next(iter(self.resolved(branch).get("properties", {}).items()), None)
            if first is None:
                continue
            name, inner = first[0], self.resolved(first[1])
            values = inner["enum"] if "enum" in inner else [inner["const"]] if "const" in inner else None
            taken = {json.dumps(value, default=str) for value in values} if values is not None else None
            if name in begun and (taken is None or not begun[name] or begun[name] & taken):
                return False
            begun[name] = begun.get(name, set()) | (taken or set())
        return True

    def into_description(self, schema: Schema, word: str, path: str) -> None:
        """What the schema may not say, its description says: the model reads it, and the runtime checks it."""
        said = f"({word}: {json.dumps(schema.pop(word), ensure_ascii=False, default=str)})"
        schema["description"] = f"{schema['description']} {said}" if schema.get("description") else said
        self.note(path, f"{word} was moved into the description")

    def all_of(self, schema: Schema, path: str) -> Schema:
        """Several schemas at once as one: properties and requirements together, the first word on anything else."""
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for number, branch in enumerate(schema["allOf"]):
            whole = self.resolved(branch)
            for key, value in whole.items():
                if key == "properties":
                    merged[key] = {**value, **merged.get(key, {})}
                elif key == "required":
                    merged[key] = [*merged.get(key, []), *(name for name in value if name not in merged.get(key, []))]
                elif key not in merged:
                    merged[key] = value
                elif merged[key] != value and key not in ("title", "description"):
                    self.note(f"{path}/allOf/{number}", f"{key} is given twice; the first was kept")
        self.note(path, "allOf was merged into one schema")
        return merged

    def one_object(self, source: Schema) -> Schema:
        """A union at the top as one object: every branch's properties, and as required what all branches require."""
        merged = {key: value for key, value in source.items() if key not in _UNIONS}
        properties: dict[str, Any] = dict(merged.get("properties", {}))
        required = list(merged.get("required", []))
        for word in _UNIONS:
            branches = [self.resolved(branch) for branch in source.get(word, [])]
            if not branches:
                continue
            for branch in branches:
                for name, inner in branch.get("properties", {}).items():
                    known = properties.setdefault(name, inner)
                    if known != inner:
                        options = known["anyOf"] if _is_only_a_union(known) else [known]
                        properties[name] = {"anyOf": options if inner in options else [*options, inner]}
            wanted = [list(branch.get("required", [])) for branch in branches]
            if word == "allOf":
                shared = [name for names in wanted for name in names]
            else:
                shared = [name for name in wanted[0] if all(name in names for names in wanted)]
            required += [name for name in dict.fromkeys(shared) if name not in required]
            self.note("#", f"{word} at the top became one object; which properties go together is not said any more")
        merged["properties"] = properties
        if required:
            merged["required"] = required
        return {**merged, "type": "object"}

    def resolved(self, schema: Any) -> Schema:
        if isinstance(schema, dict) and "$ref" in schema:
            target = found_at(self.source, schema["$ref"])
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return {**target, **rest} if isinstance(target, dict) else rest
        return schema if isinstance(schema, dict) else {}

    # --- objects --------------------------------------------------------------------------------------------------

    def is_object(self, schema: Schema) -> bool:
        return allows(schema, "object") and ("type" in schema or "properties" in schema)

    def as_object(self, out: Schema, source: Schema, path: str) -> None:
        properties = out.get("properties")
        out.setdefault("type", "object")
        if not properties and not self.strict and path != "#":
            out.setdefault("additionalProperties", True)  # a map, or any object: closed it would hold nothing
            return
        if not properties and source.get("additionalProperties", "properties" not in source) is not False:
            self.faithful = False  # a map: closed, it holds nothing
        self.close(out, path)
        if not self.strict:
            return
        properties = out.setdefault("properties", {})
        wanted = source.get("required", [])
        for name, inner in properties.items():
            if name not in wanted:
                properties[name] = nullable(inner)
        out["required"] = list(properties)

    def close(self, out: Schema, path: str) -> None:
        if out.get("additionalProperties", False) is not False:
            self.note(path, "additionalProperties became false: only the named properties can be given")
        out["additionalProperties"] = False


def _is_only_a_union(schema: Any) -> bool:
    return isinstance(schema, dict) and set(schema) == {"anyOf"}
