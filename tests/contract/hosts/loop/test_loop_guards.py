"""Guards of a run: going round in circles, results that are too large, what a host notes about results."""

import json
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.errors import InvalidValue
from wakeful.decisions.redaction import call_envelope, stable_hash
from wakeful.hosts import IdenticalFailureTracker, RuntimeToolDeclaration, SpinDetector, ToolResultTruncator
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

BROKEN = {"success": False, "error": "no route", "metadata": {"error_type": "unreachable"}}


@pytest.mark.spec("API-GRD-01")
async def test_the_same_call_again_and_again_stalls_the_run() -> None:
    host = Host(*[calling(search("same", api_key="sk-1"))] * 9)
    result = await host.mediated(max_turns=9, spin_detector=True)
    assert (result.status, result.completed, result.turn_count, len(host.calls)) == ("stalled", False, 3, 3)
    safe = call_envelope({"q": "same", "api_key": "sk-1"})
    details = {
        "tool_name": "ability/search",
        "parameters_hash": safe["parameters_sha256"],
        "signature_hash": stable_hash(["ability/search", safe["parameters"]]),
        "turn": 3,
        "repeat_count": 3,
        "threshold": 3,
    }
    assert host.payloads("loop_stalled") == [details] and result.stalled == details
    assert result.run_outcome.status == "stalled"
    other = Host(*[calling(search(str(number % 2))) for number in range(5)], {"content": "done"})
    assert (await other.mediated(max_turns=9, spin_detector={"threshold": 2})).completed, "never twice in a row"
    twice = Host(*[calling(search("same"))] * 9)
    assert (await twice.mediated(max_turns=9, spin_detector=SpinDetector(2))).turn_count == 2
    unguarded = Host(*[calling(search("same"))] * 4, {"content": "done"})
    assert (await unguarded.mediated(max_turns=9)).completed, "without a detector nothing stops it"
    with pytest.raises(InvalidValue, match="threshold: is a whole number, at least 2"):
        await Host().mediated(spin_detector={"threshold": 1})


async def test_a_batch_that_repeats_itself_stalls_too() -> None:
    host = Host(calling(search("x"), search("x"), search("x")), {"content": "never"})
    result = await host.mediated(spin_detector=True)
    assert (result.status, len(host.calls), len(host.seen)) == ("stalled", 3, 1)


@pytest.mark.spec("API-GRD-02")
async def test_a_call_that_fails_the_same_way_again_earns_a_word_to_the_model() -> None:
    host = Host(calling(search("x")), calling(search("x")), {"content": "I give up"})
    host.answers["x"] = BROKEN
    result = await host.mediated(identical_failure_tracker=True)
    (payload,) = host.payloads("identical_failure_nudged")
    safe = call_envelope({"q": "x"})
    words = payload.pop("message")
    assert payload == {
        "tool_name": "ability/search",
        "parameters_hash": safe["parameters_sha256"],
        "signature_hash": stable_hash(["ability/search", {"q": "x"}, "unreachable"]),
        "turn": 2,
        "repeat_count": 2,
        "threshold": 2,
        "error_code": "unreachable",
    }
    assert "failed 2 times in the same way" in words
    last = host.wire[-1]
    assert (last["role"], last["content"], last["type"]) == ("user", words, "text"), "after the result, before the turn"
    assert result.completed
    different = Host(calling(search("x")), calling(search("y")), {"content": "done"})
    different.answers = {"x": BROKEN, "y": BROKEN}
    await different.mediated(identical_failure_tracker=IdenticalFailureTracker(2))
    assert not different.payloads("identical_failure_nudged")
    with pytest.raises(InvalidValue, match="threshold: is a whole number, at least 2"):
        await Host().mediated(identical_failure_tracker={"threshold": 1})


@pytest.mark.parametrize(
    ("runtime", "status", "told", "nudged"),
    [({"duplicate_policy": "repeatable"}, "completed", 4, 0), ({}, "stalled", 3, 1)],
    ids=["repeatable", "not"],
)
@pytest.mark.spec("API-RTM-08")
async def test_a_tool_that_may_be_repeated_is_no_matter_for_the_guards(
    runtime: Any, status: str, told: int, nudged: int
) -> None:
    tools = {"ability/search": {**SEARCH, "runtime": runtime}}
    host = Host(*[calling(search("x"))] * 4, {"content": "done"})
    result = await host.mediated(max_turns=9, tool_declarations=tools, spin_detector=True)
    assert (result.status or "completed", len(host.calls)) == (status, told)
    failing = Host(*[calling(search("x"))] * 2, {"content": "done"})
    failing.answers["x"] = BROKEN
    await failing.mediated(tool_declarations=tools, identical_failure_tracker=True)
    assert len(failing.payloads("identical_failure_nudged")) == nudged
    engine = RuntimeToolDeclaration.model_validate({**SEARCH, "executor": "host", "runtime": runtime}).to_declaration()
    asked = scripted([{"calls": [{"name": "poll", "arguments": {}}]}] * 4 + ["done"], leftover="ignore")
    poll = tool(lambda: "not yet", name="poll", effect="pure", duplicate_policy=engine.duplicate_policy)
    ended = await run(Agent("any", asked, tools=[poll]), "go", store=MemoryStore(), budget=Budget(stall_repeats=3))
    assert (ended.stop_reason, ended.turn_count) == ("natural", 5) if runtime else ("stalled", 3)


@pytest.mark.spec("API-GRD-03")
async def test_an_oversized_result_is_replaced_everywhere_but_in_the_live_sink() -> None:
    big = {"text": "START" + "ä" * 6_000 + "TAIL"}
    cited = [{"source": "s", "excerpt": "x" * 5_000}, {"source": "TAIL", "excerpt": "x" * 5_000}]
    live: list[tuple[dict[str, Any], dict[str, Any]]] = []
    host = Host(calling(search("x", id="c1")), {"content": "done"})
    host.answers["x"] = {"success": True, "result": big, "metadata": {"citations": cited}}
    truncator = ToolResultTruncator(sink=lambda result, about: live.append((result, about)))
    result = await host.mediated(tool_result_truncator=truncator)
    original = len(json.dumps(big, ensure_ascii=False, separators=(",", ":")).encode())
    (payload,) = host.payloads("tool_result_truncated")
    assert payload == {
        "turn": 1,
        "tool_name": "ability/search",
        "tool_call_id": "c1",
        "original_bytes": original,
        "excerpt_bytes": 8192,
        "citations_dropped": 1,
    }
    (done,) = result.tool_execution_results
    shown = done["result"]["result"]
    assert set(shown) == {"truncated", "excerpt", "original_bytes", "excerpt_bytes"}
    assert (shown["truncated"], shown["original_bytes"], shown["excerpt_bytes"]) == (True, original, 8192)
    assert shown["excerpt"].startswith('{"text":"START')
    assert done["result"]["metadata"]["citations"] == cited[:1]
    assert json.loads(host.wire[-1]["content"]) == shown, "what the model reads"
    everywhere = repr((result.to_wire(), host.told, host.seen, [entry.fact for entry in await host.log()]))
    assert "START" in everywhere and "TAIL" not in everywhere
    assert [(seen["result"], about) for seen, about in live] == [(big, payload)]
    assert host.names.index("tool_result_truncated") < host.names.index("tool_result")
    small = Host(calling(search("x")), {"content": "done"})
    await small.mediated(tool_result_truncator=True)
    assert not small.payloads("tool_result_truncated")


async def test_a_mediators_result_is_kept_to_the_size_too_and_a_sink_that_raises_changes_nothing() -> None:
    def sink(result: Any, about: Any) -> None:
        raise OSError("full")

    def mediator(context: dict[str, Any]) -> dict[str, Any]:
        return {"action": "replace_result", "result": {"result": "x" * 100}}

    host = Host(calling(search()), {"content": "done"})
    result = await host.mediated(tool_result_truncator={"max_bytes": 10, "sink": sink}, pre_tool_mediator=mediator)
    assert result.tool_execution_results[0]["result"]["result"]["excerpt_bytes"] == 10
    assert host.payloads("observer_failed") == [{"surface": "tool_result_truncator", "error": "OSError: full"}]


@pytest.mark.spec("API-GRD-05")
async def test_a_host_may_note_something_about_a_result_and_its_failure_changes_nothing() -> None:
    def notes(execution: dict[str, Any], context: dict[str, Any]) -> dict[str, Any] | None:
        if execution["parameters"]["q"] == "broken":
            raise ValueError("cannot say")
        return {"rows": 3, "turn": "mine"} if execution["parameters"]["q"] == "x" else None

    host = Host(calling(search("x", id="c1"), search("y"), search("broken")), {"content": "done"})
    result = await host.mediated(post_tool_result_diagnostics=notes)
    first, second, third = result.tool_execution_results
    assert first["diagnostics"] == {"rows": 3, "turn": "mine"}
    assert "diagnostics" not in second and "diagnostics" not in third
    assert host.payloads("tool_result_diagnostics") == [
        {"tool_name": "ability/search", "tool_call_id": "c1", "turn": 1, "rows": 3}
    ]
    assert host.payloads("observer_failed") == [
        {"surface": "post_tool_result_diagnostics", "error": "ValueError: cannot say"}
    ]
    plain = Host(calling(search("x", id="c1"), search("y"), search("broken")), {"content": "done"})
    without = await plain.mediated()
    assert [entry["result"] for entry in result.tool_execution_results] == [
        entry["result"] for entry in without.tool_execution_results
    ]
    assert (result.messages, result.completed) == (without.messages, True)


async def test_a_run_of_one_turn_is_looked_at_too() -> None:
    host = Host(calling(search("x"), search("x")))
    tools = {"tool_executor": host, "tool_declarations": {"ability/search": SEARCH}}
    result = await host.run(**tools, should_continue=None, spin_detector={"threshold": 2})
    assert (result.status, result.turn_count) == ("stalled", 1)
