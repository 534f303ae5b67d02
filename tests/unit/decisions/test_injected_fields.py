"""Injected fields: into a copy of the schema, and out of the arguments again."""

import copy
import json
from typing import Any

import pytest

from wakeful.contracts.controls import checked_injected_args
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.injected_fields import check_collisions, split, with_injected
from wakeful.providers.wire.schemas import emit

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
REASON = {"reason": "Why you call this tool."}


def test_the_fields_are_optional_texts_of_a_copy() -> None:
    before = copy.deepcopy(SCHEMA)
    shown, other = with_injected(SCHEMA, REASON), with_injected(SCHEMA, {"mood": "How you feel."})
    assert before == SCHEMA
    assert shown["properties"] == {
        "q": {"type": "string"},
        "reason": {"type": "string", "description": "Why you call this tool."},
    }
    assert shown["required"] == ["q"]
    assert "reason" not in other["properties"] and "mood" not in shown["properties"]
    assert with_injected({"type": "object"}, REASON)["properties"].keys() == {"reason"}
    assert with_injected(SCHEMA, {}) == SCHEMA


def test_strict_emission_makes_them_nullable() -> None:
    emitted = emit(with_injected(SCHEMA, REASON), "strict").schema
    assert emitted["properties"]["reason"]["type"] == ["string", "null"]
    assert emit(with_injected(SCHEMA, REASON)).schema["properties"]["reason"]["type"] == "string"


def test_arguments_are_parted_and_injected_values_stay_as_they_came() -> None:
    arguments = {"q": "x", "reason": {"odd": 1}}
    assert split(arguments, REASON) == ({"q": "x"}, {"reason": {"odd": 1}})
    assert split({"q": "x"}, REASON) == ({"q": "x"}, {})
    assert arguments == {"q": "x", "reason": {"odd": 1}}


def test_a_configuration_is_names_and_descriptions_and_nothing_else() -> None:
    kept = checked_injected_args("Agent 'a': injected_tool_args", REASON)
    assert json.loads(json.dumps(kept)) == REASON
    for wrong in ({"": "x"}, {" ": "x"}, {3: "x"}):
        with pytest.raises(InvalidConfig, match="name"):
            checked_injected_args("Agent 'a': injected_tool_args", wrong)
    for value in ({"type": "string", "description": "d"}, None, 3, ["d"]):
        with pytest.raises(InvalidConfig, match=r"Agent 'a': injected_tool_args\['reason'\]"):
            checked_injected_args("Agent 'a': injected_tool_args", {"reason": value})
    with pytest.raises(InvalidConfig, match="injected_tool_args"):
        checked_injected_args("Agent 'a': injected_tool_args", ["reason"])


@pytest.mark.parametrize("schema", [SCHEMA, {"allOf": [SCHEMA]}, {"anyOf": [{"required": ["q"]}]}])
def test_a_name_that_a_tool_has_already_is_refused_naming_both(schema: dict[str, Any]) -> None:
    tools = [ToolDeclaration(name="free", input_schema={}), ToolDeclaration(name="search", input_schema=schema)]
    check_collisions("Agent 'a'", REASON, tools)
    with pytest.raises(InvalidConfig, match="Agent 'a': the injected field 'q' is a parameter of the tool 'search'"):
        check_collisions("Agent 'a'", {"q": "again"}, tools)
