"""Declarations that come with a request: what is accepted, completed, refused."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.tools import provider_safe_name
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

SERVER = {"name": "ability/search_posts", "source": "abilities", "description": "Finds posts."}


def refused(raw: Any) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        normalize_for_conversation_request(raw)
    return caught.value


def test_a_server_tool_is_completed_and_keeps_fields_of_its_own() -> None:
    tool = normalize_for_conversation_request(
        {**SERVER, "description": " Finds. ", "category": "read", "executor": "x"}
    )
    assert (tool.executor, tool.scope, tool.parameters, tool.description) == ("host", "run", {}, "Finds.")
    assert tool.model_dump()["category"] == "read"


def test_a_client_tool_gets_what_goes_without_saying() -> None:
    tool = normalize_for_conversation_request({"name": "client/pick_file"})
    assert (tool.source, tool.executor, tool.scope, tool.parameters) == ("client", "client", "run", {})
    assert tool.description == "client/pick_file"


@pytest.mark.spec("API-REJ-05")
@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({**SERVER, "name": "search_posts"}, "name"),
        ({**SERVER, "executor": "client"}, "name"),
        ({"name": "ability/search_posts", "description": "d"}, "source"),
    ],
    ids=["no slash", "client-executed under another namespace", "no source"],
)
def test_rejections_name_the_field(raw: dict[str, Any], field: str) -> None:
    error = refused(raw)
    assert field in error.path.split(", ")
    assert f"{field} must" in str(error)


@pytest.mark.parametrize(
    ("raw", "code", "field"),
    [
        ({**SERVER, "description": "  "}, "invalid_conversation_tool_declaration", "description"),
        ({**SERVER, "parameters": []}, "invalid_conversation_tool_declaration", "parameters"),
        ({**SERVER, "scope": "session"}, "invalid_conversation_tool_declaration", "scope"),
        ({**SERVER, "effect": "harmless"}, "invalid_conversation_tool_declaration", "effect"),
        ({**SERVER, "category": object()}, "invalid_conversation_tool_declaration", "category"),
        ({**SERVER, "sensitive_parameters": "x"}, "invalid_conversation_tool_declaration", "sensitive_parameters"),
        ({"name": "client/Pick"}, "invalid_runtime_tool_declaration", "name"),
        ({"name": "client/pick", "executor": "host"}, "invalid_runtime_tool_declaration", "executor"),
        ({"name": "client/pick", "source": "other"}, "invalid_runtime_tool_declaration", "source"),
    ],
)
def test_every_wrong_field_is_named_with_the_form_it_broke(raw: dict[str, Any], code: str, field: str) -> None:
    error = refused(raw)
    assert (error.code, error.path) == (code, field)


def test_the_runtime_declaration_carries_schema_effect_and_sensitivity() -> None:
    tool = normalize_for_conversation_request(
        {
            **SERVER,
            "effect": "pure",
            "parameters": {"properties": {"q": {"type": "string", "required": True}, "n": {"type": "integer"}}},
            "sensitive_parameters": ["q"],
            "parameter_sensitivity": {"filter.*.pin": True, "n": False},
        }
    )
    declaration = tool.to_declaration()
    assert declaration.input_schema == {
        "type": "object",
        "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["q"],
    }
    assert (declaration.effect, declaration.sensitive_parameters) == ("pure", ("q", "filter.*.pin"))
    assert tool.required_parameters == ("q",)


def test_a_host_that_says_nothing_about_effects_is_taken_to_mean_the_worst() -> None:
    assert normalize_for_conversation_request(SERVER).to_declaration().effect == "irreversible"


def test_names_a_call_may_use() -> None:
    tool = normalize_for_conversation_request({**SERVER, "provider_aliases": ["find"]})
    assert tool.names == ("ability/search_posts", "ability__search_posts", "find")
    assert provider_safe_name("7/up") == "tool_7__up"


def test_a_normalised_declaration_stays_what_it_is_and_one_made_by_hand_is_checked() -> None:
    tool = normalize_for_conversation_request(SERVER)
    assert isinstance(tool, RuntimeToolDeclaration)
    assert normalize_for_conversation_request(tool) == tool
    with pytest.raises(InvalidValue, match="namespace/slug"):
        normalize_for_conversation_request(tool.model_copy(update={"name": "no namespace"}))
