"""The controls of an agent: the same from every way in, and the same after every way through."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, run
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.events import TurnStarted
from wakeful.engine.agent_checks import tools_of_the_runtime
from wakeful.service.queries.schemas import agent_schema
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.decorator import tool
from wakeful.tools.tool import Tool


@tool(effect="irreversible")
def deploy_service(service: str) -> str:
    return service


@tool(effect="irreversible")
def rotate_credentials(owner: str) -> str:
    return owner


TOOLS: list[Tool[Any]] = [deploy_service, rotate_credentials]
DEFAULTS: dict[str, Any] = {
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
OTHERS: dict[str, Any] = {
    "planning_enabled": True,
    "planning_model": "openai/gpt-4o-mini",
    "planning_instructions": "Kurz, bitte: ü.\n",
    "budget_awareness": "per-message",
    "hitl_tools": ["rotate_credentials", "deploy_service"],
    "emit_mcp_progress": False,
    "injected_tool_args": {"ui_request_id": "Opaque.", "a b": ""},
    "allow_parallel_subagents": True,
    "max_parallel_subagents": 7,
}
EXAMPLE: dict[str, Any] = {
    "name": "ops-supervisor",
    "model": "openai:gpt-4o",
    "instructions": "Make a plan, work with care, and hand dangerous actions to a human.",
    "max_steps": 12,
    "temperature": 0.2,
    "max_tokens": 4096,
    "planning_enabled": True,
    "planning_model": "openai:gpt-4o-mini",
    "planning_instructions": "Answer with a short numbered plan.",
    "budget_awareness": "limit:70",
    "hitl_tools": ["deploy_service", "rotate_credentials"],
    "emit_mcp_progress": True,
    "injected_tool_args": {
        "ui_request_id": "Opaque correlation id of the user interface.",
        "run_origin": "Short label of the calling surface, e.g. playground or workflow.",
    },
    "allow_parallel_subagents": True,
    "max_parallel_subagents": 4,
}
NAMES = ["deploy_service", "rotate_credentials"]


def bare(**fields: Any) -> dict[str, Any]:
    return {"name": "ops", "model": "a:b", "tools": NAMES, **fields}


def held(agent: Agent[Any, Any]) -> dict[str, Any]:
    """The nine fields of an agent as JSON would have them."""
    found: dict[str, Any] = json.loads(json.dumps({name: getattr(agent, name) for name in DEFAULTS}))
    return found


@pytest.mark.spec("CTL-CFG-01", "CTL-CFG-20")
def test_an_agent_and_its_configuration_have_the_nine_fields_and_their_defaults() -> None:
    published = agent_schema()["properties"]
    properties = {name: published[name] for name in DEFAULTS}
    shapes = {
        name: (shape.get("type") or [each["type"] for each in shape["anyOf"]], shape["default"])
        for name, shape in properties.items()
    }
    text_or_none = ["string", "null"]
    assert shapes == {
        "planning_enabled": ("boolean", False),
        "planning_model": (text_or_none, None),
        "planning_instructions": ("string", ""),
        "budget_awareness": (text_or_none, None),
        "hitl_tools": ("array", []),
        "emit_mcp_progress": ("boolean", True),
        "injected_tool_args": ("object", {}),
        "allow_parallel_subagents": ("boolean", False),
        "max_parallel_subagents": ("integer", 3),
    }
    assert properties["hitl_tools"]["items"] == {"type": "string"}
    assert properties["injected_tool_args"]["additionalProperties"] == {"type": "string"}
    # The agent's own, what it writes, and what a configuration without them is read as.
    made = Agent("ops", "a:b")
    written = made.to_dict()
    assert held(made) == DEFAULTS == {name: written[name] for name in DEFAULTS}
    assert held(Agent.from_dict(bare(), tools=TOOLS)) == DEFAULTS
    types = {name: type(getattr(made, name)) for name in ("planning_enabled", "emit_mcp_progress")}
    assert types == {"planning_enabled": bool, "emit_mcp_progress": bool}


@pytest.mark.spec("CTL-CFG-15")
@pytest.mark.parametrize("field", DEFAULTS)
def test_every_field_is_written_and_read_back_with_its_default_and_with_another_value(field: str) -> None:
    assert DEFAULTS[field] != OTHERS[field]
    for value in (DEFAULTS[field], OTHERS[field]):
        agent = Agent.from_dict(bare(**{field: value}), tools=TOOLS)
        written = agent.to_dict()
        assert {name: written[name] for name in DEFAULTS} == {**DEFAULTS, field: value}
        again = Agent.from_dict(json.loads(json.dumps(written)), tools=TOOLS)
        assert held(again) == {**DEFAULTS, field: value}
    whole = Agent.from_dict(bare(**OTHERS), tools=TOOLS)
    assert held(whole) == held(Agent.from_dict(whole.to_dict(), tools=TOOLS)) == OTHERS


@pytest.mark.spec("CTL-CFG-19")
def test_the_example_of_the_specification_loads_and_comes_back_as_equal_json() -> None:
    """Tools are registered by being named, and supplied by whoever reads the file."""
    config = {**EXAMPLE, "tools": NAMES}
    agent = Agent.from_dict(config, tools=TOOLS)
    assert json.loads(json.dumps(agent.to_dict())) == json.loads(json.dumps(config))
    assert held(agent) == {name: EXAMPLE[name] for name in DEFAULTS}
    with pytest.raises(UnknownTool, match="hitl_tools names 'deploy_service'"):
        Agent.from_dict(EXAMPLE, tools=TOOLS)


@pytest.mark.parametrize("fields", [DEFAULTS, OTHERS])
@pytest.mark.parametrize("name", ["agent.json", "agent.yaml", "agent.yml"])
def test_a_file_keeps_all_nine(name: str, fields: dict[str, Any], tmp_path: Path) -> None:
    Agent.from_dict(bare(**fields), tools=TOOLS).to_file(tmp_path / name)
    assert held(Agent.from_file(tmp_path / name, tools=TOOLS)) == fields


def test_another_agent_made_from_one_keeps_all_nine_and_the_rest(tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "subtasks": True,
        "collections": ["handbook", "faq"],
        "compaction": {"threshold": 0.5, "model": "a:b"},
        "skills": [str(tmp_path)],
    }
    agent = Agent.from_dict(bare(**OTHERS, **more), tools=TOOLS)
    for each in (agent, agent.changed(max_steps=3), Agent.from_dict(agent.to_dict(), tools=TOOLS)):
        assert held(each) == OTHERS
        assert (each.subtasks, each.collections, each.skills) == (True, ("handbook", "faq"), (str(tmp_path),))
        assert each.compaction == CompactionPolicy(threshold=0.5, model="a:b")
    written = agent.to_dict()
    assert {name: written[name] for name in more} == more
    assert not more.keys() & Agent("ops", "a:b").to_dict().keys(), "what has its default is left out"
    assert agent.changed(subtasks=False, hitl_tools=[]).hitl_tools == ()


MAKERS: list[Callable[[dict[str, Any], Path], Agent[Any, Any]]] = [
    lambda fields, _: Agent("ops", "a:b", tools=TOOLS, **fields),
    lambda fields, _: Agent("ops", "a:b", tools=TOOLS).changed(**fields),
    lambda fields, _: Agent.from_dict(bare(**fields), tools=TOOLS),
    lambda fields, folder: _from_file(fields, folder / "agent.json"),
    lambda fields, folder: _from_file(fields, folder / "agent.yaml"),
]


def _from_file(fields: dict[str, Any], path: Path) -> Agent[Any, Any]:
    path.write_text(json.dumps(bare(**fields)))  # JSON is YAML too
    return Agent.from_file(path, tools=TOOLS)


@pytest.mark.parametrize("make", MAKERS, ids=["made", "changed", "data", "json", "yaml"])
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("planning_enabled", "yes"),
        ("planning_model", "gpt-5"),
        ("planning_instructions", None),
        ("budget_awareness", "limit:101"),
        ("hitl_tools", ["absent"]),
        ("hitl_tools", ["run_subtask"]),
        ("hitl_tools", "deploy_service"),
        ("emit_mcp_progress", "no"),
        ("injected_tool_args", {"": "x"}),
        ("injected_tool_args", {"reason": {"type": "string"}}),
        ("allow_parallel_subagents", 1),
        ("max_parallel_subagents", 0),
        ("max_parallel_subagents", 8),
        ("subtasks", "yes"),
        ("collections", "handbook"),
        ("collections", [""]),
        ("compaction", {"threshold": 2}),
        ("skills", "here"),
        ("skills", ["no/such/folder"]),
        ("skills", [5]),
    ],
)
def test_no_way_in_accepts_what_another_refuses(make: Any, field: str, wrong: Any, tmp_path: Path) -> None:
    with pytest.raises((InvalidConfig, UnknownTool), match=rf"Agent 'ops': {field}"):
        make({field: wrong}, tmp_path)
    assert held(make({}, tmp_path)) == DEFAULTS


@pytest.mark.spec("CTL-CFG-05")
def test_budget_awareness_is_per_message_or_a_limit_and_nothing_else() -> None:
    for good in (None, "per-message", *(f"limit:{n}" for n in range(101))):
        assert Agent("ops", "a:b", budget_awareness=good).budget_awareness == good
    assert Agent("ops", "a:b").budget_awareness is None
    for wrong in ("limit:101", "limit:-1", "limit:7.5", "limit:", "LIMIT:5", "", "always", "limit:5%", "Per-message"):
        with pytest.raises(InvalidConfig, match=f"budget_awareness={wrong!r}"):
            Agent("ops", "a:b", budget_awareness=wrong)


def test_what_is_switched_off_keeps_its_settings() -> None:
    agent = Agent("ops", "a:b", planning_model="a:c", planning_instructions="Plan.", max_parallel_subagents=6)
    again = Agent.from_dict(agent.to_dict())
    assert (again.planning_enabled, again.planning_model, again.planning_instructions) == (False, "a:c", "Plan.")
    assert (again.allow_parallel_subagents, again.max_parallel_subagents) == (False, 6)


def test_a_tool_that_the_configuration_gives_may_need_a_person() -> None:
    agent = Agent("ops", "a:b", subtasks=True, hitl_tools=["run_subtask", "spawn_*"])
    assert agent.hitl_tools == ("run_subtask", "spawn_*")
    parallel = Agent("ops", "a:b", allow_parallel_subagents=True, hitl_tools=["spawn_parallel"])
    assert parallel.hitl_tools == ("spawn_parallel",)
    with pytest.raises(UnknownTool, match="'spawn_parallel', which is not among its tools"):
        Agent("ops", "a:b", subtasks=True, hitl_tools=["spawn_parallel"])


def test_what_the_configuration_gives_are_tools() -> None:
    off = {"subtasks": False, "allow_parallel_subagents": False, "work_items": False, "memory": False}
    assert tools_of_the_runtime(**off) == ()
    assert tools_of_the_runtime(**off | {"allow_parallel_subagents": True}) == ("spawn_self", "spawn_parallel")
    assert "run_subtask" in tools_of_the_runtime(**off | {"subtasks": True})
    assert "memory_search" in tools_of_the_runtime(**off | {"memory": True})


CARRIED: dict[str, Any] = {
    "emit_mcp_progress": False,
    "planning_model": "scripted:planner",
    "planning_instructions": "Plan.",
    "budget_awareness": "limit:100",
    "max_parallel_subagents": 5,
    "collections": ("handbook",),
    "compaction": CompactionPolicy(keep_user_turns=2),
}


async def test_a_turn_is_begun_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that change nothing about this turn; the switches are shown by what they switch on."""
    settings = tmp_path / "wakeful.toml"
    settings.write_text('[collections.handbook]\nfolder = "."\n')
    monkeypatch.setenv("WAKEFUL_CONFIG", str(settings))
    store = MemoryStore()
    result = await run(Agent("ops", scripted(["done"], context_window=100_000), **CARRIED), "go", store=store)
    facts = [entry.fact.event for entry in await store.read(result.agent_id)]
    started = next(event for event in facts if isinstance(event, TurnStarted))
    config = TurnConfig.model_validate_json(await store.get_blob(started.config_ref.digest))
    await store.close()
    assert {name: getattr(config, name) for name in CARRIED} == CARRIED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *CARRIED.items(),
        ("planning_enabled", True),
        ("allow_parallel_subagents", True),
        ("subtasks", True),
        ("injected_tool_args", {"reason": "why"}),
        ("sandbox", {"network": "full"}),
    ],
)
def test_a_turn_that_is_resumed_with_another_one_says_so(field: str, value: Any) -> None:
    before = TurnConfig(agent_name="ops", model_ref="a:b")
    after = before.model_copy(update={field: value})
    assert after.changes_from(before) == (field,)
    assert before.changes_from(before) == ()
