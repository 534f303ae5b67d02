"""An agent's configuration as data: what travels through JSON and YAML, and what is refused because it cannot.

Nothing is dropped in silence, in either direction: an unknown field is an error with its name, and so is a field whose
value has no written form. Tools travel by name and are found among those the reader supplies; no name is ever imported.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS
from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.controls import CONTROLS
from wakeful.contracts.errors import InvalidConfig, NotBuiltYet, UnknownTool
from wakeful.contracts.policies import GatePolicy
from wakeful.engine import agent_checks
from wakeful.tools.function import Tool

if TYPE_CHECKING:
    from wakeful.engine.agent import Agent

SAMPLING = ("temperature", "max_tokens")
"""Settings that stand at the top of a written configuration."""
WRITTEN = (
    "name",
    "model",
    "instructions",
    "tools",
    "max_steps",
    *SAMPLING,
    "settings",
    "fallbacks",
    "budget",
    "profile",
    "workspace",
    "sandbox",
    "policy",
    "approval_expiry",
    "skills",
    "subtasks",
    "collections",
    "compaction",
    *CONTROLS,
)
PLAIN = (
    "name",
    "model",
    "instructions",
    "max_steps",
    "profile",
    "workspace",
    "sandbox",
    "approval_expiry",
    "skills",
    "subtasks",
    "collections",
    "compaction",
    *CONTROLS,
    "hooks",
)
"""What the agent is given as it is written, and checks itself. Hooks are code: only their absence can be written."""
WINDOWS = {"per_hour": "hour", "per_day": "day", "per_month": "month"}
"""What all runs of an agent together may spend, beside what one may (`per_run`)."""
LATER = ("instructions_file", "wake", "notify")
ARGUMENTS = (
    *(field for field in WRITTEN if field not in SAMPLING),
    "spend_windows",
    "hooks",
    "deps",
    "deps_type",
    "output_type",
)
"""What a program gives to `Agent(...)`."""


class UnknownField(InvalidConfig, TypeError):
    """A field nobody has heard of; a TypeError too, because that is what Python says of a wrong keyword."""

    def __init__(self, field: str, where: str, known: Sequence[str] = WRITTEN) -> None:
        near = get_close_matches(field, known, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(known)}"
        super().__init__(f"{where} has no field {field!r}", hint)


def find_tool(name: str, tools: Sequence[Tool[Any]]) -> Tool[Any] | None:
    """A tool by its name, or by the last part of its name where that is unambiguous."""
    for tool in tools:
        if tool.name == name:
            return tool
    bare = [tool for tool in tools if tool.name.rpartition("/")[2] == name]
    return bare[0] if len(bare) == 1 else None


# --- out -----------------------------------------------------------------------------------------------------------


def to_dict(agent: "Agent[Any, Any]") -> dict[str, Any]:
    """An agent as JSON data. Raises InvalidConfig, naming the field that cannot travel."""
    if not isinstance(agent.instructions, str):
        raise _cannot_travel(agent, "instructions", "they are a function")
    if not isinstance(agent.model, str):
        raise _cannot_travel(agent, "model", "it is a live object", "name it: model='provider:model'")
    for choice in agent.fallbacks:
        if not isinstance(choice, str):
            raise _cannot_travel(agent, "fallbacks", "one is a live object", "name it: 'provider:model'")
    if agent.deps is not None:
        raise _cannot_travel(agent, "deps", "it is a function")
    if agent.deps_type is not None and agent.needs_deps_for is None:
        # Where a tool reads deps the tool itself says so, wherever it is found again.
        raise _cannot_travel(agent, "deps_type", "it is a class and no tool asks for it")
    if agent.output_type is not str:
        raise _cannot_travel(agent, "output_type", "it is a class")
    if agent.hooks:
        raise _cannot_travel(agent, "hooks", "they are functions")
    for collection in agent.collections:
        if not isinstance(collection, str):
            raise _cannot_travel(agent, "collections", f"{collection.name} is a live object", "name it in wakeful.toml")
    for source in agent.given_sources:
        raise _cannot_travel(agent, "tools", f"{source.name} is a live source of tools")
    written: dict[str, Any] = {
        "name": agent.name,
        "model": agent.model,
        "instructions": agent.instructions,
        "tools": [tool.name for tool in agent.tools],
        "max_steps": agent.max_steps,
        **{name: getattr(agent.settings, name) for name in SAMPLING},
    }
    rest = {name: value for name, value in agent.settings.written().items() if name not in SAMPLING}
    if rest:
        written["settings"] = rest
    if agent.fallbacks:
        written["fallbacks"] = list(agent.fallbacks)
    budget = _written_budget(agent)
    if budget is not None:
        written["budget"] = budget
    written.update(_surroundings(agent))
    written.update(agent.controls.model_dump(mode="json"))
    return written


def _written_budget(agent: "Agent[Any, Any]") -> dict[str, Any] | None:
    """What one run may use; with windows, that beside what all of them may spend."""
    one = agent.budget.model_dump(mode="json", exclude_defaults=True) if agent.budget is not None else None
    if not agent.spend_windows:
        return one
    windows = {f"per_{window.period}": {"usd": window.usd} for window in agent.spend_windows}
    return windows if one is None else {"per_run": one, **windows}


def _surroundings(agent: "Agent[Any, Any]") -> dict[str, Any]:
    """What the agent says beyond its controls, as far as it is not the default."""
    said: dict[str, Any] = {
        "profile": agent.profile if agent.profile != agent_checks.default_profile(agent.workspace) else None,
        "workspace": str(agent.workspace) if agent.workspace is not None else None,
        "sandbox": agent.sandbox.as_dict() or None,
        "policy": _stated(agent.policy) if agent.policy is not None else None,
        "approval_expiry": agent.approval_expiry if agent.approval_expiry != DEFAULT_EXPIRY_SECONDS else None,
        "skills": list(agent.skills) or None,
        "subtasks": agent.subtasks or None,
        "collections": list(agent.collections) or None,
        "compaction": agent.compaction.model_dump(mode="json", exclude_defaults=True) or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _cannot_travel(agent: "Agent[Any, Any]", field: str, why: str, hint: str = "") -> InvalidConfig:
    return InvalidConfig(
        f"Agent {agent.name!r} cannot be written down: {field} cannot travel, {why}",
        hint or f"make the agent without {field}, or keep it in code",
    )


# --- in ------------------------------------------------------------------------------------------------------------


def arguments(data: Mapping[str, Any], tools: Sequence[Tool[Any]]) -> dict[str, Any]:
    """The constructor's arguments for a written configuration. Raises InvalidConfig or UnknownTool."""
    if not isinstance(data, Mapping):
        raise InvalidConfig(f"an agent's configuration is an object, not a {type(data).__name__}")
    where = f"the configuration of agent {data.get('name')!r}"
    for field in data:
        if field in LATER:
            raise NotBuiltYet(f"{field!r} in {where}", "take it out; `wakeful schema agent` has the fields there are")
        if field not in WRITTEN and field not in PLAIN:
            raise UnknownField(str(field), where)
    for field in ("name", "model"):
        if not isinstance(data.get(field), str):
            raise InvalidConfig(f"{where}: {field} is missing or not a string", f"give {field}: ...")
    if not isinstance(data.get("instructions", ""), str):
        raise InvalidConfig(f"{where}: instructions are a string, not {data['instructions']!r}")
    fields = {name: data[name] for name in PLAIN if name in data}
    fields["settings"] = _settings(data, where)
    fields["fallbacks"] = _names(data, "fallbacks", where)
    fields["budget"], fields["spend_windows"] = _budget(data, where)
    fields["policy"] = _policy(data, where)
    fields["tools"] = tuple(_named(name, tools, where) for name in _names(data, "tools", where))
    return fields


def _settings(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Settings for the model; two of them stand at the top of a file, or in `settings` like the others."""
    value = data.get("settings") or {}
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where}: settings is an object, not {value!r}")
    top = {name: data[name] for name in SAMPLING if data.get(name) is not None}
    for name in top.keys() & value.keys():
        raise InvalidConfig(f"{where}: {name} stands at the top and in settings", "write it once")
    return {**value, **top}


def _names(data: Mapping[str, Any], field: str, where: str) -> list[str]:
    value = data.get(field) or []
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise InvalidConfig(f"{where}: {field} is a list of names, not {value!r}")
    return list(value)


def _named(name: str, tools: Sequence[Tool[Any]], where: str) -> Tool[Any]:
    found = find_tool(name, tools)
    if found is None:
        supplied = ", ".join(tool.name for tool in tools) or "none"
        raise UnknownTool(f"{where} names the tool {name!r}, which was not supplied", f"supplied: {supplied}")
    return found


def _budget(data: Mapping[str, Any], where: str) -> tuple[Budget | None, tuple[SpendWindow, ...]]:
    """`{model_calls: 8, ...}` for one run, or `{per_run: {...}, per_day: {usd: 2}}`."""
    value = data.get("budget")
    if value is None:
        return None, ()
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where}: budget is an object, not {value!r}", "for example {model_calls: 8, seconds: 60}")
    if not any(name in value for name in ("per_run", *WINDOWS)):
        return _run_budget(value, f"{where}: budget"), ()
    for name in value:
        if name != "per_run" and name not in WINDOWS:
            raise InvalidConfig(f"{where}: budget has {name!r} beside per_...", f"write {name} under per_run")
    one = value.get("per_run")
    windows = tuple(
        _window(value[name], f"{where}: budget.{name}", period) for name, period in WINDOWS.items() if name in value
    )
    return None if one is None else _run_budget(one, f"{where}: budget.per_run"), windows


def _run_budget(value: Any, where: str) -> Budget:
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where} is an object, not {value!r}", "for example {model_calls: 8, seconds: 60}")
    try:
        return Budget(**{str(name): amount for name, amount in value.items()})
    except InvalidBudget as error:
        raise InvalidConfig(f"{where}: {error.message}", error.hint) from None


def _window(value: Any, where: str, period: Any) -> SpendWindow:
    if not isinstance(value, Mapping) or list(value) != ["usd"]:
        raise InvalidConfig(f"{where} is {value!r}", "only money has windows: {usd: 2}")
    try:
        return SpendWindow(period, value["usd"])
    except InvalidBudget as error:
        raise InvalidConfig(f"{where}: {error.message}", error.hint) from None


def _stated(policy: GatePolicy) -> dict[str, Any]:
    """A policy as its file has it: `tools` stands there whenever it was given, for then it replaces the default."""
    said: dict[str, Any] = policy.model_dump(mode="json", exclude_defaults=True)
    return {"tools": {}, **said} if "tools" in policy.model_fields_set else said


def _policy(data: Mapping[str, Any], where: str) -> GatePolicy | None:
    if data.get("policy") is None:
        return None
    value = data["policy"]
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where}: policy is an object, not {value!r}", "for example {tools: {classes: [safe]}}")
    try:
        return GatePolicy.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in ("policy", *first["loc"]))
        raise InvalidConfig(f"{where}: {place}: {first['msg']}") from None


# --- files ---------------------------------------------------------------------------------------------------------


def write(path: Path, data: dict[str, Any]) -> None:
    """YAML, or JSON when the name says so."""
    if path.suffix == ".json":
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    else:
        import yaml  # an agent that is never written must not pay for it

        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """The data of a configuration file. Raises InvalidConfig, naming the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error.strerror}") from None
    try:
        if path.suffix == ".json":
            data = json.loads(text)
        else:
            import yaml

            data = yaml.safe_load(text)
    except Exception as error:  # a parser's own error, json's or yaml's
        raise InvalidConfig(f"{path}: is not {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from None
    if not isinstance(data, dict):
        raise InvalidConfig(f"{path}: holds a {type(data).__name__}, not an agent's configuration")
    return data
