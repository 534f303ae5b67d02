"""Declarative gates: after one tool, only so many of others until a third was called."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.errors import InvalidValue
from wakeful.decisions.policy.call_gates import CallGates, read_call_rules

SEARCH: dict[str, Any] = {
    "id": "write-it-down",
    "after_tool": "open_case",
    "limited_tools": ["search", "fetch"],
    "max_calls": 2,
    "require_one_of": ["take_note", "close_case"],
}


def gates(*rules: dict[str, Any]) -> CallGates:
    return CallGates.of(read_call_rules(rules))


def after(gate: CallGates, *tools: str) -> CallGates:
    for tool in tools:
        gate = gate.called(tool)
    return gate


def passes(gate: CallGates, tool: str) -> bool:
    return gate.check_call(tool) is None


@pytest.mark.spec("API-GATE-01")
def test_after_a_tool_only_so_many_of_the_limited_ones_until_a_required_one_ran() -> None:
    gate = gates(SEARCH)
    assert passes(after(gate, "search", "search", "fetch"), "search")  # nothing holds before after_tool
    opened = after(gate, "open_case")
    assert passes(opened, "search")
    assert passes(after(opened, "search"), "fetch")
    used_up = after(opened, "search", "fetch")
    for limited in ("search", "fetch"):
        verdict = used_up.check_call(limited)
        assert verdict is not None
        assert (verdict.decision, verdict.error_type) == ("deny", "tool_call_gate_rejected")
        assert verdict.rule_refs == ("write-it-down",)
    for free in ("take_note", "close_case", "something_else", "open_case"):
        assert passes(used_up, free)
    assert passes(after(used_up, "take_note"), "search")
    # A required tool passes although it is limited as well, and gate_calls=false holds nobody up.
    both = gates({**SEARCH, "limited_tools": ["search", "take_note"], "max_calls": 0})
    assert not passes(after(both, "open_case"), "search")
    assert passes(after(both, "open_case"), "take_note")
    assert passes(after(gates({**SEARCH, "gate_calls": False}), "open_case", "search", "search"), "search")


def test_calling_the_first_tool_again_does_not_start_the_count_anew() -> None:
    assert not passes(after(gates(SEARCH), "open_case", "search", "search", "open_case"), "search")
    assert passes(after(gates(SEARCH), "open_case", "search", "search", "take_note", "open_case"), "search")


@pytest.mark.spec("API-GATE-02")
def test_the_run_does_not_end_after_the_tool_until_a_required_one_was_called() -> None:
    gate = gates(SEARCH)
    assert gate.check_completion() is None
    blocked = after(gate, "open_case", "search").check_completion()
    assert blocked is not None
    assert (blocked.rule_id, blocked.counters) == ("write-it-down", {"calls": 1, "required": 1})
    assert "take_note, close_case" in blocked.reason
    assert after(gate, "open_case", "close_case").check_completion() is None
    assert after(gate, "open_case", "close_case", "open_case").check_completion() is not None
    assert after(gates({**SEARCH, "gate_completion": False}), "open_case").check_completion() is None


@pytest.mark.spec("API-GATE-03")
def test_the_run_does_not_end_before_enough_calls_were_made() -> None:
    any_tool = gates({"require_tool_use": True})
    assert any_tool.check_completion() is not None
    assert any_tool.called("anything").check_completion() is None
    three = gates({"id": "r", "require_tool_use": True, "min_tool_calls": 3, "require_one_of": ["search", "fetch"]})
    blocked = after(three, "search", "other", "other", "fetch").check_completion()
    assert blocked is not None
    assert (blocked.rule_id, blocked.counters) == ("r", {"calls": 2, "required": 3})
    assert after(three, "search", "fetch", "search").check_completion() is None
    assert passes(three, "anything")  # it refuses an end, never a call


def test_names_may_be_bare() -> None:
    gate = after(gates(SEARCH), "wakeful/open_case", "mcp.web/search", "search")
    assert not passes(gate, "mcp.other/fetch")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("x", r"\[0\]: a rule is an object"),
        ({}, "neither after_tool nor require_tool_use"),
        ({"require_tool_use": False}, "neither after_tool nor require_tool_use"),
        ({**SEARCH, "max_calls": -1}, r"\[0\]\.max_calls"),
        ({**SEARCH, "after_tool": ""}, r"\[0\]\.after_tool"),
        ({**SEARCH, "require_one_of": []}, "could never be satisfied"),
        ({**SEARCH, "limit": 3}, r"\[0\]\.limit"),
        ({"require_tool_use": True, "min_tool_calls": 0}, "min_tool_calls"),
    ],
)
def test_a_rule_that_is_none_is_refused_and_named(rule: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        read_call_rules([rule])


calls = st.lists(st.sampled_from(["open_case", "search", "fetch", "take_note", "other"]), max_size=12)


@given(calls)
def test_a_run_that_keeps_to_the_gate_never_makes_more_limited_calls_than_allowed(tried: list[str]) -> None:
    gate, made = gates(SEARCH), []
    for tool in tried:
        if passes(gate, tool):
            gate, made = gate.called(tool), [*made, tool]
    assert gate == after(gates(SEARCH), *made)
    since = -1
    for tool in made:
        if tool == "take_note":
            since = -1
        elif tool == "open_case":
            since = max(since, 0)
        elif tool in ("search", "fetch") and since >= 0:
            since += 1
        assert since <= 2
