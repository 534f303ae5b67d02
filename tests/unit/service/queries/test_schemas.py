"""The published shapes are those of the documents that are really written and read."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wakeful import Agent
from wakeful.contracts.errors import WakefulError
from wakeful.engine.agent_data import WRITTEN
from wakeful.service.queries.schemas import agent_schema

FULL: dict[str, Any] = {
    "name": "ops",
    "model": "scripted:demo",
    "instructions": "Be brief.",
    "tools": [],
    "max_steps": 4,
    "temperature": 0.2,
    "max_tokens": 100,
    "settings": {"seed": 1},
    "fallbacks": ["scripted:other"],
    "budget": {"model_calls": 8, "seconds": 60},
    "profile": "chat",
    "skills": [],
    "subtasks": True,
    "collections": ["handbook"],
    "compaction": {"threshold": 0.7, "model": "scripted:other"},
    "planning_enabled": True,
    "planning_model": "scripted/other",
    "planning_instructions": "Plan.",
    "budget_awareness": "limit:70",
    "hitl_tools": ["run_subtask"],
    "emit_mcp_progress": False,
    "injected_tool_args": {"reason": "why"},
    "allow_parallel_subagents": True,
    "max_parallel_subagents": 7,
}


def errors(data: dict[str, Any]) -> list[str]:
    return [error.message for error in Draft202012Validator(agent_schema()).iter_errors(data)]


def test_the_agents_schema_has_the_fields_that_a_file_may_have() -> None:
    assert set(agent_schema()["properties"]) == set(WRITTEN)


def test_what_an_agent_writes_down_fits_and_can_be_read() -> None:
    assert errors(FULL) == []
    assert errors(Agent.from_dict(FULL).to_dict()) == []
    assert errors(Agent("a", "scripted:demo").to_dict()) == []
    nested = {**FULL, "budget": {"per_run": {"usd": 0.5, "minutes": 20}, "per_day": {"usd": 2}}}
    assert errors(nested) == errors(Agent.from_dict(nested).to_dict()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"name": "1st"},
        {"model": "demo"},
        {"max_steps": 0},
        {"budget": {"seconds": 0}},
        {"budget": {"usd": "much"}},
        {"budget": {"profile": "wild"}},
        {"budget": {"per_tool": {"add": -1}}},
        {"budget": {"per_day": {"tokens": 5}}},
        {"budget": {"per_run": {"usd": -1}}},
        {"profile": "wizard"},
        {"planning_model": "demo"},
        {"planning_enabled": "yes"},
        {"planning_instructions": None},
        {"budget_awareness": "limit:101"},
        {"max_parallel_subagents": 8},
        {"injected_tool_args": {"reason": {"type": "string"}}},
        {"compaction": {"threshold": 2}},
        {"compaction": {"when": "later"}},
        {"subtasks": 1},
        {"collections": "handbook"},
        {"surprise": 1},
    ],
)
def test_what_the_schema_refuses_an_agent_refuses_too(change: dict[str, Any]) -> None:
    assert errors({**FULL, **change}) != []
    with pytest.raises(WakefulError):
        Agent.from_dict({**FULL, **change})
