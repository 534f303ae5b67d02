"""Tools that run commands: which of them take several at once, and what beside the command decides how it runs.

The rule: whatever an owner says about running one command holds for every way to run it. A batch is judged item by
item, each item as if it had been called alone. What is typed into a command that runs is judged like a command, too. An
allow that names a command means that command run as usual: another shell, a login shell, a terminal, other variables or
being typed somewhere make something else of the same words.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

BATCHES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"wakeful/exec_command_batch": ("wakeful/exec_command", "items")}
)
"""A tool that takes several calls of another one: that tool, and the argument that holds them."""
INPUTS: Mapping[str, tuple[str, str]] = MappingProxyType({"wakeful/task_input": ("wakeful/exec_command", "input")})
"""A tool that types into a command: the tool that ran it, and the argument with what is typed."""
_TYPED = "typed"
RUN_SETTINGS = ("shell", "login", "tty", "env")
"""Arguments that decide what a command's words come to."""

_NO_ITEMS: list[Mapping[str, Any]] = []


def single_of(name: str) -> str | None:
    """The tool whose calls this tool takes several of, or whose command it types into; None for every other tool."""
    whole = BATCHES.get(name) or INPUTS.get(name)
    return whole[0] if whole is not None else None


def items_of(name: str, arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls in a batch; empty where there are none, or where one of them is no call. What is typed is one call,
    and not one that runs as usual."""
    if name in INPUTS:
        typed = arguments.get(INPUTS[name][1])
        return [{"cmd": typed.strip(), "tty": _TYPED}] if isinstance(typed, str) else _NO_ITEMS
    batch = BATCHES.get(name)
    items = arguments.get(batch[1]) if batch is not None else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return _NO_ITEMS
    return items


def with_item(name: str, arguments: Mapping[str, Any], place: int, item: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a batch with another call in one place."""
    if name in INPUTS:
        return {**arguments, INPUTS[name][1]: item.get("cmd")}
    items: list[Any] = [*items_of(name, arguments)]
    items[place] = dict(item)
    return {**arguments, BATCHES[name][1]: items}


def usual_settings(input_schema: Mapping[str, Any]) -> dict[str, Any]:
    """How a command runs when a call does not say: the defaults that the schema names, None where it names none."""
    properties = input_schema.get("properties")
    found: dict[str, Any] = {}
    for setting in RUN_SETTINGS:
        declared = properties.get(setting) if isinstance(properties, Mapping) else None
        found[setting] = declared.get("default") if isinstance(declared, Mapping) else None
    return found


def item_schema(name: str, input_schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of one call in a batch, a reference to a definition followed."""
    if name in INPUTS:
        return {}
    declared = input_schema.get("properties", {}).get(BATCHES[name][1], {}).get("items", {})
    definition = str(declared.get("$ref", "")).removeprefix("#/$defs/")
    found = input_schema.get("$defs", {}).get(definition, declared)
    return found if isinstance(found, Mapping) else {}


def runs_as_usual(arguments: Mapping[str, Any], usual: Mapping[str, Any], named: Mapping[str, str]) -> bool:
    """Does the call leave alone how commands run, but for what a rule names (`env`, or each `env.NAME` of it)?"""
    for setting in RUN_SETTINGS:
        given = arguments.get(setting)
        if given is None or setting in named or given == usual.get(setting):
            continue
        if isinstance(given, Mapping) and all(f"{setting}.{key}" in named for key in given):
            continue
        return False
    return True
