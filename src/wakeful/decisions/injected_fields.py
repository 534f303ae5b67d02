"""Fields that an agent's configuration adds to every tool it shows: the model fills them, no tool ever sees them.

Each is a name and the description that is shown. They are merged into a copy of the schema as optional texts, and taken
out of the arguments again before anything else looks at the call.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.parameter_schemas import property_names
from wakeful.contracts.tools import ToolDeclaration


class SplitArguments(NamedTuple):
    """What the model wrote, parted."""

    executable: dict[str, Any]
    injected_args: dict[str, Any]
    """As they came, of whatever type."""


def check_collisions(who: str, injected: Mapping[str, str], tools: Iterable[ToolDeclaration]) -> None:
    """No injected name may be a tool's own parameter. Raises InvalidConfig, naming the field and the tool."""
    for tool in tools if injected else ():
        taken = sorted(property_names(tool.input_schema) & injected.keys())
        if taken:
            raise InvalidConfig(
                f"{who}: the injected field {taken[0]!r} is a parameter of the tool {tool.name!r}",
                "give the injected field another name",
            )


def with_injected(schema: Mapping[str, Any], injected: Mapping[str, str]) -> dict[str, Any]:
    """A copy of a tool's schema with the injected fields as optional properties; the schema itself never changes.

    A provider that wants every property required makes them nullable when it emits the schema, as it does with any
    other optional property.
    """
    shown = copy.deepcopy(dict(schema))
    if not injected:
        return shown
    added = {name: {"type": "string", "description": words} for name, words in injected.items()}
    own = shown.get("properties")
    shown["properties"] = {**(own if isinstance(own, dict) else {}), **added}
    return shown


def shown_tools(tools: Sequence[ToolDeclaration], injected: Mapping[str, str]) -> Sequence[ToolDeclaration]:
    """The tools as the model is shown them. Without injected fields, the very same."""
    if not injected:
        return tools
    return [tool.model_copy(update={"input_schema": with_injected(tool.input_schema, injected)}) for tool in tools]


def split(arguments: Mapping[str, Any], injected: Iterable[str]) -> SplitArguments:
    """What the tool is to get, and what it is not. Done before any hook, gate or executor sees the call."""
    names = frozenset(injected)
    if not names:
        return SplitArguments(dict(arguments), {})
    return SplitArguments(
        {name: value for name, value in arguments.items() if name not in names},
        {name: value for name, value in arguments.items() if name in names},
    )
