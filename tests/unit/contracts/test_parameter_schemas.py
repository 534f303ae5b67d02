"""Taking parameters out of a schema, wherever it speaks of them."""

import copy
from typing import Any

import pytest

from wakeful.contracts.parameter_schemas import property_names, relaxed, without

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "customer": {"type": "string"}},
    "required": ["q", "customer"],
    "allOf": [{"properties": {"customer": {"minLength": 3}, "n": {"type": "integer"}}, "required": ["customer"]}],
    "anyOf": [{"required": ["customer", "n"]}, {"$ref": "#/$defs/Owner"}],
    "oneOf": [{"if": {"required": ["customer"]}, "then": {"properties": {"customer": {}}, "required": ["customer"]}}],
    "dependentRequired": {"q": ["customer"], "customer": ["q"]},
    "dependentSchemas": {"q": {"required": ["customer"]}},
    "$defs": {"Owner": {"properties": {"customer": {"type": "string"}}, "required": ["customer", "q"]}},
}


def test_a_parameter_is_gone_from_every_place_that_speaks_of_the_same_object() -> None:
    before = copy.deepcopy(SCHEMA)
    left = without(SCHEMA, ["customer"])
    assert before == SCHEMA
    assert left == {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "allOf": [{"properties": {"n": {"type": "integer"}}}],
        "anyOf": [{"required": ["n"]}, {"properties": {}, "required": ["q"]}],
        "oneOf": [{"if": {}, "then": {"properties": {}}}],
        "dependentRequired": {"q": []},
        "dependentSchemas": {"q": {}},
    }
    assert property_names(left) == {"q", "n"}


def test_a_field_of_the_same_name_in_another_object_stays() -> None:
    schema = {"properties": {"to": {"properties": {"customer": {}}, "required": ["customer"]}, "customer": {}}}
    assert without(schema, ["customer"]) == {
        "properties": {"to": {"properties": {"customer": {}}, "required": ["customer"]}}
    }


def test_definitions_that_only_it_needed_are_gone_with_it() -> None:
    schema: dict[str, Any] = {
        "properties": {"customer": {"$ref": "#/$defs/Customer"}, "list": {"items": {"$ref": "#/$defs/Item"}}},
        "$defs": {
            "Customer": {"properties": {"iban": {}}},
            "Item": {"properties": {"of": {"$ref": "#/$defs/Kind"}}},
            "Kind": {"enum": [1]},
        },
    }
    left = without(schema, ["customer"])
    assert left["$defs"].keys() == {"Item", "Kind"}
    assert "iban" not in str(left)


def test_a_name_for_a_name_is_followed() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"properties": {"a": {}, "b": {}}}}}
    assert without(schema, ["a"]) == {"properties": {"b": {}}}


def test_a_definition_that_contains_itself_comes_to_an_end() -> None:
    schema: dict[str, Any] = {"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}, "$ref": "#/$defs/A"}
    assert property_names(schema) == frozenset()
    assert property_names({"$ref": "#"}) == frozenset()


@pytest.mark.parametrize("flag", [{"x-sensitive": True}, {"format": "password"}])
def test_relaxed_lets_absent_and_ignored_parameters_through_and_keeps_what_is_secret(flag: dict[str, Any]) -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"type": "integer", **flag}, "c": {"type": "string"}},
        "required": ["a", "b", "c"],
    }
    assert relaxed(schema, optional=["a"], ignored=["b"]) == {
        "properties": {"a": {"type": "string"}, "b": flag, "c": {"type": "string"}},
        "required": ["c"],
    }
