"""Arguments against the declared schema, with errors a model can act on."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from wakeful.contracts.errors import InvalidConfig
from wakeful.gate import argument_validation
from wakeful.gate.argument_validation import Violation
from wakeful.gate.quick_validation import quick_check

REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order": {"type": "string", "minLength": 1},
        "cents": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "mode": {"enum": ["fast", "slow"], "type": "string"},
        "to": {"$ref": "#/$defs/Address"},
    },
    "required": ["order", "cents"],
    "additionalProperties": False,
    "$defs": {"Address": {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}},
}


def problems(arguments: Any, schema: dict[str, Any] = REFUND) -> list[Violation]:
    return argument_validation.compile(schema).check(arguments)


def test_arguments_that_fit_have_no_violations_and_others_have() -> None:
    assert problems({"order": "A17", "cents": 1, "tags": ["x"], "note": None, "mode": "fast"}) == []
    assert problems({"order": "A17", "cents": 1, "to": {"street": "Elm"}}) == []
    assert problems({"order": "A17", "cents": "much"}) == [Violation("cents", "must be integer, not string")]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"cents": True}, Violation("cents", "must be integer, not boolean")),
        ({"cents": -1}, Violation("cents", "must satisfy minimum 0")),
        ({"order": ""}, Violation("order", "must satisfy minLength 1")),
        ({"tags": ["a", 5]}, Violation("tags[1]", "must be string, not integer")),
        ({"mode": "warp"}, Violation("mode", 'must be one of ["fast", "slow"]')),
        ({"to": {}}, Violation("to.street", "is required")),
        ({"to": {"street": None}}, Violation("to.street", "must be string, not null")),
        (
            {"note": 5},
            Violation("note", "fits none of the allowed forms: must be string, not integer; must be null, not integer"),
        ),
        ({"ordr": "x"}, Violation("ordr", "is not known here; known are: order, cents, tags, note, mode, to")),
    ],
)
def test_a_violation_says_where_and_what_is_wanted(changed: dict[str, Any], found: Violation) -> None:
    assert problems({"order": "A17", "cents": 1, **changed}) == [found]


def test_each_missing_parameter_is_named() -> None:
    assert problems({}) == [
        Violation("cents", "is required", missing="cents"),
        Violation("order", "is required", missing="order"),
    ]
    nested = problems({"order": "A17", "cents": 1, "to": {}})
    assert [violation.missing for violation in nested] == [None]


def test_violations_are_bounded_in_number_and_length_and_do_not_repeat_the_values() -> None:
    many = problems({f"secret_{index}": "s3cr3t" * 1000 for index in range(1000)})
    assert len(many) == argument_validation.MAX_VIOLATIONS
    long = {"type": "object", "properties": {"x": {"enum": ["y" * 5000]}}}
    (one,) = problems({"x": "s3cr3t"}, long)
    assert len(one.message) <= argument_validation.MAX_MESSAGE_CHARS
    assert "s3cr3t" not in json.dumps([*many, one])


def test_a_schema_is_compiled_once() -> None:
    schema = {"type": "object"}
    assert argument_validation.compile(schema) is argument_validation.compile(schema)
    assert argument_validation.compile({"type": "object"}) is argument_validation.compile(schema)
    assert argument_validation.compile({"type": "object", "title": "x"}) is not argument_validation.compile(schema)


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"not a JSON Schema, at properties\.x\.type"):
        argument_validation.compile({"properties": {"x": {"type": "strin"}}})


def test_a_schema_that_points_elsewhere_fits_nothing_and_fetches_nothing() -> None:
    (found,) = problems({"x": 1}, {"$ref": "http://127.0.0.1:9/schema.json"})
    assert "points to what is not in it" in found.message


def test_arguments_nested_without_end_are_a_violation_and_not_a_crash() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"inner": deep}
    schema = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/N"}}}}}
    assert problems(deep, schema) == [Violation("", "nested too deeply")]
    while deep:  # taken apart by hand: freeing it in one go recurses as deeply
        deep = deep.pop("inner", {})


def test_the_quick_check_leaves_what_it_does_not_know_to_the_validator() -> None:
    assert quick_check({"type": "string", "pattern": "^a"}) is None
    assert quick_check({"type": "object", "properties": {"x": {"not": {}}}}) is None
    assert quick_check({"type": "object", "patternProperties": {}}) is None
    assert quick_check({"$ref": "#/$defs/x"}) is None
    assert quick_check(False) is None
    assert quick_check({"oneOf": []}) is None


SCALARS = st.sampled_from(
    [
        {},
        True,
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 2},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "const": "a"},
        {"type": "integer"},
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 3},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1.5},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"enum": [1, "a", None]},
        {"type": "string", "pattern": "^a"},
    ]
)
NAMES = st.sampled_from(["a", "b", "c"])
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda each, few: {"type": "array", "items": each, "maxItems": few}, inner, st.integers(0, 3))
        | st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda fields, needed, extra: {
                "type": "object",
                "properties": fields,
                "required": needed,
                "additionalProperties": extra,
            },
            st.dictionaries(NAMES, inner, max_size=3),
            st.lists(NAMES, unique=True, max_size=2),
            st.booleans() | inner,
        )
    ),
    max_leaves=6,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2, 3, -1, 0.5, 1.0, 2.5, float("nan"), "", "a", "b", "abc"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_the_quick_check_never_accepts_what_json_schema_refuses(schema: Any, value: Any) -> None:
    accepts = quick_check(schema)
    if accepts is not None and accepts(value):
        assert Draft202012Validator(schema).is_valid(value)


def test_the_property_above_would_notice_a_careless_check() -> None:
    careless = lambda value: isinstance(value, int)  # noqa: E731
    assert careless(True) and not Draft202012Validator({"type": "integer"}).is_valid(True)
    check = quick_check({"type": "integer"})
    assert check is not None and not check(True)


@pytest.mark.parametrize("huge", [10**400, float("inf")])
def test_what_cannot_be_checked_is_refused(huge: float) -> None:
    half: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "number", "multipleOf": 0.5}}}
    (violation,) = argument_validation.compile(half).check({"n": huge})
    assert "cannot be checked" in violation.message
    assert argument_validation.compile(half).check({"n": 1.5}) == []
