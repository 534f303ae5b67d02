"""The result of a run: built from the log, safe to keep, enough to replay."""

import json
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.decisions.redaction import stable_hash
from wakeful.hosts import ConversationResult


@pytest.mark.spec("API-RES-01", "API-RES-03")
@pytest.mark.parametrize(
    "turns", [[{"content": "x"}], [calling(search())], [RuntimeError("no")], ["junk"], [{}]], ids=repr
)
async def test_the_loop_always_returns_a_valid_versioned_result(turns: list[Any]) -> None:
    wire = (await Host(*turns).mediated(max_turns=1)).to_wire()
    assert (wire["schema"], wire["version"]) == ("wakeful.conversation-result", 1)
    assert {"turn_count", "final_content", "usage", "request_metadata", "completed"} <= set(wire)
    assert ConversationResult.normalise(json.loads(json.dumps(wire))).to_wire() == wire


@pytest.mark.spec("API-RES-04")
async def test_final_content_is_the_last_assistant_text_and_nothing_else() -> None:
    spoken = await Host(calling(search(), content="first"), calling(search())).mediated(max_turns=2)
    assert spoken.final_content == "first"
    assert spoken.messages[-1].type == "tool_result"
    assert (await Host(calling(search())).mediated(max_turns=1)).final_content == ""


@pytest.mark.spec("API-RES-05")
async def test_usage_sums_numbers_and_keeps_the_latest_of_the_rest() -> None:
    host = Host(
        {**calling(search()), "usage": {"prompt_tokens": 3, "cost": 0.25, "model": "a", "cached": True}},
        {"content": "x", "usage": {"prompt_tokens": 4, "completion_tokens": 2, "cost": 0.5, "model": "b"}},
    )
    assert (await host.mediated()).usage == {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 0,
        "cost": 0.75,
        "model": "b",
        "cached": True,
    }
    assert (await Host({"content": "x"}).run()).usage == {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
    }


@pytest.mark.spec("API-RES-06")
async def test_request_metadata_is_the_latest_turns() -> None:
    host = Host(
        {**calling(search()), "request_metadata": {"id": "one", "only": 1}},
        {**calling(search()), "request_metadata": {"id": "two"}},
        {"content": "x"},
    )
    assert (await host.mediated()).request_metadata == {"id": "two"}


@pytest.mark.spec("API-RES-08", "API-RES-09")
async def test_an_execution_has_its_fields_with_redacted_parameters_and_their_hash() -> None:
    host = Host(calling(search("x", id="c1", api_key="sk-1", content="see")), {"content": "done"})
    host.answers = {"x": {"success": True, "result": {"n": 1}, "metadata": {"k": 1}}}
    result = await host.mediated()
    safe = {"q": "x", "api_key": "[redacted]", "content": "see"}
    assert result.tool_execution_results == (
        {
            "tool_name": "ability/search",
            "tool_call_id": "c1",
            "parameters": safe,
            "parameters_sha256": stable_hash(safe),
            "parameters_redacted": True,
            "result": {
                "success": True,
                "tool_name": "ability/search",
                "metadata": {"k": 1},
                "result": {"n": 1},
                "runtime": {"completion_signal": "progress"},
            },
            "runtime": {"completion_signal": "progress"},
            "turn_count": 1,
        },
    )
    (call,) = [message for message in result.messages if message.type == "tool_call"]
    assert call.payload == {"tool_name": "ability/search", "parameters": safe, "turn": 1}
    assert call.metadata == {"tool_call_id": "c1", "parameters_sha256": stable_hash(safe), "parameters_redacted": True}
    assert "sk-1" not in json.dumps(result.to_wire())
    assert host.calls[0].parameters["api_key"] == "sk-1"


async def test_what_the_tool_itself_calls_sensitive_is_redacted_everywhere() -> None:
    host = Host(calling({"name": "ability/search", "parameters": {"q": "pin 4711"}}), {"content": "done"})
    tools = {"ability/search": {**SEARCH, "sensitive_parameters": ["q"]}}
    result = await host.mediated(tool_declarations=tools)
    assert "4711" not in json.dumps(result.to_wire()) + repr(host.told)
    assert "4711" in repr(host.calls)


@pytest.mark.spec("API-RES-10", "API-AUD-01")
async def test_every_mediated_call_has_one_audit_entry_beside_its_result() -> None:
    host = Host(calling(search("x", api_key="sk-1"), {"name": "ability/nope"}, search("bad")), {"content": "done"})
    host.answers = {"bad": ValueError("boom")}
    result = await host.mediated()
    assert [
        (audit.tool_call_id, audit.success, audit.error_type, audit.tool_source, audit.turn_count)
        for audit in result.tool_audit_events
    ] == [
        ("tool-call-1-1", True, None, "abilities", 1),
        ("tool-call-1-2", False, "tool_not_found", None, 1),
        ("tool-call-1-3", False, "executor_exception", "abilities", 1),
    ]
    for audit, done in zip(result.tool_audit_events, result.tool_execution_results, strict=True):
        assert audit.tool_call_id == done["tool_call_id"]
        assert audit.parameters_sha256 == done["parameters_sha256"]
        assert audit.result_sha256 == stable_hash(done["result"])


async def test_the_same_run_is_audited_the_same() -> None:
    runs = [
        await Host(calling(search("x", id="c"), {"name": "ability/nope", "id": "d"}), {"content": "done"}).mediated()
        for _ in range(2)
    ]
    assert runs[0].tool_audit_events == runs[1].tool_audit_events


@pytest.mark.spec("API-AUD-05")
async def test_the_audit_hook_may_change_what_is_hashed_and_neither_break_nor_reveal_anything() -> None:
    async def audited(hook: Any, key: str = "sk-1") -> str:
        host = Host(calling(search("x", api_key=key)), {"content": "done"})
        if hook is not None:
            host.hooks.register("tool_audit_parameters", hook)
        return (await host.mediated()).tool_audit_events[0].parameters_sha256

    default = await audited(None)
    assert default == stable_hash({"q": "x", "api_key": "[redacted]"})
    shortened = await audited(lambda safe, raw, name, declaration, context: {"q": safe["q"]})
    assert shortened == stable_hash({"q": "x"})
    assert await audited(lambda *_: "not an object") == default

    def broken(*_: Any) -> Any:
        raise ValueError("no")

    def revealing(safe: Any, raw: Any, name: Any, declaration: Any, context: Any) -> Any:
        return {**safe, "elsewhere": raw["api_key"]}

    assert await audited(broken) == default
    assert await audited(revealing) == await audited(revealing, key="sk-2")


@pytest.mark.spec("API-RES-16")
async def test_observability_shows_shapes_and_never_contents() -> None:
    host = Host(calling(search("x", n=1), search("list"), {"name": "ability/nope"}), {"content": "done"})
    host.answers = {"x": {"success": True, "result": {"b": "secret", "a": 1}}, "list": {"success": True, "result": [1]}}
    result = await host.mediated()
    first, second, third = (call.model_dump(exclude_none=True) for call in result.tool_observability.calls)
    assert first == {
        "sequence": 1,
        "turn": 1,
        "tool_call_id": "tool-call-1-1",
        "tool_name": "ability/search",
        "status": "succeeded",
        "arguments": {"keys": ("n", "q"), "count": 2, "redacted": True},
        "result": {"type": "object", "keys": ("a", "b"), "count": 2},
    }
    assert second["result"] == {"type": "array", "count": 1}
    assert (third["status"], "result" in third) == ("rejected", False)
    reported = await Host({"content": "x", "provider_diagnostics": [{"ms": 3}], "structured_output": {"a": 1}}).run()
    assert (reported.provider_diagnostics, reported.structured_output) == (({"ms": 3},), {"a": 1})


@pytest.mark.spec("API-RES-19")
async def test_transcript_pairing_and_stop_can_be_rebuilt_from_the_stored_result_alone() -> None:
    host = Host(calling(search("a", id="c1"), search("b", id="c2"), content="hm"), calling(search("c", id="c3")))
    stored = json.loads(json.dumps((await host.mediated(max_turns=2)).to_wire()))
    assert (stored["schema"], stored["version"]) == ("wakeful.conversation-result", 1)
    said = [message["content"] for message in stored["messages"] if message["type"] == "text"]
    pairs: dict[str, list[str]] = {}
    for message in stored["messages"]:
        if "tool_call_id" in message["metadata"]:
            pairs.setdefault(message["metadata"]["tool_call_id"], []).append(message["type"])
    assert said == ["hello", "hm"]
    assert pairs == {call_id: ["tool_call", "tool_result"] for call_id in ("c1", "c2", "c3")}
    assert (stored["completed"], stored["status"], stored["run_outcome"]["stop_reason"]) == (
        False,
        "budget_exceeded",
        "max_turns",
    )
