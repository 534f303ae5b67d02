"""The published shapes are those of the documents that are really written and read."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wakeful import Agent
from wakeful.bootstrap.homes import check_home
from wakeful.contracts.errors import WakefulError
from wakeful.contracts.retention import Retention
from wakeful.contracts.telemetry import DaemonLog, Telemetry
from wakeful.engine.agent_data import WRITTEN
from wakeful.providers.endpoint_settings import KNOWN as PROVIDER
from wakeful.retrieval.named_collections import FIELDS as COLLECTION
from wakeful.service.owner_hooks import KNOWN as HOOK
from wakeful.service.queries.schemas import agent_schema, owner_schema
from wakeful.settings.connect_profiles import KNOWN as CONNECT
from wakeful.settings.daemon import KNOWN as DAEMON
from wakeful.settings.heartbeat import KNOWN as HEARTBEAT
from wakeful.settings.model_rules import KNOWN as MODELS
from wakeful.settings.notify_targets import KNOWN as NOTIFY
from wakeful.settings.owner_file import SECTIONS
from wakeful.settings.retry import KNOWN as RETRY
from wakeful.settings.spend_windows import LINES, TIMEZONE
from wakeful.tools.local.output_budget import DEFAULT_SETTING, MAX_SETTING

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
    assert set(agent_schema()["properties"]) == {*WRITTEN, "instructions_file"}


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


def test_the_owners_schema_has_the_settings_that_the_readers_know() -> None:
    known = {
        "ModelsTable": MODELS,
        "BudgetTable": (*LINES, TIMEZONE),
        "WindowsTable": tuple(LINES),
        "ProviderTable": PROVIDER,
        "HookTable": HOOK,
        "CollectionTable": COLLECTION,
        "RuntimeTable": (DEFAULT_SETTING, MAX_SETTING),
        "Retention": tuple(Retention.model_fields),
        "NotifyTable": NOTIFY,
        "Telemetry": tuple(Telemetry.model_fields),
        "DaemonLog": tuple(DaemonLog.model_fields),
        "ConnectTable": CONNECT,
        "HeartbeatTable": HEARTBEAT,
        "RetryTable": RETRY,
        "DaemonTable": DAEMON,
    }
    schema = owner_schema()
    assert set(schema["properties"]) == set(SECTIONS)
    tables = {name: shape for name, shape in schema["$defs"].items() if name != "WindowSection"}
    assert {name: set(shape["properties"]) for name, shape in tables.items()} == {
        name: set(names) for name, names in known.items()
    }


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('store = "runs.db"\n[models]\nallow = ["a:*"]\n[budget]\nper_day = {usd = 5}\ntimezone = "UTC"', True),
        ('[[hooks]]\ncommand = ["true"]\n[collections.a]\nfolder = "."\n[notify.phone]\nto_env = "PHONE"', True),
        ('[providers.vllm]\nbase_url = "http://127.0.0.1/v1"\nkey_env = ["A", "B"]\n[retention]\nturns = 0', True),
        ('[connect.a]\naddress = "https://agents.example"\ntoken_file = "t"', True),
        ('[connect.a]\ntoken_file = "t"', False),
        ("[model]", False),
        ("[models]\nofline = true", False),
        ("[budget]\nper_day = 5", False),
        ('[[hooks]]\npoint = "sometimes"\ncommand = "true"', False),
        ('[notify.phone]\nquiet = "at night"\nto = "https://ntfy.example"', False),
        ("[runtime]\nmax_tool_output_tokens = 0", False),
        ("[collections.a]\nuntrusted = true", False),
        ("[retention]\nturns = -1", False),
        ('[telemetry]\nendpoint = "https://otel.example.org"\n[log]\nformat = "json"', True),
        ('[telemetry]\nendpoint = "otel.example.org"', False),
        ('[log]\nformat = "xml"', False),
        ("store = 3", False),
    ],
)
def test_the_owners_schema_and_the_check_say_the_same_of_a_file(text: str, fits: bool, tmp_path: Path) -> None:
    (tmp_path / "wakeful.toml").write_text(text)
    validator = Draft202012Validator(owner_schema())
    assert (not list(validator.iter_errors(tomllib.loads(text)))) == fits
    report = check_home(tmp_path)
    assert report.valid == fits, report.problems
