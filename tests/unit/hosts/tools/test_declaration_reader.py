"""The three ways in for a tool declaration: the strict client form, the server form, and what came with a request."""

import json
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.tools.declaration_reader import (
    normalize,
    normalize_for_conversation_request,
    normalize_for_server,
    validate_declaration,
)

CLIENT: dict[str, Any] = {
    "name": "client/pick-file",
    "description": " Lets the user pick a file. ",
    "executor": "client",
    "scope": "run",
}
SERVER: dict[str, Any] = {"name": "ability/search_posts", "source": "abilities", "description": "Finds posts."}


def without(raw: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name != field}


# --- the strict client form ------------------------------------------------------------------------------------------


@pytest.mark.spec("API-DCL-01", "API-DCL-02", "API-DCL-03", "API-DCL-04")
def test_a_client_tool_is_completed_by_its_source_and_what_may_be_empty() -> None:
    tool = normalize(CLIENT)
    assert (tool.name, tool.source, tool.executor, tool.scope) == ("client/pick-file", "client", "client", "run")
    assert (tool.description, tool.parameters, tool.runtime) == ("Lets the user pick a file.", {}, {})
    assert normalize({**CLIENT, "source": "client"}) == tool
    for name in ("client/Pick", "client/9", "client/", "client/a/b", "pick", "Client/pick", 7, None):
        assert validate_declaration({**CLIENT, "name": name}) == ["name"], name
    for source in ("host", "", 3):
        assert validate_declaration({**CLIENT, "source": source}) == ["source"]
    for description in ("", "  ", None, 3):
        assert validate_declaration({**CLIENT, "description": description}) == ["description"]
    assert validate_declaration(without(CLIENT, "description")) == ["description"]
    for field in ("parameters", "runtime"):
        for wrong in ([], "x", None):
            assert validate_declaration({**CLIENT, field: wrong}) == [field]
        assert validate_declaration({**CLIENT, field: {"type": "object"}}) == []


@pytest.mark.spec("API-DCL-05", "API-DCL-08")
def test_the_strict_form_assumes_neither_executor_nor_scope_and_takes_nothing_else() -> None:
    for field, wrong in (("executor", "host"), ("scope", "session")):
        assert validate_declaration({**CLIENT, field: wrong}) == [field]
        assert validate_declaration(without(CLIENT, field)) == [field]
    for name in ("ability/search", "host/pick", "pick-file"):
        with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_declaration: name"):
            normalize({**CLIENT, "name": name})
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_declaration: executor"):
        normalize({**CLIENT, "executor": "host"})
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_declaration: name, source, executor"):
        normalize(normalize_for_server(SERVER))


@pytest.mark.spec("API-DCL-06")
def test_validate_lists_the_wrong_fields_and_normalize_names_them_all() -> None:
    wrong = {"name": "pick", "source": "x", "description": " ", "parameters": [], "executor": "host", "scope": "day"}
    fields = validate_declaration(wrong)
    assert sorted(fields) == ["description", "executor", "name", "parameters", "scope", "source"]
    with pytest.raises(InvalidValue) as caught:
        normalize(wrong)
    assert str(caught.value).startswith(f"invalid_runtime_tool_declaration: {', '.join(fields)}")
    assert validate_declaration(CLIENT) == []
    assert validate_declaration("nothing") == ["name", "executor", "scope", "description"]  # type: ignore[arg-type]


@pytest.mark.spec("API-DCL-07")
def test_what_a_client_tool_says_beyond_its_envelope_is_kept() -> None:
    tool = normalize(
        {
            **CLIENT,
            "runtime": {"environment": "runtime_local", "api_key": "s3cr3t"},
            "parameter_bindings": {"folder": "client_context.folder"},
            "client_context_bindings": ["page"],
            "parameter_defaults": {"kind": "image"},
            "icon": {"name": "folder"},
        }
    )
    assert tool.runtime == {"environment": "runtime_local", "api_key": "[redacted]"}
    assert {name: str(binding) for name, binding in tool.plan.bindings.items()} == {
        "folder": "client_context.folder",
        "page": "client_context.page",
    }
    assert tool.parameter_defaults == {"kind": "image"}
    assert tool.model_dump()["icon"] == {"name": "folder"}
    assert tool.provider_safe_name == "client__pick__file"
    assert json.loads(tool.model_dump_json())["provider_safe_name"] == "client__pick__file"


# --- the server form -------------------------------------------------------------------------------------------------


@pytest.mark.spec("API-SRV-02", "API-SRV-03", "API-SRV-04")
def test_a_server_tool_needs_a_namespaced_name_a_source_and_a_description() -> None:
    tool = normalize_for_server(SERVER)
    assert (tool.name, tool.source, tool.description, tool.parameters) == (
        "ability/search_posts",
        "abilities",
        "Finds posts.",
        {},
    )
    cases = [
        ("name", ("search", "a/b/c", "Ability/x", "ability/9", "client/pick", 7, None)),
        ("source", (None, "", "Abilities", "a/b", 3)),
        ("description", (None, "", "  ", 3)),
        ("parameters", ([], "x", None)),
    ]
    for field, values in cases:
        for value in values:
            with pytest.raises(InvalidValue) as caught:
                normalize_for_server({**SERVER, field: value})
            assert (caught.value.code, caught.value.path) == ("invalid_server_tool_declaration", field)
    with pytest.raises(InvalidValue, match="source"):
        normalize_for_server(without(SERVER, "source"))


@pytest.mark.spec("API-SRV-05", "API-SRV-06")
def test_executor_and_scope_of_a_server_tool() -> None:
    assert normalize_for_server(SERVER).executor == "host"
    for label in ("host", "python", "worker-7"):
        assert normalize_for_server({**SERVER, "executor": label}).executor == "host"
    with pytest.raises(InvalidValue, match=r"^invalid_server_tool_declaration: executor"):
        normalize_for_server({**SERVER, "executor": "client"})
    assert normalize({**CLIENT, "executor": "client"}).executor == "client"
    assert normalize_for_server(SERVER).scope == normalize_for_server({**SERVER, "scope": "run"}).scope == "run"
    for scope in ("session", "", None):
        with pytest.raises(InvalidValue, match=r"^invalid_server_tool_declaration: scope"):
            normalize_for_server({**SERVER, "scope": scope})
    runtime = {"environment": "control_plane", "handle": object(), "token": "t", 3: "x"}
    assert normalize_for_server({**SERVER, "runtime": runtime}).runtime == {
        "environment": "control_plane",
        "token": "[redacted]",
    }


def test_a_scope_that_was_filled_in_can_be_told_from_one_that_was_declared() -> None:
    assert "scope" not in normalize_for_server(SERVER).model_fields_set
    assert "scope" in normalize_for_server({**SERVER, "scope": "run"}).model_fields_set


@pytest.mark.spec("API-SRV-07")
def test_fields_outside_the_envelope_are_checked_and_carried() -> None:
    own = {
        "client_context_bindings": {"site": "site_id"},
        "action_policy": "preview",
        "action_policy_chat": "direct",
        "categories": ["write"],
        "modes": ["chat"],
        "mandatory": True,
        "vendor": {"x": [1, None]},
        "note": None,
    }
    dumped = normalize_for_server({**SERVER, **own}).model_dump(mode="json")
    assert {name: dumped[name] for name in own} == own
    with pytest.raises(InvalidValue, match=r"vendor\.x\[0\]"):
        normalize_for_server({**SERVER, "vendor": {"x": [object()]}})
    for field, wrong in (("mandatory", "false"), ("categories", "write"), ("category", 3), ("action_policy", True)):
        with pytest.raises(InvalidValue, match=field):
            normalize_for_server({**SERVER, field: wrong})


@pytest.mark.spec("API-SRV-08", "API-SRV-09")
def test_requests_send_client_tools_to_the_strict_form_and_others_to_the_servers() -> None:
    assert normalize_for_conversation_request(SERVER).executor == "host"
    with pytest.raises(InvalidValue, match=r"^invalid_conversation_tool_declaration: source"):
        normalize_for_conversation_request(without(SERVER, "source"))
    with pytest.raises(InvalidValue, match=r"^invalid_server_tool_declaration: source"):
        normalize_for_server(without(SERVER, "source"))
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_declaration: name"):
        normalize_for_conversation_request({**SERVER, "executor": "client"})
    tool = normalize_for_conversation_request({"name": "client/pick"})
    assert tool.model_dump(include={"name", "source", "executor", "scope", "parameters", "description"}) == {
        "name": "client/pick",
        "source": "client",
        "executor": "client",
        "scope": "run",
        "parameters": {},
        "description": "client/pick",
    }
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_declaration: executor, scope, description"):
        normalize({"name": "client/pick"})
    with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_declaration: executor"):
        normalize_for_conversation_request({"name": "client/pick", "executor": "host"})


def test_a_request_record_carries_client_and_server_tools_alike() -> None:
    request = ConversationRequest.normalise({"messages": [], "tools": [{"name": "client/pick"}, SERVER]})
    dumped = json.loads(request.model_dump_json())["tools"]
    assert [(tool["name"], tool["executor"]) for tool in dumped] == [
        ("client/pick", "client"),
        ("ability/search_posts", "host"),
    ]
    with pytest.raises(InvalidValue, match=r"^tools\[0\]: invalid_runtime_tool_declaration: executor"):
        ConversationRequest.normalise({"messages": [], "tools": [{"name": "client/pick", "executor": "host"}]})


@pytest.mark.spec("API-PRM-02", "API-PRM-10")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parameter_bindings", ["user"]),
        ("parameter_bindings", {"user": "user"}),
        ("parameter_bindings", {"user": "elsewhere.user"}),
        ("parameter_bindings", {"user": "context."}),
        ("parameter_bindings", {"user": "context..id"}),
        ("parameter_bindings", {"user": {"source": "context"}}),
        ("parameter_bindings", {"user": {"source": "session", "path": "id"}}),
        ("parameter_bindings", {"user": {"source": "context", "path": "id", "required": True}}),
        ("parameter_bindings", {"user": {"source": "context", "path": "id", "authoritative": "yes"}}),
        ("parameter_bindings", {"": "context.user"}),
        ("client_context_bindings", "user"),
        ("client_context_bindings", [3]),
        ("client_context_bindings", {"user": 3}),
        ("parameter_defaults", ["x"]),
        ("parameter_defaults", {"x": object()}),
    ],
)
def test_binding_and_default_metadata_that_is_wrong_makes_the_declaration_invalid(field: str, value: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        normalize_for_server({**SERVER, field: value})
    assert caught.value.path == field
    fine = {"source": "context", "path": "user.id", "sensitive": True, "default": 3, "authoritative": True}
    bound = normalize_for_server({**SERVER, "parameter_bindings": {"a": fine, "b": "runtime_context.x.y"}}).plan
    assert bound.bindings["a"].model_dump() == {**fine, "default": "[redacted]"}
    assert (bound.bindings["b"].source, bound.bindings["b"].path) == ("runtime_context", "x.y")
    for source in ("context", "client_context", "caller_context", "runtime_context"):
        assert normalize_for_server({**SERVER, "parameter_bindings": {"a": f"{source}.k"}}).plan.bindings


def test_a_parameter_is_bound_once() -> None:
    with pytest.raises(InvalidValue, match="binds 'user', which parameter_bindings binds too"):
        normalize_for_server(
            {**SERVER, "parameter_bindings": {"user": "context.user"}, "client_context_bindings": ["user"]}
        )


def test_normalising_twice_changes_nothing() -> None:
    tool = normalize_for_server(
        {**SERVER, "parameter_bindings": {"u": "context.u"}, "parameter_defaults": {"token": "t"}}
    )
    assert normalize_for_server(tool) == tool
    assert normalize_for_server(json.loads(tool.model_dump_json())) == tool
