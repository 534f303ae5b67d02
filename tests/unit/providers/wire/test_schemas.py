"""Schemas as providers take them: relaxed by default, strict on demand, every rewriting reported."""

import copy
import json
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.wire.schemas import emit, without_added_nulls


class Address(BaseModel):
    street: str
    number: int = 1


class Order(BaseModel):
    customer: str
    colour: Literal["red", "blue"] = "red"
    kind: Literal["order"] = "order"
    to: Address
    second: Address | None = None
    lines: list[Address] = []
    note: str | None = None


SOURCE = Order.model_json_schema()


def objects_in(schema: Any) -> list[dict[str, Any]]:
    """Every object schema, wherever it is."""
    if isinstance(schema, list):
        return [found for inner in schema for found in objects_in(inner)]
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    own = [schema] if kind == "object" or (isinstance(kind, list) and "object" in kind) else []
    return own + [found for inner in schema.values() for found in objects_in(inner)]


@pytest.mark.spec("HOL-SCHEMA-04", "HOL-SCHEMA-06", "HOL-SCHEMA-08")
def test_emission_has_its_own_mode_apart_from_the_source_and_is_relaxed_unless_asked() -> None:
    before = copy.deepcopy(SOURCE)
    relaxed, strict = emit(SOURCE, "relaxed"), emit(SOURCE, "strict")
    assert before == SOURCE and relaxed.schema != strict.schema  # 04: emitted, and the source untouched by either
    assert emit(SOURCE) == relaxed  # what a caller gets that says nothing
    assert relaxed.strict is False  # 06
    assert strict.strict is True and emit(SOURCE).strict is False  # 08: only when it is asked for


@pytest.mark.spec("HOL-SCHEMA-07")
def test_relaxed_closes_objects_and_leaves_the_shape_honest() -> None:
    schema = emit(SOURCE).schema
    assert [found["additionalProperties"] for found in objects_in(schema)] == [False, False]
    assert schema["required"] == ["customer", "to"]
    assert schema["properties"]["colour"] == SOURCE["properties"]["colour"]


@pytest.mark.spec("HOL-SCHEMA-09", "HOL-SCHEMA-10", "HOL-SCHEMA-13")
def test_strict_closes_every_object_and_requires_all_its_properties_however_deep() -> None:
    nested = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "array", "items": dict(Address.model_json_schema())}}},
            "c": {"anyOf": [{"type": "object", "properties": {"d": {"type": "string"}}}, {"type": "null"}]},
        },
    }
    found = objects_in(emit(nested, "strict").schema)
    assert len(found) == 4  # 13: the root, the nested object, the items of a list, the branch of a union
    assert all(each["additionalProperties"] is False for each in found)  # 09
    assert all(each["required"] == list(each["properties"]) for each in found)  # 10


@pytest.mark.spec("HOL-SCHEMA-11", "HOL-SCHEMA-12")
def test_strict_makes_optional_fields_nullable_enums_included() -> None:
    properties = emit(SOURCE, "strict").schema["properties"]
    assert properties["customer"]["type"] == "string"  # was required
    assert properties["lines"]["type"] == ["array", "null"]  # 11
    assert properties["second"]["anyOf"] == [{"$ref": "#/$defs/Address"}, {"type": "null"}]
    assert properties["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert properties["colour"]["enum"] == ["red", "blue", None]  # 12
    assert properties["colour"]["type"] == ["string", "null"]
    assert properties["kind"]["enum"] == ["order", None]


def test_an_optional_reference_becomes_a_union_with_null() -> None:
    source = {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/A"}},
        "$defs": {"A": Address.model_json_schema()},
    }
    assert emit(source, "strict").schema["properties"]["to"] == {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}


def test_what_was_valid_stays_valid_when_what_is_missing_is_null() -> None:
    schema = emit(SOURCE, "strict").schema
    given = {"customer": "c", "colour": None, "kind": None, "to": {"street": "s", "number": None}}
    filled = {**given, "second": None, "lines": None, "note": None}
    jsonschema.validate(filled, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(given, schema)
    back = without_added_nulls(SOURCE, filled)
    assert back == {"customer": "c", "to": {"street": "s"}, "second": None, "note": None}
    assert Order.model_validate(back).colour == "red"


def test_strict_emissions_are_schemas_and_nothing_refused_is_left_in_them() -> None:
    class Wide(BaseModel):
        pair: tuple[int, str]
        tags: set[str] = Field(default_factory=set)
        size: int = Field(3, ge=1, le=9)
        word: str = Field("x", min_length=1, pattern="^x")
        either: int | str = 1

    for dialect in ("openai", "anthropic"):
        emitted = emit(Wide.model_json_schema(), "strict", dialect)
        jsonschema.Draft202012Validator.check_schema(emitted.schema)
        text = json.dumps({"p": {k: {**v, "description": ""} for k, v in emitted.schema["properties"].items()}})
        assert not [word for word in ("uniqueItems", "prefixItems", '"default"', "oneOf") if word in text]
        assert ('"minimum"' in text) == (dialect == "openai")


@pytest.mark.parametrize(
    ("source", "mode", "emitted", "told"),
    [
        ({"type": "string", "default": "x"}, "strict", {"description": '(default: "x")'}, "default was moved"),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "description": "Tags."},
            "strict",
            {"description": "Tags. (uniqueItems: true)"},
            "uniqueItems was moved",
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}]},
            "strict",
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "oneOf",
        ),
        ({"type": "array"}, "relaxed", {"items": {}}, "items was added"),
        ({"type": "array", "items": [{"type": "string"}]}, "relaxed", {"items": {"type": "string"}}, "prefixItems"),
        ({"type": "string", "nullable": True}, "relaxed", {"type": ["string", "null"]}, "nullable"),
        ({"$ref": "https://example.org/x.json"}, "relaxed", {}, "cannot be followed"),
        ({"$ref": "#/$defs/Missing"}, "relaxed", {}, "cannot be followed"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"},
            "relaxed",
            {},
            "$schema was left out",
        ),
        ({}, "strict", {"type": ["string", "number", "boolean", "null"]}, "any scalar"),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            "strict",
            {"additionalProperties": False, "properties": {}, "required": []},
            "additionalProperties became false",
        ),
        (
            {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
            "strict",
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            "allOf was merged",
        ),
    ],
)
def test_what_a_provider_refuses_is_rewritten_and_reported(
    source: dict[str, Any], mode: Literal["relaxed", "strict"], emitted: dict[str, Any], told: str
) -> None:
    got = emit({"type": "object", "properties": {"p": source}, "required": ["p"]}, mode)
    assert emitted.items() <= got.schema["properties"]["p"].items()
    assert any(change.startswith("#/properties/p") and told in change for change in got.changes)


def test_a_schema_that_needs_nothing_is_reported_as_unchanged() -> None:
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert emit(closed).changes == () and emit(closed, "strict").changes == ()


def test_a_map_stays_a_map_in_relaxed_because_closed_it_would_hold_nothing() -> None:
    source = {"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "integer"}}}}
    assert emit(source).schema["properties"]["m"]["additionalProperties"] == {"type": "integer"}


def test_a_tool_without_arguments_is_a_closed_empty_object() -> None:
    assert emit({}).schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_union_at_the_top_becomes_one_object() -> None:
    source = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"id": {"type": "string"}, "a": {"type": "string"}},
                "required": ["id", "a"],
            },
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        ]
    }
    got = emit(source)
    assert got.schema["properties"]["id"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert set(got.schema["properties"]) == {"id", "a"}
    assert got.schema["required"] == ["id"]
    assert "oneOf" not in got.schema and any("oneOf at the top" in change for change in got.changes)


class Tree(BaseModel):
    name: str
    children: "list[Tree]" = []


@pytest.mark.parametrize("mode", ["relaxed", "strict"])
def test_a_schema_that_refers_to_itself_stays_finite_and_valid(mode: Literal["relaxed", "strict"]) -> None:
    emitted = emit(Tree.model_json_schema(), mode)
    assert emitted.schema["type"] == "object"
    jsonschema.validate({"name": "a", "children": [{"name": "b", "children": []}]}, emitted.schema)


def test_words_beside_a_reference_are_kept_in_strict_by_following_it() -> None:
    source = {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/A", "description": "Where to."}},
        "required": ["to"],
        "$defs": {"A": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}},
    }
    to = emit(source, "strict").schema["properties"]["to"]
    assert to["description"] == "Where to." and to["properties"] == {"x": {"type": "string"}}


def test_a_schema_that_is_no_object_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidConfig, match="put the value into a property"):
        emit({"type": "array", "items": {}})


KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
        *("additionalProperties", "not", "default", "description", "nullable", "prefixItems", "minItems", "a", "b"),
    ]
)
WORDS = ["object", "array", "string", "null", "#", "#/$defs/a", "#/properties/a", "a", "b"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(KEYWORDS, ANYTHING, max_size=6), st.sampled_from(["openai", "anthropic"]), ANYTHING)
def test_whatever_somebody_calls_a_schema_is_emitted_by_the_rules_or_refused(
    source: dict[str, Any], dialect: Literal["openai", "anthropic"], value: Any
) -> None:
    try:
        emitted = emit(source, "strict", dialect)
    except InvalidConfig:
        return
    assert emitted.schema["type"] == "object"
    assert all(found["additionalProperties"] is False for found in schemas_of_objects(emitted.schema))
    assert all(found["required"] == list(found["properties"]) for found in schemas_of_objects(emitted.schema))
    without_added_nulls(source, value)


def schemas_of_objects(schema: Any) -> list[dict[str, Any]]:
    """Every object schema in a place where a schema stands: what an enum or a default holds is no schema."""
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    found = [schema] if kind == "object" or (isinstance(kind, list) and "object" in kind) else []
    for word in ("properties", "$defs"):
        found += [each for inner in schema.get(word, {}).values() for each in schemas_of_objects(inner)]
    found += [each for inner in schema.get("anyOf", []) for each in schemas_of_objects(inner)]
    return found + schemas_of_objects(schema.get("items"))


def test_a_keyword_that_means_nothing_is_left_out_and_reported() -> None:
    got = emit({"type": "object", "properties": {"a": {"type": "string", "required": True}}, "required": None})
    assert got.schema["properties"] == {"a": {"type": "string"}} and "required" not in got.schema
    assert [change.split(":")[0] for change in got.changes] == ["#/properties/a/required", "#/required"]
