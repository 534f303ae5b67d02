"""An agent's configuration as data: what travels through JSON and YAML, and what is refused because it cannot.

Nothing is dropped in silence, in either direction: an unknown field is an error with its name, and so is a field whose
value has no written form. Tools travel by name and are found among those the reader supplies; no name is ever imported.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.errors import InvalidConfig, NotBuiltYet, UnknownTool
from wakeful.engine.agent_checks import default_profile
from wakeful.engine.agent_options import OPTIONS, AgentOptions, is_default
from wakeful.engine.option_forms import CannotTravel, texts_read
from wakeful.tools.tool import Tool

SAMPLING = ("temperature", "max_tokens")
"""Settings that stand at the top of a written configuration."""
IDENTITY = ("name", "model", "instructions", "tools")
"""What an agent has beside its options."""
WRITTEN = (*IDENTITY, *SAMPLING, *(name for name, each in OPTIONS.items() if each.is_written))
WINDOWS = {"per_hour": "hour", "per_day": "day", "per_month": "month"}
"""What all runs of an agent together may spend, beside what one may (`per_run`)."""
FILE_HINT = "Name a YAML or JSON file with name, model and instructions; `wakeful schema agent` has every field."
LATER = ("instructions_file", "notify")
ARGUMENTS = (*IDENTITY, "deps", "deps_type", "output_type", *OPTIONS)
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


def written(name: str, model: str, instructions: str, tools: Sequence[Tool[Any]], said: AgentOptions) -> dict[str, Any]:
    """An agent as JSON data. Raises InvalidConfig, naming the option that cannot travel."""
    data: dict[str, Any] = {
        "name": name,
        "model": model,
        "instructions": instructions,
        "tools": [tool.name for tool in tools],
    }
    windows: dict[str, Any] = {}
    for field, each in OPTIONS.items():
        try:
            value = each.write(getattr(said, field))
        except CannotTravel as error:
            raise cannot_travel(name, field, error.why, error.hint) from None
        if field == "settings":
            data |= {sampled: value.pop(sampled, None) for sampled in SAMPLING}
        elif field == "spend_windows":
            windows = value
        elif field == "profile" and value == default_profile(said.workspace):
            continue
        if each.is_written and (each.always or not is_default(each, value)):
            data[field] = value
    if windows:
        data["budget"] = {"per_run": data["budget"], **windows} if "budget" in data else windows
    return data


def cannot_travel(name: str, field: str, why: str, hint: str = "") -> InvalidConfig:
    """The error for what only a program can hold."""
    return InvalidConfig(
        f"Agent {name!r} cannot be written down: {field} cannot travel, {why}",
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
        if field not in WRITTEN and field != "hooks":  # they are code: only their absence can be written
            raise UnknownField(str(field), where)
    for field in ("name", "model"):
        if not isinstance(data.get(field), str):
            raise InvalidConfig(f"{where}: {field} is missing or not a string", f"give {field}: ...")
    if not isinstance(data.get("instructions", ""), str):
        raise InvalidConfig(f"{where}: instructions are a string, not {data['instructions']!r}")
    fields = {name: data[name] for name in IDENTITY if name in data}
    fields["tools"] = tuple(_named(name, tools, where) for name in texts_read(f"{where}: tools", data.get("tools")))
    for name, each in OPTIONS.items():
        if name in data:
            fields[name] = data[name] if each.read is None else each.read(f"{where}: {name}", data[name])
    fields["settings"] = _settings(data, where)
    fields["budget"], fields["spend_windows"] = _budget(data, where)
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
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}", FILE_HINT) from None
    try:
        if path.suffix == ".json":
            data = json.loads(text)
        else:
            import yaml

            data = yaml.safe_load(text)
    except Exception as error:  # a parser's own error, json's or yaml's
        raise InvalidConfig(f"{path}: is not {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from None
    if not isinstance(data, dict):
        raise InvalidConfig(f"{path} holds a {type(data).__name__}, not an agent's configuration", FILE_HINT)
    return data
