"""Options: read whole, refused by name."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host, calling, search
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.loop.options import (
    NAMES,
    HostToolOptions,
    ProviderOptions,
    TranscriptOptions,
    TurnGuards,
    TurnLimits,
    read_options,
)

TABLE = """max_turns budgets context should_continue compaction_policy summarizer tool_executor tool_declarations
pre_tool_mediator completion_policy transcript_lock transcript_lock_store transcript_session_id session_id transcript_id
transcript_lock_ttl transcript_persister runtime_tool_request_store runtime_tool_store on_event interrupt_source request
run_id provider_turn_adapter on_provider_delta tool_call_rules post_tool_result_diagnostics spin_detector
identical_failure_tracker tool_result_truncator structured_output"""


@pytest.mark.spec("API-LOOP-02", "API-LOOP-03")
async def test_the_options_have_their_defaults_and_an_unknown_name_is_an_error() -> None:
    assert set(NAMES) == set(TABLE.split())
    chosen = read_options(dict.fromkeys(set(NAMES) - {"transcript_lock_ttl"}))
    assert (chosen.limits, chosen.guards) == (TurnLimits(one_turn=True), TurnGuards())
    assert (chosen.tools, chosen.transcript, chosen.provider) == (
        HostToolOptions(),
        TranscriptOptions(),
        ProviderOptions(),
    )
    assert (chosen.limits.max_turns, dict(chosen.context), chosen.transcript.lock_ttl) == (1, {}, 300)
    with pytest.raises(
        InvalidValue, match=r"^invalid_loop_options: max_turn: is not an option\ndid you mean 'max_turns'"
    ):
        await Host().run(max_turn=3)
    for wrong in (0, -1, True, "3"):
        with pytest.raises(InvalidValue, match="max_turns"):
            await Host().run(max_turns=wrong)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("context", []),
        ("should_continue", "yes"),
        ("on_event", 3),
        ("tool_executor", object()),
        ("tool_declarations", [SEARCH]),
        ("transcript_lock", object()),
        ("transcript_persister", object()),
        ("transcript_lock_ttl", 0),
        ("pre_tool_mediator", "ask"),
        ("tool_call_rules", {}),
        ("budgets", {"name": "turns", "ceiling": 3}),
        ("completion_policy", object()),
        ("summarizer", "me"),
        ("interrupt_source", []),
        ("spin_detector", 3),
        ("identical_failure_tracker", {"limit": 3}),
        ("tool_result_truncator", "8192"),
        ("post_tool_result_diagnostics", {}),
        ("provider_turn_adapter", "openai"),
        ("on_provider_delta", []),
        ("structured_output", "json"),
        ("session_id", 7),
        ("run_id", 7),
    ],
)
async def test_an_option_of_the_wrong_kind_is_named(option: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"^invalid_loop_options: {option}: "):
        await Host().run(**{option: value})


def test_a_request_brings_its_own_limit_and_the_option_wins() -> None:
    request = {"messages": [], "max_turns": 7}
    assert read_options({"request": request}).limits.max_turns == 7
    assert read_options({"request": request, "max_turns": 2}).limits.max_turns == 2
    assert read_options({"request": {**request, "single_turn": True}, "max_turns": 2}).limits.max_turns == 1
    assert read_options({"request": {"messages": []}}).limits.max_turns == 10


@pytest.mark.spec("API-LCK-02")
def test_the_session_id_is_the_first_of_options_then_of_the_requests_metadata() -> None:
    request = {"messages": [], "metadata": {"session_id": "m2", "transcript_id": "m3"}}
    everything = {"transcript_session_id": "o1", "session_id": "o2", "transcript_id": "o3", "request": request}
    expected = ["o1", "o2", "o3", "m2"]
    for dropped in ("transcript_session_id", "session_id", "transcript_id", None):
        assert read_options(everything).session_id == expected.pop(0)
        if dropped:
            everything[dropped] = ""
    assert read_options({"request": {"messages": [], "metadata": {"transcript_id": "m3"}}}).session_id == "m3"


@pytest.mark.spec("API-REJ-01", "API-REJ-02", "API-REJ-04")
async def test_declarations_that_are_not_fit_are_dropped_and_named_before_the_first_turn() -> None:
    host = Host({"content": "hi"})
    heard: list[str] = []
    host.hooks.register("loop_event", lambda name, payload: heard.append(name))
    tools = {
        "ability/clock": CLOCK,
        "search": {**SEARCH, "name": "search"},
        "ability/odd": {**CLOCK, "name": "ability/odd", "parameters": {"type": "no such type"}},
    }
    await host.run(tool_executor=host, tool_declarations=tools, max_turns=2)
    (payload,) = host.payloads("tool_declarations_rejected")
    assert (payload["rejected_count"], payload["accepted_count"]) == (2, 1)
    reasons = {entry["name"]: entry["reason"] for entry in payload["rejected"]}
    assert reasons["search"].startswith("name must be namespace/slug")
    assert reasons["ability/odd"].startswith("parameters are not a JSON Schema")
    assert host.names[:2] == heard[:2] == ["tool_declarations_rejected", "turn_started"]


@pytest.mark.spec("API-REJ-03", "API-MED-08")
async def test_an_executor_without_a_single_valid_tool_is_said_and_its_calls_fail() -> None:
    host = Host({"tool_calls": [{"name": "search", "parameters": {"q": "x"}}]})
    result = await host.run(tool_executor=host, tool_declarations={"search": {**SEARCH, "name": "search"}})
    (payload,) = host.payloads("tool_mediation_disabled")
    assert (payload["reason"], payload["rejected_count"]) == ("all_declarations_rejected", 1)
    assert host.names[:3] == ["tool_declarations_rejected", "tool_mediation_disabled", "turn_started"]
    (done,) = result.tool_execution_results
    assert done["result"]["metadata"]["error_type"] == "tool_mediation_disabled"
    assert not host.calls


async def test_the_key_a_tool_is_declared_under_is_one_of_its_names() -> None:
    host = Host({"tool_calls": [{"name": "find", "parameters": {"q": "x"}}]}, {"content": "done"})
    result = await host.run(tool_executor=host, tool_declarations={"find": SEARCH}, max_turns=2)
    assert result.tool_execution_results[0]["tool_name"] == "ability/search"
    assert host.calls[0].metadata.provider_tool_name == "find"


async def test_the_request_may_say_how_many_turns_its_caller_wants() -> None:
    request = {"messages": [], "max_turns": 7, "runtime_overrides": {"max_iterations": 2}}
    host = Host(*[calling(search()) for _ in range(7)])
    result = await host.mediated(request=request, max_turns=None)
    assert (result.turn_count, result.status, result.budget) == (2, "budget_exceeded", "turns")
    again = Host(*[calling(search()) for _ in range(7)])
    assert (await again.mediated(request=request, max_turns=3)).turn_count == 3
    with pytest.raises(InvalidValue, match="max_iterations"):
        await Host().run(request={"messages": [], "runtime_overrides": {"max_iterations": 0}})
