"""An agent's configuration as data: nothing is dropped in silence, in either direction."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wakeful import run_sync
from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.engine.agent import Agent
from wakeful.ports import ModelRequest
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool
from wakeful.tools.source import Offer, ToolSource
from wakeful.tools.tool import Tool


@tool(effect="pure")
def add(a: int, b: int) -> int:
    return a + b


@tool(effect="pure")
def look_up(ctx: RunContext[dict[str, int]], order: str) -> int:
    return ctx.deps[order]


TOOLS: list[Tool[Any]] = [add, look_up]
CONTROLS: dict[str, Any] = {
    "planning_enabled": False,
    "planning_model": None,
    "planning_instructions": "",
    "budget_awareness": None,
    "hitl_tools": [],
    "emit_mcp_progress": True,
    "injected_tool_args": {},
    "allow_parallel_subagents": False,
    "max_parallel_subagents": 3,
}
FULL: dict[str, Any] = {
    **CONTROLS,
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


class LiveSource(ToolSource):
    @property
    def name(self) -> str:
        return "mcp.docs"

    async def offer(self) -> Offer:
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
    assert again.settings == ModelSettings(temperature=0.2, max_tokens=4096, top_p=0.5)
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
        **CONTROLS,
    }
    assert Agent.from_dict(written).to_dict() == written
    assert agent.settings == ModelSettings()


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


BUDGETS: list[tuple[dict[str, Any], Budget | None, tuple[SpendWindow, ...], dict[str, Any]]] = [
    (
        {"per_run": {"usd": 0.50, "model_calls": 40, "minutes": 20}, "per_day": {"usd": 2}},
        Budget(usd="0.5", model_calls=40, seconds=1_200),
        (SpendWindow("day", 2),),
        {"per_run": {"usd": "0.5", "model_calls": 40, "seconds": 1_200.0}, "per_day": {"usd": "2"}},
    ),
    (
        {"per_month": {"usd": "30.00"}, "per_hour": {"usd": 0.1}},
        None,
        (SpendWindow("hour", 0.1), SpendWindow("month", 30)),
        {"per_hour": {"usd": "0.1"}, "per_month": {"usd": "30"}},
    ),
    ({"per_run": {"tool_calls": 3}}, Budget(tool_calls=3), (), {"tool_calls": 3}),
    (
        {"profile": "interactive", "per_tool": {"add": 2}, "depth": 1, "final_answer_reserve": False},
        Budget(profile="interactive", per_tool={"add": 2}, depth=1, final_answer_reserve=False),
        (),
        {"profile": "interactive", "per_tool": {"add": 2}, "depth": 1, "final_answer_reserve": False},
    ),
    ({}, Budget(), (), {}),
]


@pytest.mark.parametrize(("given", "budget", "windows", "written"), BUDGETS)
def test_a_budget_says_what_a_run_may_use_and_what_all_runs_may_spend(
    given: dict[str, Any],
    budget: Budget | None,
    windows: tuple[SpendWindow, ...],
    written: dict[str, Any],
    tmp_path: Path,
) -> None:
    agent = Agent.from_dict({"name": "ops", "model": "a:b", "budget": given})
    assert (agent.budget, agent.spend_windows) == (budget, windows)
    assert agent.to_dict()["budget"] == written
    for name in ("agent.json", "agent.yaml"):
        agent.to_file(tmp_path / name)
        again = Agent.from_file(tmp_path / name)
        assert (again.budget, again.spend_windows) == (budget, windows)
    assert agent.changed(max_steps=3).spend_windows == windows


@pytest.mark.parametrize("wrong", [5, "day", ["day"], {"day": 2}, [SpendWindow("day", 1), SpendWindow("day", 2)]])
def test_windows_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match="spend_windows"):
        Agent("ops", "a:b", spend_windows=wrong)


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


def test_data_that_is_no_file_can_name_no_file_and_no_hooks() -> None:
    with pytest.raises(InvalidConfig, match="names a file of instructions, which only an agent's file can do"):
        Agent.from_dict({**FULL, "instructions_file": "x"}, tools=TOOLS)
    assert Agent.from_dict({**FULL, "hooks": []}, tools=TOOLS).to_dict() == FULL


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
        ("hooks", {"hooks": [print]}),
        ("tools", {"tools": [LiveSource()]}),
    ],
)
def test_what_cannot_travel_fails_and_names_the_field(field: str, given: dict[str, Any], tmp_path: Path) -> None:
    agent = Agent(**{"name": "ops", "model": "a:b", **given})
    with pytest.raises(InvalidConfig, match=f"cannot be saved as data because of {field}: "):
        agent.to_dict()
    with pytest.raises(InvalidConfig, match=f"cannot be saved as data because of {field}: "):
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
        ({"model": "a:b"}, "the configuration of an agent: name is missing"),
        ({"name": "a"}, "model is missing"),
        ({"name": "a", "model": "a:b", "instructions": 5}, "instructions are a string"),
        ({"name": "a", "model": "a:b", "tools": "add"}, "tools is a list of names"),
        ({"name": "a", "model": "a:b", "settings": [1]}, "settings is an object"),
        (
            {"name": "a", "model": "a:b", "temperature": 1, "settings": {"temperature": 1}},
            "temperature is given twice, at the top and in settings",
        ),
        ({"name": "a", "model": "a:b", "settings": {"temprature": 1}}, "'temprature' is not a model setting"),
        ({"name": "a", "model": "a:b", "temperature": "hot"}, "temperature='hot'"),
        ({"name": "a", "model": "a:b", "budget": 5}, "budget is an object"),
        ({"name": "a", "model": "a:b", "budget": {"model_calls": 0}}, "model_calls"),
        ({"name": "a", "model": "a:b", "budget": {"modelcalls": 1}}, "'modelcalls'\ndid you mean model_calls"),
        ({"name": "a", "model": "a:b", "budget": {"per_run": 5}}, r"budget\.per_run is an object, not 5"),
        ({"name": "a", "model": "a:b", "budget": {"per_run": {"usd": -1}}}, r"budget\.per_run: .*usd=-1"),
        ({"name": "a", "model": "a:b", "budget": {"per_day": {}}}, r"budget\.per_day is {}\nonly money has windows"),
        ({"name": "a", "model": "a:b", "budget": {"per_day": {"tokens": 5}}}, "only money has windows"),
        ({"name": "a", "model": "a:b", "budget": {"per_day": {"usd": "x"}}}, r"budget\.per_day: .*usd='x'"),
        ({"name": "a", "model": "a:b", "budget": {"per_week": {"usd": 1}}}, "no field 'per_week'"),
        (
            {"name": "a", "model": "a:b", "budget": {"per_day": {"usd": 1}, "model_calls": 3}},
            "'model_calls' outside of per_run\nwrite model_calls under per_run",
        ),
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
    with pytest.raises(InvalidConfig, match=rf"{name}:? {said}"):
        Agent.from_file(tmp_path / name)


# --- what an agent says about its gate ------------------------------------------------------------------------------


@tool(effect="irreversible")
def refund(order: str) -> str:
    return "refunded"


GATED = [*TOOLS, refund]
POLICY = GatePolicy(
    tools=ToolPolicy(context="library", classes=frozenset({"safe", "external_write"}), unconfined="deny"),
    rules=(Rule(match="refund", decision="ask", approvers=("ada",), id="money"),),
)


def gated(folder: Path) -> dict[str, Any]:
    return {
        "name": "ops",
        "model": "openai:gpt-5.5",
        "instructions": "",
        "tools": ["refund", "add"],
        "max_steps": None,
        "temperature": None,
        "max_tokens": None,
        **CONTROLS,
        "profile": "shell_first",
        "workspace": str(folder),
        "policy": POLICY.model_dump(mode="json", exclude_defaults=True),
        "approval_expiry": 90.0,
        "hitl_tools": ["refund"],
        "injected_tool_args": {"reason": "Why you call this tool.", "ünïcode field": ""},
        "emit_mcp_progress": False,
    }


def said(agent: Agent[Any, Any]) -> tuple[Any, ...]:
    return (
        agent.profile,
        agent.workspace,
        agent.policy,
        agent.approval_expiry,
        agent.hitl_tools,
        agent.injected_tool_args,
        agent.emit_mcp_progress,
    )


@pytest.mark.parametrize("name", ["agent.json", "agent.yaml"])
def test_what_an_agent_says_about_its_gate_travels(name: str, tmp_path: Path) -> None:
    data = gated(tmp_path)
    agent = Agent.from_dict(data, tools=GATED)
    assert said(agent) == (
        "shell_first",
        tmp_path,
        POLICY,
        90.0,
        ("refund",),
        {"reason": "Why you call this tool.", "ünïcode field": ""},
        False,
    )
    assert agent.to_dict() == data
    agent.to_file(tmp_path / name)
    again = Agent.from_file(tmp_path / name, tools=GATED)
    assert said(again) == said(agent)
    assert again.to_dict() == data
    # Each by itself, the others with their defaults.
    for field in ("workspace", "policy", "approval_expiry", "hitl_tools", "injected_tool_args", "emit_mcp_progress"):
        one = {**FULL, "tools": ["refund"], field: data[field]}
        assert Agent.from_dict(one, tools=GATED).to_dict() == one


def test_a_gate_that_is_left_out_has_its_defaults() -> None:
    agent = Agent.from_dict({"name": "ops", "model": "a:b"})
    assert said(agent) == ("chat", None, None, 86400.0, (), {}, True)
    assert said(Agent("ops", "a:b")) == said(agent)
    written = agent.to_dict()
    assert said(Agent.from_dict(written)) == said(agent)
    assert not {"profile", "workspace", "policy", "approval_expiry"} & written.keys()


def test_the_profile_that_follows_from_a_workspace_is_not_written(tmp_path: Path) -> None:
    agent = Agent("ops", "a:b", workspace=tmp_path)
    assert (agent.profile, "profile" in agent.to_dict()) == ("coding", False)
    assert Agent.from_dict(agent.to_dict()).profile == "coding"
    chat = Agent("ops", "a:b", workspace=tmp_path, profile="chat")
    assert Agent.from_dict(chat.to_dict()).profile == "chat"


@pytest.mark.spec("CTL-HITL-01", "CTL-HITL-06", "CTL-REJ-04", "CTL-CFG-06")
def test_a_tool_that_needs_a_person_must_be_there_when_the_agent_is_made_saved_or_loaded(tmp_path: Path) -> None:
    agent = Agent("ops", "a:b", tools=[refund, add], hitl_tools=["refund"])
    assert agent.hitl_tools == ("refund",), "a list of names of the agent's own tools"
    with pytest.raises(UnknownTool, match=r"hitl_tools names 'reefund', which is not among its tools"):
        Agent("ops", "a:b", tools=[refund], hitl_tools=["reefund"])
    data = {"name": "ops", "model": "a:b", "tools": ["refund"], "hitl_tools": ["refund", "absent"]}
    with pytest.raises(UnknownTool, match="hitl_tools names 'absent'"):
        Agent.from_dict(data, tools=[refund])
    for name, text in (
        ("a.json", '{"name": "a", "model": "a:b", "hitl_tools": ["absent"]}'),
        ("a.yaml", "name: a\nmodel: a:b\nhitl_tools: [absent]\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UnknownTool, match="hitl_tools names 'absent'"):
            Agent.from_file(tmp_path / name, tools=[refund])
    # An agent that was made is right, and does not change: what is saved can only name what is there.
    agent.to_file(tmp_path / "saved.yaml")
    assert Agent.from_file(tmp_path / "saved.yaml", tools=[refund, add]).hitl_tools == ("refund",)
    with pytest.raises(UnknownTool):
        Agent.from_file(tmp_path / "saved.yaml", tools=[add])
    for wrong in ("refund", [""], [3], 5):
        with pytest.raises(InvalidConfig, match="hitl_tools"):
            Agent("ops", "a:b", tools=[refund], hitl_tools=wrong)  # type: ignore[arg-type]


@pytest.mark.spec("CTL-CFG-09")
@pytest.mark.parametrize("wrong", [{"reason": {"type": "string"}}, {"": "x"}, {" ": "x"}, {"a": None}, ["a"], {3: "x"}])
def test_an_injected_field_is_a_name_and_its_description_and_nothing_else(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="injected_tool_args"):
        Agent("ops", "a:b", injected_tool_args=wrong)
    with pytest.raises(InvalidConfig, match="injected_tool_args"):
        Agent.from_dict({"name": "ops", "model": "a:b", "injected_tool_args": wrong})
    good = {"reason": "why", "$ref": "not a reference", "a b": ""}
    agent = Agent.from_dict({"name": "ops", "model": "a:b", "injected_tool_args": good})
    assert agent.injected_tool_args == good and agent.to_dict()["injected_tool_args"] == good
    for name in ("a.json", "a.yaml"):
        agent.to_file(tmp_path / name)
        assert Agent.from_file(tmp_path / name).injected_tool_args == good


@pytest.mark.spec("CTL-INJ-09")
def test_an_injected_field_that_is_a_tools_own_parameter_is_refused_naming_both(tmp_path: Path) -> None:
    said = r"the injected field 'order' is a parameter of the tool 'refund'"
    with pytest.raises(InvalidConfig, match=said):
        Agent("ops", "a:b", tools=[add, refund], injected_tool_args={"order": "x"})
    data = {"name": "ops", "model": "a:b", "tools": ["refund"], "injected_tool_args": {"order": "x"}}
    with pytest.raises(InvalidConfig, match=said):
        Agent.from_dict(data, tools=[refund])
    with pytest.raises(InvalidConfig, match="parameter of the tool 'refund'"):
        run_sync(Agent("ops", "scripted:demo", injected_tool_args={"order": "x"}), "hi", tools=[refund])


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("policy", "strict"),
        ("policy", {"rules": [{"match": "x", "decision": "maybe"}]}),
        ("policy", {"surprise": 1}),
        ("approval_expiry", 0),
        ("approval_expiry", "soon"),
        ("approval_expiry", float("inf")),
        ("emit_mcp_progress", "yes"),
        ("profile", "coding"),
        ("profile", "wizard"),
        ("workspace", "no/such/folder"),
        ("workspace", 5),
    ],
)
def test_a_gate_that_makes_no_sense_is_refused_by_name(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match=field):
        Agent.from_dict({"name": "ops", "model": "a:b", field: wrong})
