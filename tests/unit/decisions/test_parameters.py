"""Parameters, put together: who wins, what is discarded, what counts as missing."""

from typing import Any

import pytest

from wakeful.contracts.bindings import ParameterPlan, read_binding
from wakeful.decisions.parameters import assemble, missing_parameters
from wakeful.decisions.redaction import call_envelope
from wakeful.hosts.tools.declaration_reader import normalize_for_server
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration


def declared(**fields: Any) -> RuntimeToolDeclaration:
    return normalize_for_server({"name": "ability/x", "source": "s", "description": "d", **fields})


def put_together(tool: RuntimeToolDeclaration, model: dict[str, Any] | None = None, **contexts: Any) -> dict[str, Any]:
    return assemble(tool.plan, model or {}, contexts).arguments


def owned(place: str, **more: Any) -> dict[str, Any]:
    source, _, path = place.partition(".")
    return {"source": source, "path": path, "authoritative": True, **more}


@pytest.mark.spec("API-PRM-01")
def test_later_wins_defaults_then_context_then_the_model_then_what_is_authoritative() -> None:
    tool = declared(
        parameter_defaults={"a": "default", "b": "default", "c": "default", "d": "default"},
        parameter_bindings={"b": "context.v", "c": "context.v", "d": owned("context.v")},
    )
    assert put_together(tool, {"c": "model", "d": "model"}, context={"v": "context"}) == {
        "a": "default",
        "b": "context",
        "c": "model",
        "d": "context",
    }


def test_each_context_is_read_by_its_own_name_and_path() -> None:
    tool = declared(
        parameter_bindings={
            "a": "context.user.id",
            "b": "client_context.page",
            "c": "caller_context.x",
            "d": "runtime_context.x",
            "e": "context.user.nope.deeper",
        }
    )
    contexts = {
        "context": {"user": {"id": 1}},
        "client_context": {"page": "/"},
        "caller_context": {"x": [2]},
        "runtime_context": None,
    }
    assert put_together(tool, **contexts) == {"a": 1, "b": "/", "c": [2]}


@pytest.mark.spec("API-PRM-03")
def test_client_context_is_bound_by_the_same_name_or_by_a_map() -> None:
    client = {"page": "/p", "site_id": 7}
    assert put_together(declared(client_context_bindings=["page"]), client_context=client) == {"page": "/p"}
    assert put_together(declared(client_context_bindings={"site": "site_id"}), client_context=client) == {"site": 7}


@pytest.mark.spec("API-PRM-04")
def test_a_context_fills_nothing_that_is_not_bound() -> None:
    schema = {"properties": {"api_key": {"type": "string"}, "q": {"type": "string"}}, "required": ["api_key", "q"]}
    ambient = {"api_key": "s3cr3t", "token": "t", "authorization": "a", "q": "x"}
    tool = declared(parameters=schema)
    found = assemble(tool.plan, {}, dict.fromkeys(("context", "client_context", "caller_context"), ambient))
    assert (found.arguments, found.missing) == ({}, ("api_key", "q"))
    bound = declared(parameters=schema, parameter_bindings={"q": "context.q"})
    assert assemble(bound.plan, {}, {"context": ambient}).missing == ("api_key",)
    assert put_together(bound, context=ambient) == {"q": "x"}


@pytest.mark.spec("API-PRM-05")
@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_an_empty_value_of_a_context_is_passed_over_unless_it_is_authoritative(nothing: Any) -> None:
    tool = declared(parameter_defaults={"a": "default"}, parameter_bindings={"a": "context.v"})
    assert put_together(tool, context={"v": nothing}) == {"a": "default"}
    assert put_together(tool, context={"v": 0}) == {"a": 0}
    assert put_together(tool, context={"v": False}) == {"a": False}
    strict = declared(parameter_defaults={"a": "default"}, parameter_bindings={"a": owned("context.v")})
    assert put_together(strict, context={"v": ""}) == {"a": ""}


@pytest.mark.spec("API-PRM-06")
def test_an_authoritative_parameter_is_never_the_models_to_give_or_to_see() -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "customer": {"type": "string", "required": True}},
        "required": ["q", "customer"],
        "allOf": [{"required": ["customer"]}],
        "anyOf": [{"properties": {"customer": {"minLength": 1}}}, {"required": ["q", "customer"]}],
        "oneOf": [{"properties": {"customer": {}}, "required": ["customer"]}],
    }
    model = {"q": "x", "customer": "somebody else"}

    def given(context: dict[str, Any], *, own: Any = None, default: Any = None) -> dict[str, Any]:
        binding = owned("context.customer", **({"default": own} if own is not None else {}))
        defaults = {"customer": default} if default is not None else {}
        tool = declared(parameters=schema, parameter_bindings={"customer": binding}, parameter_defaults=defaults)
        found = assemble(tool.plan, model, {"context": context})
        assert found.discarded == ("customer",)
        return found.arguments

    assert given({"customer": "c1"}, own="own", default="default") == {"q": "x", "customer": "c1"}
    assert given({}, own="own", default="default") == {"q": "x", "customer": "own"}
    assert given({}, default="default") == {"q": "x", "customer": "default"}
    assert given({}) == {"q": "x"}
    tool = declared(parameters=schema, parameter_bindings={"customer": owned("context.customer")})
    assert "customer" not in str(tool.visible_schema)
    assert tool.visible_schema["required"] == ["q"]
    assert "customer" in str(tool.input_schema)


def test_inversion_a_plain_binding_leaves_the_parameter_to_the_model() -> None:
    """Taken out: without `authoritative` the model's word wins and its schema shows the parameter."""
    tool = declared(
        parameters={"properties": {"customer": {"type": "string"}}},
        parameter_bindings={"customer": "context.customer"},
    )
    assert put_together(tool, {"customer": "mine"}, context={"customer": "c1"}) == {"customer": "mine"}
    assert "customer" in tool.visible_schema["properties"]


@pytest.mark.spec("API-PRM-07")
def test_a_default_is_no_place_for_a_secret_and_a_mask_is_never_sent_as_a_value() -> None:
    tool = declared(
        parameters={"properties": {"pin": {"type": "string", "x-sensitive": True}}},
        sensitive_parameters=["card"],
        parameter_defaults={
            "api_key": "s3cr3t",
            "pin": "1234",
            "card": "4242",
            "limit": 3,
            "auth": {"token": "t", "kind": "basic"},
            "headers": [{"cookie": "c"}],
        },
    )
    assert tool.parameter_defaults == {
        "api_key": "[redacted]",
        "pin": "[redacted]",
        "card": "[redacted]",
        "limit": 3,
        "auth": {"token": "[redacted]", "kind": "basic"},
        "headers": [{"cookie": "[redacted]"}],
    }
    assert put_together(tool) == {"limit": 3, "auth": {"kind": "basic"}, "headers": [{}]}
    assert "s3cr3t" not in tool.model_dump_json()
    bound = declared(parameter_bindings={"token": owned("context.t", default="s3cr3t")})
    assert "s3cr3t" not in bound.model_dump_json()
    assert put_together(bound) == {}
    assert put_together(bound, context={"t": "real"}) == {"token": "real"}


@pytest.mark.spec("API-PRM-08")
def test_required_names_come_from_the_list_and_from_the_properties() -> None:
    tool = declared(parameters={"properties": {"a": {}, "b": {"required": True}, "c": {}}, "required": ["a"]})
    assert tool.required_parameters == ("a", "b")
    for value in (None, ""):
        assert missing_parameters(tool.required_parameters, {"a": value, "b": 1}) == ("a",)
    assert missing_parameters(tool.required_parameters, {"b": 0}) == ("a",)
    assert missing_parameters(tool.required_parameters, {"a": False, "b": 0}) == ()


@pytest.mark.spec("API-RED-03")
def test_the_value_of_a_sensitive_binding_is_redacted_wherever_the_parameter_is_shown() -> None:
    tool = declared(parameter_bindings={"account": {"source": "context", "path": "a", "sensitive": True}})
    found = assemble(tool.plan, {}, {"context": {"a": "DE123"}})
    assert (found.arguments, found.sensitive_paths) == ({"account": "DE123"}, ("account",))
    assert call_envelope(found.arguments, tool.to_declaration())["parameters"] == {"account": "[redacted]"}


def test_a_live_object_cannot_become_a_parameter() -> None:
    found = assemble(ParameterPlan(bindings={"a": read_binding("context.db")}), {}, {"context": {"db": object()}})
    assert found.arguments == {}
    assert found.errors == ("a is bound to context.db, which cannot be a parameter: a object is not JSON-serialisable",)


def test_nothing_that_was_given_is_changed() -> None:
    model, context = {"a": [1]}, {"v": {"deep": [1]}}
    tool = declared(parameter_bindings={"b": "context.v"})
    arguments = put_together(tool, model, context=context)
    arguments["b"]["deep"].append(2)
    assert (model, context) == ({"a": [1]}, {"v": {"deep": [1]}})
