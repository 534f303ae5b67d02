"""An agent's configuration as data: what travels through JSON and YAML, and what is refused because it cannot.

Nothing is dropped in silence, in either direction: an unknown field is an error with its name, and so is a field whose
value has no written form. Tools travel by name and are found among those the reader supplies; no name is ever imported.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args

from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.errors import InvalidConfig, UnknownTool, inside
from wakeful.engine.agent_checks import default_profile
from wakeful.engine.agent_file import WORDS_FIELD
from wakeful.engine.agent_options import OPTIONS, AgentOptions, is_default
from wakeful.engine.option_forms import CannotTravel, texts_read
from wakeful.tools.local.names import Profile
from wakeful.tools.tool import Tool

_EXAMPLES = {"name": "ops", "model": "anthropic:claude-opus-4-7"}
"""Fields without which no agent is read, and how one is written."""
SAMPLING = ("temperature", "max_tokens")
"""Settings that stand at the top of a written configuration."""
IDENTITY = ("name", "model", "instructions", "tools")
"""What an agent has beside its options."""
WRITTEN = (*IDENTITY, *SAMPLING, *(name for name, each in OPTIONS.items() if each.is_written))
WINDOWS = {"per_hour": "hour", "per_day": "day", "per_month": "month"}
"""What all runs of an agent together may spend, beside what one may (`per_run`)."""
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
        f"Agent {name!r} cannot be saved as data because of {field}: {why}",
        hint or f"make the agent without {field}, or keep it in code",
    )


# --- in ------------------------------------------------------------------------------------------------------------


def arguments(data: Mapping[str, Any], tools: Sequence[Tool[Any]]) -> dict[str, Any]:
    """The constructor's arguments for a written configuration. Raises InvalidConfig or UnknownTool."""
    if not isinstance(data, Mapping):
        raise InvalidConfig(f"an agent's configuration is an object, not a {type(data).__name__}")
    where = f"the configuration of agent {data['name']!r}" if "name" in data else "the configuration of an agent"
    for field in data:
        if field == WORDS_FIELD:
            hint = "give the instructions themselves, as `instructions`"
            raise InvalidConfig(
                f"{where} names a file of instructions, which only an agent's file can do", hint
            ).within(field)
        if field not in WRITTEN and field != "hooks":  # they are code: only their absence can be written
            raise UnknownField(str(field), where).within(field)
    for field, example in _EXAMPLES.items():
        if not isinstance(data.get(field), str):
            fault = f"is {data[field]!r}, not a string" if field in data else "is missing"
            raise InvalidConfig(f"{where}: {field} {fault}", f"give {field}: {example}").within(field)
    if not isinstance(data.get("instructions", ""), str):
        wrong = InvalidConfig(f"{where}: instructions are a string, not {data['instructions']!r}")
        raise wrong.within("instructions")
    fields = {name: data[name] for name in IDENTITY if name in data}
    for name, each in OPTIONS.items():
        if name in data:
            with inside(name):
                fields[name] = data[name] if each.read is None else each.read(f"{where}: {name}", data[name])
    with inside("tools"):
        named = named_tools(data, tools, where)
    fields["tools"] = named.tools
    if named.profile is not None:
        fields["profile"] = named.profile
    if named.servers:
        fields["mcp"] = tuple(dict.fromkeys((*fields.get("mcp", ()), *named.servers)))
    with inside("settings"):
        fields["settings"] = _settings(data, where)
    with inside("budget"):
        fields["budget"], fields["spend_windows"] = _budget(data, where)
    return fields


def _settings(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Settings for the model; two of them stand at the top of a file, or in `settings` like the others."""
    value = data.get("settings") or {}
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where}: settings is an object, not {value!r}")
    top = {name: data[name] for name in SAMPLING if data.get(name) is not None}
    for name in top.keys() & value.keys():
        raise InvalidConfig(f"{where}: {name} is given twice, at the top and in settings", "write it once")
    return {**value, **top}


class NamedTools(NamedTuple):
    """What stands under `tools` in a file: tools by name, a profile, and servers with all that they have."""

    tools: tuple[Tool[Any], ...]
    profile: Profile | None
    servers: tuple[str, ...]


def named_tools(data: Mapping[str, Any], tools: Sequence[Tool[Any]], where: str) -> NamedTools:
    """Raises UnknownTool with near names, InvalidConfig for a second profile and for a part of a server."""
    found: list[Tool[Any]] = []
    servers: list[str] = []
    profile = data.get("profile")
    for place, name in enumerate(texts_read(f"{where}: tools", data.get("tools"))):
        with inside(place):
            known = find_tool(name, tools)
            server, slash, rest = name.removeprefix("mcp.").partition("/")
            if known is not None:
                found.append(known)
            elif name in get_args(Profile):
                if profile not in (None, name):
                    raise InvalidConfig(f"{where} has the profiles {profile} and {name}", "keep one of them")
                profile = name
            elif name.startswith("mcp.") and slash:
                if rest != "*":
                    hint = f"write mcp.{server}/*, and say under policy which of its tools are denied"
                    raise InvalidConfig(f"{where} names {name!r}, and only all tools of a server can be named", hint)
                servers.append(server)
            else:
                raise _not_supplied(name, tools, where)
    return NamedTools(tuple(found), profile, tuple(servers))


def _not_supplied(name: str, tools: Sequence[Tool[Any]], where: str) -> UnknownTool:
    supplied = [tool.name for tool in tools]
    near = get_close_matches(name, [*supplied, *get_args(Profile)], n=2, cutoff=0.6)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return UnknownTool(
        f"{where} names the tool {name!r}, which was not supplied", f"{meant}supplied: {', '.join(supplied) or 'none'}"
    )


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
            wrong = InvalidConfig(f"{where}: budget has {name!r} outside of per_run", f"write {name} under per_run")
            raise wrong.within(str(name))
    windows = []
    for name, period in WINDOWS.items():
        if name in value:
            with inside(name):
                windows.append(_window(value[name], f"{where}: budget.{name}", period))
    if (one := value.get("per_run")) is None:
        return None, tuple(windows)
    with inside("per_run"):
        return _run_budget(one, f"{where}: budget.per_run"), tuple(windows)


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
