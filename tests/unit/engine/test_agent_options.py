"""Every option of an agent is declared once, with one check that accepts nothing that is only nearly right."""

import inspect
from typing import Any

import pytest

from wakeful import Agent
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import InvalidConfig
from wakeful.engine.agent_data import ARGUMENTS, WRITTEN
from wakeful.engine.agent_options import OPTIONS, AgentKeywords, checked_options, rebuilt_options, stored_options
from wakeful.hosts.packages.bundles import BROUGHT

CONTROLS = {
    "planning_enabled",
    "planning_model",
    "planning_instructions",
    "budget_awareness",
    "hitl_tools",
    "emit_mcp_progress",
    "injected_tool_args",
    "allow_parallel_subagents",
    "max_parallel_subagents",
}
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
        checked_options("Agent 'a'", {field: wrong})
    assert refused.value.hint
    with pytest.raises(InvalidConfig, match=field):
        Agent("a", "a:b", **{field: wrong})


def test_every_control_is_an_option_with_wrong_values_here() -> None:
    assert {field for field, _ in WRONG} == CONTROLS
    assert {name for name, each in OPTIONS.items() if each.always} == {*CONTROLS, "max_steps"}


@pytest.mark.parametrize("reference", ["openai:gpt-5", "openai/gpt-5", "ollama:llama3:8b", "open-router:a/b", None])
def test_a_planning_model_is_a_model_reference(reference: str | None) -> None:
    assert checked_options("a", {"planning_model": reference})["planning_model"] == reference


@pytest.mark.parametrize("count", range(1, 8))
def test_one_to_seven_children_may_be_started_at_once(count: int) -> None:
    assert checked_options("a", {"max_parallel_subagents": count})["max_parallel_subagents"] == count


def test_what_type_checkers_and_help_are_told_are_the_options() -> None:
    assert set(AgentKeywords.__annotations__) == set(OPTIONS)
    told = inspect.signature(Agent).parameters
    assert {name: told[name].default for name in OPTIONS} == {name: each.default for name, each in OPTIONS.items()}
    assert set(told) - {"unknown"} == set(ARGUMENTS)


def test_an_agent_holds_every_option_and_its_class_the_declarations() -> None:
    agent = Agent("a", "a:b")
    assert set(OPTIONS) < set(vars(agent))
    assert getattr(Agent, "budget") is OPTIONS["budget"]  # noqa: B009
    assert {**checked_options("a", {}), "profile": "chat"} == {name: getattr(agent, name) for name in OPTIONS}


def test_an_option_that_was_never_set_is_not_taken_for_one_that_was() -> None:
    """The inversion: an agent that nobody made has no options, not the declarations of its class."""
    with pytest.raises(AttributeError, match="an agent without budget"):
        _ = Agent.__new__(Agent).budget


def test_a_file_has_what_a_program_may_say_but_for_code() -> None:
    assert set(OPTIONS) - set(WRITTEN) == {"hooks", "spend_windows"}, "windows stand in a file's budget"


def test_a_bundle_brings_words_and_nothing_of_the_machine_or_its_owners_money() -> None:
    kept = {"budget", "spend_windows", "profile", "workspace", "sandbox", "policy", "approval_expiry", "skills"}
    assert set(OPTIONS) - set(BROUGHT) == {*kept, "collections", "hooks", "mcp", "retry", "wake", "notify", "spawn"}


def test_what_a_turn_has_no_field_for_stands_with_it_as_a_file_would_have_it() -> None:
    usual = stored_options(Agent("a", "a:b"))
    assert usual["options"] == {}
    config = TurnConfig(agent_name="a", model_ref="a:b", **stored_options(Agent("a", "a:b", approval_expiry=60)))
    assert config.options == {"approval_expiry": 60.0}
    again = Agent("a", "a:b", **rebuilt_options(TurnConfig.model_validate_json(config.model_dump_json())))
    assert again.approval_expiry == 60
    assert config.changes_from(config.changed(options={})) == ("options",)


def test_a_turn_that_was_stored_before_there_were_such_options_is_rebuilt_with_the_defaults() -> None:
    old = TurnConfig(agent_name="a", model_ref="a:b").model_dump(mode="json", exclude={"options"})
    again = Agent("a", "a:b", **rebuilt_options(TurnConfig.model_validate(old)))
    assert {name: getattr(again, name) for name in OPTIONS} == {
        name: getattr(Agent("a", "a:b"), name) for name in OPTIONS
    }


def test_agents_share_nothing_that_can_be_changed() -> None:
    one, other = Agent("a", "a:b"), Agent("b", "a:b")
    assert one.injected_tool_args == other.injected_tool_args == {}
    assert one.injected_tool_args is not other.injected_tool_args
