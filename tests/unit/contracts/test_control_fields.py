"""The nine fields of an agent's configuration have one validator, and it accepts nothing that is only nearly right."""

from typing import Any

import pytest

from wakeful.contracts.controls import (
    CONTROLS,
    AgentControls,
    CompactionPolicy,
    awareness_limit,
    checked_compaction,
)
from wakeful.contracts.errors import InvalidConfig

WRONG: list[tuple[str, Any]] = [
    *(("planning_enabled", wrong) for wrong in ("yes", 1, None)),
    *(("planning_model", wrong) for wrong in ("gpt-5", "", ":x", "openai:", "openai: x", "9lives:x", 7, ["a:b"])),
    *(("planning_instructions", wrong) for wrong in (None, 5)),
    *(
        ("budget_awareness", wrong)
        for wrong in (
            *("limit:101", "limit:-1", "limit:7.5", "limit:", "LIMIT:5", "", "limit: 5", "limit:5 ", "limit:5\n"),
            *("limit:٣", "limit:1e1", "limit:05", "limit", "Per-Message", "per-message ", "per_message", 5, True),
        )
    ),
    *(("hitl_tools", wrong) for wrong in ("refund", [""], [" "], [3], 5, None, {"refund": 1})),
    *(("emit_mcp_progress", wrong) for wrong in ("no", 0, None)),
    *(("injected_tool_args", wrong) for wrong in (None, ["a"], {"": "x"}, {3: "x"}, {"a": None}, {"a": {"type": "x"}})),
    *(("allow_parallel_subagents", wrong) for wrong in ("yes", 1, None)),
    *(("max_parallel_subagents", wrong) for wrong in (0, 8, -1, 3.0, "3", True, None)),
]


@pytest.mark.parametrize(("field", "wrong"), WRONG)
def test_what_a_field_cannot_be_is_refused_with_its_name(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match=f"Agent 'a': {field}") as refused:
        AgentControls("Agent 'a'", **{field: wrong})
    assert refused.value.hint
    with pytest.raises(InvalidConfig, match=field):
        AgentControls.model_validate({field: wrong})


def test_every_field_has_its_check() -> None:
    assert tuple(AgentControls.model_fields) == CONTROLS
    assert {field for field, _ in WRONG} == set(CONTROLS)


@pytest.mark.parametrize("reference", ["openai:gpt-5", "openai/gpt-5", "ollama:llama3:8b", "open-router:a/b", None])
def test_a_planning_model_is_a_model_reference(reference: str | None) -> None:
    assert AgentControls(planning_model=reference).planning_model == reference


@pytest.mark.parametrize("count", range(1, 8))
def test_one_to_seven_children_may_be_started_at_once(count: int) -> None:
    assert AgentControls(max_parallel_subagents=count).max_parallel_subagents == count


def test_an_unknown_control_is_named() -> None:
    with pytest.raises(InvalidConfig, match=r"no field 'planing'\nknown are: planning_enabled"):
        AgentControls(planing=True)


def test_the_percentage_is_read_from_the_field() -> None:
    assert [awareness_limit(text) for text in ("limit:0", "limit:70", "limit:100")] == [0, 70, 100]
    assert [awareness_limit(text) for text in (None, "per-message", "limit:101")] == [None, None, None]


def test_compaction_is_on_by_default_with_its_numbers() -> None:
    assert CompactionPolicy() == checked_compaction("a", None) == checked_compaction("a", {})
    assert CompactionPolicy().model_dump() == {"enabled": True, "threshold": 0.8, "keep_user_turns": 4, "model": None}
    given = {"enabled": False, "threshold": 1, "keep_user_turns": 1, "model": "a:b"}
    assert checked_compaction("a", given).model_dump() == given
    again = CompactionPolicy(**given)
    assert checked_compaction("a", again) is again
    assert CompactionPolicy.model_validate_json(again.model_dump_json()) == again


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        *(("enabled", wrong) for wrong in (None, 1)),
        *(("threshold", wrong) for wrong in (0, 1.01, -1, "0.8", True, float("nan"))),
        *(("keep_user_turns", wrong) for wrong in (0, 1.5, "4", True)),
        *(("model", wrong) for wrong in ("gpt", 5)),
        ("when", "later"),
    ],
)
def test_a_compaction_that_makes_no_sense_is_refused(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match=f"Agent 'a': compaction.*{field}"):
        checked_compaction("Agent 'a'", {field: wrong})


@pytest.mark.parametrize("wrong", [True, "on", 5])
def test_a_compaction_is_a_policy_or_data(wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match="Agent 'a': compaction="):
        checked_compaction("Agent 'a'", wrong)
