"""Calls inside the loop: paired, ordered, each with one result."""

import asyncio
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.contracts.transcript import check_pairing


@pytest.mark.spec("API-MED-02", "API-RES-07")
async def test_the_transcript_grows_by_text_then_call_and_result_in_pairs() -> None:
    host = Host(calling(search("a", id="c1"), search("b", id="c2"), content="let me see"), {"content": "done"})
    result = await host.mediated()
    assert [(message.type, message.metadata.get("tool_call_id")) for message in result.messages] == [
        ("text", None),
        ("text", None),
        ("tool_call", "c1"),
        ("tool_result", "c1"),
        ("tool_call", "c2"),
        ("tool_result", "c2"),
        ("text", None),
    ]
    assert {message.schema_id for message in result.messages} == {"wakeful.message"}
    check_pairing(result.messages)


@pytest.mark.spec("API-MED-03")
async def test_a_call_without_an_id_or_with_one_that_was_used_gets_one_of_its_own() -> None:
    before = [
        {"type": "tool_call", "content": "", "payload": {"tool_name": "a/b"}, "metadata": {"tool_call_id": "old"}},
        {"type": "tool_result", "content": "", "payload": {"tool_name": "a/b"}, "metadata": {"tool_call_id": "old"}},
    ]
    host = Host(calling(search(), search(id="c1"), search(id="c1"), search(id="old")), calling(search(id="c1")), {})
    result = await host.mediated(before)
    assert [entry["tool_call_id"] for entry in result.tool_execution_results] == [
        "tool-call-1-1",
        "c1",
        "tool-call-1-3",
        "tool-call-1-4",
        "tool-call-2-1",
    ]
    check_pairing(result.messages)


@pytest.mark.spec("API-MED-06")
async def test_malformed_calls_get_their_own_failed_result_and_sink_nobody() -> None:
    junk = [
        "junk",
        {"parameters": {}},
        {"name": "ability/search", "parameters": "[1"},
        {"name": "ability/search", "parameters": [1]},
    ]
    host = Host(calling(*junk, search("fine", id="ok")), {"content": "done"})
    result = await host.mediated()
    assert [entry["result"]["metadata"].get("error_type") for entry in result.tool_execution_results] == [
        *["invalid_tool_call"] * 4,
        None,
    ]
    assert [call.parameters for call in host.calls] == [{"q": "fine"}]
    ids = [entry["tool_call_id"] for entry in result.tool_execution_results]
    assert ids == [audit.tool_call_id for audit in result.tool_audit_events]
    ended = [event.tool_call_id for event in result.tool_events if event.type == "tool_result"]
    assert ids == ended
    assert ids == [payload["tool_call_id"] for payload in host.payloads("tool_result")]
    assert ids == [message.tool_call_id for message in result.messages if message.type == "tool_result"]
    assert result.completed


@pytest.mark.spec("API-MED-09")
async def test_a_results_message_is_its_json_or_its_error() -> None:
    host = Host(calling(search("good"), search("bad")), {"content": "done"})
    host.answers = {
        "good": {"success": True, "result": {"name": "Jürgen"}},
        "bad": {"success": False, "error": "no such thing"},
    }
    result = await host.mediated()
    shown = [message.content for message in result.messages if message.type == "tool_result"]
    assert shown == ['{"name":"Jürgen"}', "no such thing"]


async def test_the_model_sees_its_own_real_parameters_in_later_turns_and_nobody_else_does() -> None:
    host = Host(calling(search("x", api_key="sk-1")), {"content": "done"})
    result = await host.mediated()
    (call,) = [message for message in host.wire if message["type"] == "tool_call"]
    assert call["payload"]["parameters"] == {"q": "x", "api_key": "sk-1"}
    assert host.calls[0].parameters == {"q": "x", "api_key": "sk-1"}
    assert "sk-1" not in result.model_dump_json()


async def test_an_unknown_name_and_a_missing_parameter_are_results_the_model_reads() -> None:
    host = Host(calling({"name": "ability/nope"}, {"name": "ability/search"}), {"content": "done"})
    result = await host.mediated()
    unknown, missing = (entry["result"] for entry in result.tool_execution_results)
    assert (unknown["error"], unknown["metadata"]["error_type"]) == ("Tool 'ability/nope' not found", "tool_not_found")
    assert missing["metadata"]["error_type"] == "missing_required_parameters"
    assert missing["metadata"]["missing_parameters"] == ["q"]
    assert not host.calls
    assert [call.status for call in result.tool_observability.calls] == ["rejected", "rejected"]


async def test_calls_without_anybody_to_run_them_fail_and_do_not_disappear() -> None:
    result = await Host(calling(search())).run()
    (entry,) = result.tool_execution_results
    assert entry["result"]["metadata"]["error_type"] == "tool_mediation_disabled"


@pytest.mark.spec("API-RTM-06", "API-RTM-07")
async def test_runtime_hints_are_copied_and_what_the_executor_says_goes_over_them_for_that_result() -> None:
    host = Host(calling(search("a"), search("b")), {"content": "done"})
    host.answers = {"a": {"success": True, "result": 1, "runtime": {"environment": "control_plane"}}}
    result = await host.mediated()
    first, second = result.tool_execution_results
    assert (
        first["runtime"]
        == {"completion_signal": "progress", "environment": "control_plane"}
        == first["result"]["runtime"]
    )
    assert second["runtime"] == {"completion_signal": "progress"} == second["result"]["runtime"]
    assert host.declared[0].runtime == {"completion_signal": "progress"}


@pytest.mark.spec("API-MED-07")
async def test_results_keep_the_models_order_even_when_calls_overlap_and_finish_the_other_way_round() -> None:
    second_done = asyncio.Event()
    finished: list[str] = []

    class Overlapping:
        async def execute(self, call: Any, declaration: Any, context: Any) -> dict[str, Any]:
            if call.parameters["q"] == "first":
                await second_done.wait()
            finished.append(call.parameters["q"])
            second_done.set()
            return {"success": True, "result": call.parameters["q"]}

    host = Host(calling(search("first"), search("second")), {"content": "done"})
    tools = {"ability/search": {**SEARCH, "effect": "pure"}}
    result = await host.mediated(tool_executor=Overlapping(), tool_declarations=tools)
    assert finished == ["second", "first"]
    assert [entry["result"]["result"] for entry in result.tool_execution_results] == ["first", "second"]
    assert [message.content for message in result.messages if message.type == "tool_result"] == ['"first"', '"second"']


@pytest.mark.spec("API-MED-01")
async def test_mediation_needs_an_executor_and_a_declaration_that_is_fit() -> None:
    tools = {"ability/search": SEARCH}
    for executor, declared in ((True, {}), (False, tools), (False, {})):
        host = Host(calling(search()), {"content": "never asked"})
        result = await host.run(tool_executor=host if executor else None, tool_declarations=declared, max_turns=5)
        assert (host.calls, result.turn_count) == ([], 1)
    host = Host(calling(search()), {"content": "done"})
    result = await host.run(tool_executor=host, tool_declarations=tools, max_turns=5)
    assert [call.tool_name for call in host.calls] == ["ability/search"]
    assert (result.turn_count, result.final_content) == (2, "done")
