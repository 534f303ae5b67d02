"""An agent's configuration as data: nothing is dropped in silence, in either direction."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wakeful.agents.definition import Agent
from wakeful.contracts.budgets import Budget
from wakeful.contracts.errors import InvalidConfig, NotBuiltYet, UnknownTool
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.ports import ModelRequest
from wakeful.tools.context import RunContext
from wakeful.tools.function import tool


@tool(effect="pure")
def add(a: int, b: int) -> int:
    return a + b


@tool(effect="pure")
def look_up(ctx: RunContext[dict[str, int]], order: str) -> int:
    return ctx.deps[order]


TOOLS = [add, look_up]
FULL = {
    "name": "ops",
    "model": "openai:gpt-5.5",
    "instructions": "Be careful: ü.",
    "tools": ["look_up", "add"],
    "max_steps": 12,
    "temperature": 0.2,
    "max_tokens": 4096,
    "settings": {"top_p": 0.5},
    "fallbacks": ["anthropic:claude"],
    "budget": {"model_calls": 8, "seconds": 60.0},
    "profile": "chat",
}


def full_agent() -> Agent[Any, str]:
    return Agent(
        "ops",
        "openai:gpt-5.5",
        "Be careful: ü.",
        [look_up, add],
        deps_type=dict,
        settings={"temperature": 0.2, "max_tokens": 4096, "top_p": 0.5},
        fallbacks=["anthropic:claude"],
        budget=Budget(model_calls=8, seconds=60),
        max_steps=12,
        profile="chat",
    )


class LiveModel:
    ref = "live:one"

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        raise NotImplementedError


@pytest.mark.spec("CTL-CFG-21")
def test_the_fields_of_a_configuration_round_trip() -> None:
    assert full_agent().to_dict() == FULL
    again = Agent.from_dict(FULL, tools=TOOLS)
    assert again.to_dict() == FULL
    assert (again.name, again.model, again.instructions, again.max_steps) == (
        "ops",
        "openai:gpt-5.5",
        "Be careful: ü.",
        12,
    )
    assert again.settings == {"temperature": 0.2, "max_tokens": 4096, "top_p": 0.5}
    assert again.budget == Budget(model_calls=8, seconds=60)


@pytest.mark.spec("CTL-CFG-21")
def test_what_is_left_out_has_its_default_and_round_trips_too() -> None:
    agent = Agent.from_dict({"name": "ops", "model": "openai:gpt-5.5"})
    written = agent.to_dict()
    assert written == {
        "name": "ops",
        "model": "openai:gpt-5.5",
        "instructions": "",
        "tools": [],
        "max_steps": None,
        "temperature": None,
        "max_tokens": None,
        "profile": "chat",
    }
    assert Agent.from_dict(written).to_dict() == written
    assert agent.settings == {}


@pytest.mark.spec("CTL-CFG-21")
@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many", True])
def test_max_steps_is_at_least_one(wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match="max_steps"):
        Agent.from_dict({**FULL, "max_steps": wrong}, tools=TOOLS)
    assert Agent.from_dict({**FULL, "max_steps": 1}, tools=TOOLS).max_steps == 1


@pytest.mark.parametrize("name", ["agent.json", "agent.yaml", "agent.yml"])
def test_a_file_holds_the_same(name: str, tmp_path: Path) -> None:
    full_agent().to_file(tmp_path / name)
    assert Agent.from_file(tmp_path / name, tools=TOOLS).to_dict() == FULL
    assert Agent.from_file(str(tmp_path / name), tools=TOOLS).to_dict() == FULL


@pytest.mark.spec("CTL-CFG-22")
def test_an_unknown_field_is_rejected_by_name_on_every_surface(tmp_path: Path) -> None:
    wrong = {**FULL, "temprature": 0.5}
    with pytest.raises(InvalidConfig, match=r"'temprature'\ndid you mean temperature"):
        Agent.from_dict(wrong, tools=TOOLS)
    with pytest.raises(InvalidConfig, match="'temprature'"):
        Agent("ops", "a:b", temprature=0.5)  # type: ignore[call-overload]
    for name, text in (
        ("a.json", '{"name": "a", "model": "a:b", "sped": 1}'),
        ("a.yaml", "name: a\nmodel: a:b\nsped: 1"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidConfig, match="'sped'"):
            Agent.from_file(tmp_path / name)


@pytest.mark.parametrize("field", ["wake", "notify", "workspace", "instructions_file"])
def test_fields_of_later_versions_are_refused_as_such(field: str) -> None:
    with pytest.raises(NotBuiltYet, match=field):
        Agent.from_dict({**FULL, field: "x"}, tools=TOOLS)
    with pytest.raises(NotBuiltYet, match="planning_enabled"):
        Agent.from_dict({**FULL, "planning_enabled": True}, tools=TOOLS)
    with pytest.raises(NotBuiltYet, match="per_day"):
        Agent.from_dict({**FULL, "budget": {"per_day": {"usd": 2}}}, tools=TOOLS)
    assert Agent.from_dict({**FULL, "planning_enabled": False, "hitl_tools": []}, tools=TOOLS).to_dict() == FULL


@pytest.mark.spec("CTL-CFG-23")
@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("instructions", {"instructions": lambda ctx: "x"}),
        ("model", {"model": LiveModel()}),
        ("fallbacks", {"fallbacks": [LiveModel()]}),
        ("deps", {"deps": lambda context: {}}),
        ("deps_type", {"deps_type": dict}),
        ("output_type", {"output_type": int}),
    ],
)
def test_what_cannot_travel_fails_and_names_the_field(field: str, given: dict[str, Any], tmp_path: Path) -> None:
    agent = Agent(**{"name": "ops", "model": "a:b", **given})
    with pytest.raises(InvalidConfig, match=rf": {field} cannot travel"):
        agent.to_dict()
    with pytest.raises(InvalidConfig, match=rf": {field} cannot travel"):
        agent.to_file(tmp_path / "agent.json")
    assert not (tmp_path / "agent.json").exists()


@pytest.mark.spec("CTL-CFG-23")
def test_tools_travel_by_name_and_are_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("trap_module:boom", "trap_module.boom", "trap_module", "refund"):
        with pytest.raises(UnknownTool, match=rf"'{name}', which was not supplied\nsupplied: add, look_up"):
            Agent.from_dict({**FULL, "tools": [name]}, tools=TOOLS)
    assert "trap_module" not in sys.modules
    assert Agent.from_dict({**FULL, "tools": ["add"]}, tools=TOOLS).tools == (add,)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "is an object, not a list"),
        ({"model": "a:b"}, "name is missing"),
        ({"name": "a"}, "model is missing"),
        ({"name": "a", "model": "a:b", "instructions": 5}, "instructions are a string"),
        ({"name": "a", "model": "a:b", "tools": "add"}, "tools is a list of names"),
        ({"name": "a", "model": "a:b", "settings": [1]}, "settings is an object"),
        ({"name": "a", "model": "a:b", "settings": {"temperature": 1}}, "temperature stands in settings"),
        ({"name": "a", "model": "a:b", "temperature": "hot"}, "temperature='hot'"),
        ({"name": "a", "model": "a:b", "budget": 5}, "budget is an object"),
        ({"name": "a", "model": "a:b", "budget": {"model_calls": 0}}, "model_calls"),
        ({"name": "a", "model": "a:b", "budget": {"modelcalls": 1}}, "modelcalls"),
    ],
)
def test_wrong_data_is_refused_with_the_place(data: Any, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        Agent.from_dict(data, tools=TOOLS)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.yaml", "- a", "holds a list"),
        ("a.yaml", "a: !!python/object/apply:os.getcwd []", "is not YAML"),
        ("missing.yaml", None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_configuration_is_named(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidConfig, match=rf"{name}: {said}"):
        Agent.from_file(tmp_path / name)
