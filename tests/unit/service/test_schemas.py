"""The published shapes are those of the documents that are really written and read."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wakeful import Agent
from wakeful.agents.config import WRITTEN
from wakeful.contracts.errors import WakefulError
from wakeful.service.schemas import agent_schema

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
}


def errors(data: dict[str, Any]) -> list[str]:
    return [error.message for error in Draft202012Validator(agent_schema()).iter_errors(data)]


def test_the_agents_schema_has_the_fields_that_a_file_may_have() -> None:
    assert set(agent_schema()["properties"]) == set(WRITTEN)


def test_what_an_agent_writes_down_fits_and_can_be_read() -> None:
    assert errors(FULL) == []
    assert errors(Agent.from_dict(FULL).to_dict()) == []
    assert errors(Agent("a", "scripted:demo").to_dict()) == []


@pytest.mark.parametrize(
    "change", [{"name": "1st"}, {"max_steps": 0}, {"budget": {"seconds": 0}}, {"profile": "wizard"}, {"surprise": 1}]
)
def test_what_the_schema_refuses_an_agent_refuses_too(change: dict[str, Any]) -> None:
    assert errors({**FULL, **change}) != []
    with pytest.raises(WakefulError):
        Agent.from_dict({**FULL, **change})
