"""Which arguments of a call are the owner's: leaf by leaf."""

from typing import Any

import pytest

from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.argument_origins import Origins, argument_origins
from wakeful.decisions.policy.owner_text import OwnerText

ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "number": {"type": "integer"}},
}
SCHEMA = {
    "type": "object",
    "$defs": {"Address": ADDRESS},
    "properties": {
        "to": {"type": "string"},
        "cc": {"type": "array", "items": {"type": "string"}},
        "body": {"type": "string"},
        "message": {"type": "object", "properties": {"text": {"type": "string"}, "title": {"type": "string"}}},
        "address": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]},
        "cents": {"type": "integer"},
        "urgent": {"type": "boolean", "default": False},
        "kind": {"enum": ["plain", "rich"], "default": "plain"},
        "extra": {"type": "object"},
    },
}


def origins(arguments: dict[str, Any], *said: str, content: tuple[str, ...] = ()) -> Origins:
    words = OwnerText()
    for text in said or ("to bob@x.example and amy@x.example, 4200, Long Lane 7, colour red",):
        words.add(text)
    return argument_origins(arguments, ToolDeclaration(name="t", input_schema=SCHEMA, content=content), words)


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "bob@x.example"},
        {"cc": ["bob@x.example", "amy@x.example"]},
        {"address": {"street": "Long Lane", "number": 7}},
        {"cents": 4200},
        {"cents": "4200"},
        {"extra": {"colour": "red"}},
        {"to": "bob@x.example", "urgent": False, "kind": "plain"},
    ],
)
def test_a_call_whose_leaves_all_stand_in_the_owners_words(arguments: dict[str, Any]) -> None:
    found = origins(arguments)
    assert (found.derived, found.owned > 0) == ((), True)


@pytest.mark.parametrize(
    ("arguments", "derived"),
    [
        ({"to": "eve@x.example"}, ("to",)),
        ({"cc": ["bob@x.example", "eve@x.example"]}, ("cc",)),
        ({"cc": ["bob", "@x.example"]}, ("cc",)),
        ({"address": {"street": "Long Lane", "number": 8}}, ("address.number",)),
        ({"cents": 42}, ("cents",)),
        ({"cents": True}, ("cents",)),
        ({"urgent": True}, ("urgent",)),
        ({"kind": "rich"}, ("kind",)),
        ({"extra": {"evil": "red"}}, ("extra.evil",)),
        ({"to": "the person we spoke of"}, ("to",)),
    ],
)
def test_one_leaf_that_is_not_is_named(arguments: dict[str, Any], derived: tuple[str, ...]) -> None:
    assert origins(arguments).derived == derived


def test_nothing_is_said_about_empty_values_and_free_text() -> None:
    nothing = {"to": "", "cc": [], "extra": {}, "address": None}
    assert origins(nothing) == Origins()
    free = {"body": "anything", "message": {"text": "anything", "title": "as well"}}
    assert origins(free, content=("body", "message")) == Origins()
    assert origins(free, content=("body", "message.text")).derived == ("message.title",)
