"""What was given and has no effect in a run is said in its warnings, in one line with the reason."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Budget, GatePolicy, Rule, hook, run, tool
from wakeful.contracts.controls import CompactionPolicy
from wakeful.testing import scripted


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@hook("pre_tool_use", match="refnud", name="careful")
def careful(call: Any) -> None:
    return None


def about(match: str) -> GatePolicy:
    return GatePolicy(rules=(Rule(match=match, decision="deny"),))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"planning_model": "openai:gpt-5.5"}, "planning_model has no effect without planning_enabled=True."),
        ({"planning_instructions": "Think."}, "planning_instructions has no effect without planning_enabled=True."),
        (
            {"max_parallel_subagents": 5},
            "max_parallel_subagents has no effect without allow_parallel_subagents=True.",
        ),
        (
            {"sandbox": {"network": "full"}},
            "sandbox= has no effect without a workspace: there are no commands to confine.",
        ),
        ({"tools": [], "injected_tool_args": {"why": "A reason."}}, "injected_tool_args has no effect without tools."),
        ({"policy": about("lok")}, "the rule deny lok matches none of its tools."),
        ({"hooks": [careful]}, "the hook careful is for refnud, which matches none of its tools."),
        ({"budget": Budget(per_tool={"lok": 3})}, "Budget(per_tool=...) names lok, which is none of its tools."),
        (
            {"compaction": CompactionPolicy(threshold=0.5)},
            "compaction= has no effect: the context window of its model is not known. "
            "Give its profile a context_window.",
        ),
    ],
)
async def test_an_option_without_effect_is_said(options: dict[str, Any], words: str) -> None:
    result = await run(Agent("clerk", scripted(["done"]), **{"tools": [look], **options}), "go")
    assert result.output == "done" and result.warnings == (f"Agent 'clerk': {words}",)


async def test_a_hook_of_the_run_is_held_to_the_same() -> None:
    result = await run(Agent("clerk", scripted(["done"]), tools=[look]), "go", hooks=[careful])
    assert result.warnings == ("Agent 'clerk': the hook careful is for refnud, which matches none of its tools.",)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": about("look")},
        {"budget": Budget(per_tool={"look": 3})},
        {"policy": about("*")},
        {"policy": about("missing"), "tools": [Agent("other", scripted(["done"]), tools=[look]).as_tool()]},
        {"planning_enabled": True, "planning_instructions": "Think."},
        {"allow_parallel_subagents": True, "max_parallel_subagents": 5},
        {"compaction": CompactionPolicy(enabled=False, threshold=0.5)},
        {"hooks": [lambda call: None], "tools": []},
    ],
)
async def test_what_has_an_effect_or_is_the_default_is_not_warned_of(options: dict[str, Any]) -> None:
    model = scripted(["plan", "done"], leftover="ignore")
    assert (await run(Agent("clerk", model, **{"tools": [look], **options}), "go")).warnings == ()


async def test_a_turn_that_is_taken_up_again_does_not_repeat_it(tmp_path: Path) -> None:
    @tool(effect="pure", approval=lambda call: True)
    def ask() -> str:
        """Ask."""
        return "asked"

    agent = Agent("clerk", scripted([calls("ask"), "done"]), tools=[ask], policy=about("lok"))
    first = await run(agent, "go", store=tmp_path / "runs.db", key="one")
    again = await run(agent, "go", store=tmp_path / "runs.db", key="one", approver=lambda asked: True)
    assert (first.status, again.status) == ("approval_required", "completed")
    assert first.warnings == again.warnings == ("Agent 'clerk': the rule deny lok matches none of its tools.",)
