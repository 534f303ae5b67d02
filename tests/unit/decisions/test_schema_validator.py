"""JSON Schema in bounded work: the same verdicts as the library's own, and an end for every schema and value."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter

from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.schema_keywords import TooMuchWork, WorkAllowance
from wakeful.decisions.schema_size import is_recursive, multiplying
from wakeful.decisions.schema_validator import SchemaValidator, schema_problem

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"patternProperties": {"^a": {}, "b$": {}}, "additionalProperties": False},
    {"properties": {"a": {}}, "unevaluatedProperties": False},
    {"allOf": [{"properties": {"a": {}}}, {"patternProperties": {"^b": {}}}], "unevaluatedProperties": False},
    {"anyOf": [{"required": ["a"], "properties": {"a": {}}}, True], "unevaluatedProperties": {"type": "integer"}},
    {"if": {"required": ["a"]}, "then": {"properties": {"b": {}}}, "unevaluatedProperties": False},
    {"dependentSchemas": {"a": {"properties": {"b": {}}}}, "unevaluatedProperties": False},
    {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}, "unevaluatedProperties": False},
    {"uniqueItems": True},
    {"prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
    {"contains": {"type": "integer"}, "unevaluatedItems": {"type": "string"}},
    {"items": {"pattern": "^a"}},
    {"oneOf": [{"properties": {"a": {"const": "x"}}, "required": ["a"]}, {"properties": {"a": {"const": "y"}}}]},
    {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
    {"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 1}]},
    {"enum": [1, "a", {"a": 1}]},
    {"not": {"type": "object"}},
    {"propertyNames": {"pattern": "^[ab]"}},
]
BOTH = [(SchemaValidator(schema), Draft202012Validator(schema)) for schema in SCHEMAS]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-1, 2)
    | st.sampled_from([0.5, 1.0])
    | st.sampled_from(["", "a", "ab", "b", "x"])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "ab", "c"]), inner)
)


@given(value=VALUES)
@settings(max_examples=60, deadline=None)
def test_its_verdicts_are_those_of_the_library(value: Any) -> None:
    for ours, library in BOTH:
        assert (not list(ours.errors(value))) is library.is_valid(value), (library.schema, value)


TWICE: dict[str, Any] = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(40)},
        "d40": {"type": "string"},
    },
}
WIDE: dict[str, Any] = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{at}": {"properties": {side: {"$ref": f"#/$defs/d{at + 1}"} for side in "lr"}} for at in range(40)},
        "d40": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (TWICE, "stand for more than"),
        (WIDE, "stand for more than"),
        ({"$ref": "#"}, "leads back to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}}, "leads back to itself"),
        ({"anyOf": [{"allOf": [{}] * 50}] * 50}, "speak about one value"),
        ({"properties": {"a": {"pattern": "(?<=a)b"}}}, "at properties.a.pattern: '(?<=a)b' cannot be matched"),
        ({"patternProperties": {"(a)\\1": {}}}, "at patternProperties"),
        ({"required": [{"a": at} for at in range(20_000)]}, "not a JSON Schema, at required"),
        ({"type": "no such type"}, "not a JSON Schema, at type"),
        ({"properties": {f"p{at}": {"type": "string"} for at in range(110_000)}}, "more than 100,000 parts"),
    ],
)
def test_a_schema_that_cannot_be_checked_in_bounded_work_is_refused(schema: dict[str, Any], reason: str) -> None:
    assert reason in (schema_problem(schema) or "")
    with pytest.raises(InvalidConfig):
        SchemaValidator(schema)


def test_what_checking_several_schemas_may_take_together_is_bounded() -> None:
    schema, steps = {"properties": {f"p{at}": {"type": "string"} for at in range(50)}}, WorkAllowance(20_000)
    found = [schema_problem(schema, steps) for _ in range(10)]
    assert found[0] is None and found[-1] == "a JSON Schema that is too large to be checked"


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"properties": {"a": schema}}
    assert schema_problem(schema) == "a JSON Schema that is nested too deeply"


SLOW = "^(a+)+$"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": SLOW}, "a" * 50_000 + "!"),
        ({"patternProperties": {SLOW: False}, "additionalProperties": False}, {"a" * 50_000 + "!": 1}),
        ({"patternProperties": {SLOW: {}}, "unevaluatedProperties": False}, {"a" * 50_000 + "!": 1}),
        ({"propertyNames": {"pattern": SLOW}}, {"a" * 50_000 + "!": 1}),
        ({"properties": {"a": {"$schema": DRAFT_7, "pattern": SLOW}}}, {"a": "a" * 50 + "!"}),
        ({"$defs": {"a": {"$schema": DRAFT_7, "pattern": SLOW}}, "$ref": "#/$defs/a"}, "a" * 50 + "!"),
    ],
)
def test_a_slow_pattern_is_answered_wherever_it_stands(schema: dict[str, Any], value: Any) -> None:
    assert list(SchemaValidator(schema).errors(value))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"anyOf": [{"const": at} for at in range(300)]}}, list(range(5_000, 9_000))),
        ({"items": {"enum": list(range(5_000))}}, list(range(5_000, 10_000))),
        ({"anyOf": [{"type": "string", "minLength": at} for at in range(300)]}, [0] * 300_000),
        ({"items": {"oneOf": [{"minimum": at} for at in range(500)]}}, [1_000] * 10_000),
        ({"items": {}}, [0] * 1_000_000),
        ({"uniqueItems": True}, [{"a": at} for at in range(400_000)]),
    ],
)
def test_a_value_that_takes_too_many_steps_is_given_up(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(TooMuchWork):
        list(SchemaValidator(schema).errors(value))


def test_without_the_limit_each_level_would_take_twice_as_long() -> None:
    schema = SchemaValidator(TypeAdapter(Tree).json_schema())
    taken = []
    for depth in (3, 4, 5, 6):
        steps = WorkAllowance(10**9)
        list(schema.errors(tree(depth), steps))
        taken.append(10**9 - steps.left)
    assert all(later > 1.9 * earlier for earlier, later in pairwise(taken)), taken
    with pytest.raises(TooMuchWork):
        list(schema.errors(tree(30)))


class Leaf(BaseModel):
    value: int


class Sum(BaseModel):
    left: "Tree"
    right: "Tree"


class Product(BaseModel):
    left: "Tree"
    right: "Tree"


Tree = Union[Sum, Product, Leaf]  # noqa: UP007 - it names itself
Sum.model_rebuild()
Product.model_rebuild()


def tree(depth: int) -> Any:
    found: Any = {"value": 1}
    for _ in range(depth):
        found = {"left": found, "right": {"value": 1}}
    return found


class Number(BaseModel):
    kind: Literal["number"]
    value: int


class Plus(BaseModel):
    kind: Literal["plus"]
    left: "Term"
    right: "Term"


class Times(BaseModel):
    kind: Literal["times"]
    left: "Term"
    right: "Term"


Term = Annotated[Union[Plus, Times, Number], Field(discriminator="kind")]  # noqa: UP007
Plus.model_rebuild()
Times.model_rebuild()


def test_what_a_field_tells_apart_may_be_nested() -> None:
    found: Any = {"kind": "number", "value": 1}
    for _ in range(35):
        found = {"kind": "times", "left": found, "right": {"kind": "number", "value": 1}}
    schema = SchemaValidator(TypeAdapter(Term).json_schema())
    assert list(schema.errors(found)) == []
    found["right"]["value"] = "none"
    assert list(schema.errors(found))


def test_a_type_that_contains_itself_is_known_as_one() -> None:
    assert is_recursive(TypeAdapter(Tree).json_schema()) is True
    assert is_recursive(TypeAdapter(dict[str, list[Leaf]]).json_schema()) is False
    assert multiplying(TypeAdapter(Term).json_schema()) is None
