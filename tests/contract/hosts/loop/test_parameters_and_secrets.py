"""Where the parameters of a call come from, and which of them anybody may see."""

import json
from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling
from wakeful.hosts import ConversationLoop, ConversationResult

HIDDEN = "[redacted]"


def declared(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "name": "shop/look",
        "source": "shop",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": properties, "required": required or []},
        **more,
    }


TEXTS = {name: {"type": "string"} for name in ("q", "page", "customer", "region")}
BOUND = declared(
    TEXTS,
    ["q", "customer"],
    parameter_defaults={"region": "eu", "page": "start"},
    parameter_bindings={
        "customer": {"source": "context", "path": "customer.id", "authoritative": True, "default": "nobody"},
        "region": "context.place.region",
    },
    client_context_bindings={"page": "where"},
)


async def looked(
    tool: dict[str, Any], given: dict[str, Any], result: Any = None, **context: Any
) -> tuple[Host, ConversationResult]:
    host = Host(calling({"name": "shop/look", "parameters": given, "id": "c1"}), {"content": "done"})
    host.answers[""] = host.answers[given.get("q", "")] = result or {"success": True, "result": "seen"}
    options = {
        "tool_executor": host,
        "tool_declarations": {"shop/look": tool},
        "context": context,
        "max_turns": 2,
        "on_event": host.on_event,
    }
    loop = ConversationLoop(store=host.store, hooks=host.hooks)
    return host, await loop.run([{"role": "user", "content": "go"}], host.turn_runner, options)


async def executed(tool: dict[str, Any], given: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What the executor gets."""
    host, _ = await looked(tool, given, **context)
    parameters: dict[str, Any] = host.calls[0].parameters
    return parameters


@pytest.mark.spec("API-PRM-01", "API-PRM-03", "API-PRM-05")
async def test_later_sources_win_and_what_is_authoritative_wins_over_the_model() -> None:
    known = {"customer": {"id": "c7"}, "place": {"region": "us"}, "client_context": {"where": "/orders"}}
    assert await executed(BOUND, {"q": "x"}, **known) == {"q": "x", "customer": "c7", "region": "us", "page": "/orders"}
    written = {"q": "x", "customer": "c8", "region": "ap", "page": "/else"}
    assert await executed(BOUND, written, **known) == {**written, "customer": "c7"}
    assert await executed(BOUND, {"q": "x"}) == {"q": "x", "customer": "nobody", "region": "eu", "page": "start"}
    empty = {"place": {"region": ""}, "client_context": {"where": None}}
    assert await executed(BOUND, {"q": "x"}, **empty) == await executed(BOUND, {"q": "x"})
    by_name = declared(TEXTS, client_context_bindings=["page"])
    assert await executed(by_name, {}, client_context={"page": "/p"}) == {"page": "/p"}


@pytest.mark.spec("API-PRM-04", "API-PRM-08")
async def test_a_context_fills_what_is_bound_and_nothing_by_name_alone() -> None:
    for name in ("customer", "api_key"):
        tool = declared({name: {"type": "string"}}, [name])
        host, result = await looked(tool, {}, **{name: "from the context"})
        assert host.calls == []
        (entry,) = result.tool_execution_results
        why = entry["result"]["metadata"]
        assert (why["error_type"], why["missing_parameters"]) == ("missing_required_parameters", [name])
    for blank in (None, ""):
        host, result = await looked(declared({"q": {"required": True}}), {"q": blank})
        assert host.calls == []
        assert result.tool_execution_results[0]["result"]["metadata"]["missing_parameters"] == ["q"]


@pytest.mark.spec("API-PRM-06", "API-PRM-07")
async def test_what_is_not_the_models_to_give_is_not_shown_to_it_and_no_default_is_a_secret() -> None:
    seen: list[dict[str, Any]] = []

    async def adapter(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        return {"content": "done"}

    tool = declared(
        {**TEXTS, "token": {"type": "string"}},
        ["q", "customer"],
        parameter_bindings={"customer": {"source": "context", "path": "id", "authoritative": True}},
        parameter_defaults={"token": "s3cret", "region": "eu"},
    )
    host = Host()
    options = {"provider_turn_adapter": adapter, "tool_declarations": {"shop/look": tool}, "tool_executor": host}
    await ConversationLoop(store=host.store).run([{"role": "user", "content": "go"}], None, options)
    (shown,) = seen[0]["tool_declarations"]
    assert "customer" not in shown["parameters"]["properties"] and shown["parameters"]["required"] == ["q"]
    assert shown["parameter_defaults"] == {"token": HIDDEN, "region": "eu"}
    assert await executed(tool, {"q": "x"}, id="c7") == {"q": "x", "customer": "c7", "region": "eu"}


SECRET_NAMES = ("api_key", "Authorization", "auth-token", "bearer", "cookie", "credential", "nonce", "password")


@pytest.mark.spec("API-RED-01", "API-RED-02", "API-RED-04", "API-RED-05")
async def test_what_is_named_like_a_secret_is_hidden_at_every_depth_and_counts_are_not() -> None:
    given = {
        "q": "x",
        **dict.fromkeys((*SECRET_NAMES, "privateKey", "client_secret"), "hunter2"),
        "deep": [{"password": "hunter2", "plain": "seen"}],
        "max_tokens": 12,
    }
    host, result = await looked(declared({"q": {"type": "string"}}), given)
    assert host.calls[0].parameters == given
    (entry,) = result.tool_execution_results
    shown = entry["parameters"]
    assert {name: shown[name] for name in (*SECRET_NAMES, "privateKey", "client_secret")} == dict.fromkeys(
        (*SECRET_NAMES, "privateKey", "client_secret"), HIDDEN
    )
    assert (shown["deep"], shown["max_tokens"]) == ([{"password": HIDDEN, "plain": "seen"}], 12)
    assert "hunter2" not in json.dumps(result.to_wire()) + json.dumps(host.told)


FLAGS = ("sensitive", "x-sensitive", "secret", "writeOnly")


@pytest.mark.spec("API-RED-03")
@pytest.mark.parametrize(
    "tool",
    [
        declared({"pin": {"type": "string"}}, sensitive_parameters=["pin"]),
        declared({"pin": {"type": "string"}}, parameter_sensitivity={"pin": True}),
        *(declared({"pin": {"type": "string", flag: True}}) for flag in FLAGS),
        declared({"pin": {"type": "string", "format": "password"}}),
    ],
    ids=["list", "map", *FLAGS, "format"],
)
async def test_what_a_tool_declares_to_be_a_secret_is_hidden(tool: dict[str, Any]) -> None:
    host, result = await looked(tool, {"q": "x", "pin": "0000"})
    assert host.calls[0].parameters["pin"] == "0000"
    assert result.tool_execution_results[0]["parameters"] == {"q": "x", "pin": HIDDEN}


@pytest.mark.spec("API-RED-06", "API-RED-07", "API-AUD-04")
async def test_the_hash_of_a_call_covers_what_is_shown_of_it_in_any_order() -> None:
    async def envelope(given: dict[str, Any]) -> tuple[dict[str, Any], str]:
        _, result = await looked(declared({"q": {"type": "string"}}), given)
        (entry,), (audit,) = result.tool_execution_results, result.tool_audit_events
        assert entry["parameters_redacted"] is True
        return entry, audit.parameters_sha256 or ""

    one, audited = await envelope({"q": "x", "n": {"a": 1, "b": 2}, "token": "first"})
    two, audited_too = await envelope({"token": "second", "n": {"b": 2, "a": 1}, "q": "x"})
    assert one["parameters_sha256"] == two["parameters_sha256"] and audited == audited_too
    assert one["parameters_sha256"].startswith("sha256:") and len(one["parameters_sha256"]) == 71
    other, audited_other = await envelope({"q": "y", "n": {"a": 1, "b": 2}, "token": "first"})
    assert other["parameters_sha256"] != one["parameters_sha256"] and audited_other != audited


@pytest.mark.spec("API-AUD-03", "API-AUD-06")
async def test_an_audit_names_the_class_of_a_failure_and_its_hash_covers_the_result() -> None:
    async def audit(result: Any, given: dict[str, Any] | None = None) -> Any:
        _, ran = await looked(declared({"q": {"type": "string"}}, ["q"]), given or {"q": "x"}, result)
        return ran.tool_audit_events[0]

    said, same = await audit({"success": True, "result": {"n": 1}}), await audit({"success": True, "result": {"n": 1}})
    other = await audit({"success": True, "result": {"n": 2}})
    assert said.result_sha256 == same.result_sha256 != other.result_sha256
    failed = await audit({"success": False, "error": "no"})
    assert failed.result_sha256 != (await audit({"success": False, "error": "never"})).result_sha256
    assert (await audit(RuntimeError("no"))).error_type == "executor_exception"
    assert (await audit(None, {"q": ""})).error_type == "missing_required_parameters"


@pytest.mark.spec("API-RTM-01", "API-RTM-02", "API-RTM-03")
async def test_the_runtime_hints_of_a_tool_and_of_a_result_are_merged_and_cleaned() -> None:
    hints = {"duplicate_policy": "repeatable", "completion_signal": "progress", "environment": "runtime_local"}
    tool = declared({"q": {"type": "string"}}, runtime={**hints, "nested": {"token": "s3cret", "list": [1, "a"]}})
    answer = {"success": True, "result": 1, "runtime": {"completion_signal": "none", "bad": object(), "deep": {"x": 1}}}
    host, result = await looked(tool, {"q": "x"}, answer)
    (entry,) = result.tool_execution_results
    assert entry["runtime"] == {
        **hints,
        "completion_signal": "none",
        "nested": {"token": HIDDEN, "list": [1, "a"]},
        "deep": {"x": 1},
    }
    assert host.declared[0].runtime["duplicate_policy"] == "repeatable"
