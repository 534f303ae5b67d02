"""Which tools a model has to call, or may not call.

Names may be bare (the last part of a name, where only one tool has it); requests have them in full.
`required` and names hold for the first reply of a turn: a choice that held for every reply would leave no room for an
answer. `none` holds for all of them.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.model_settings import ToolChoice


def choosable(who: str, choice: ToolChoice | None, tools: Sequence[str]) -> ToolChoice | None:
    """The choice with the names of tools in full. Raises UnknownTool, or InvalidConfig without any tool."""
    if choice is None or choice in ("auto", "none"):
        return choice
    if not tools:
        raise InvalidConfig(
            f"{who}: settings.tool_choice={_told(choice)}, and it has no tools", "give tools, or leave tool_choice out"
        )
    if not isinstance(choice, tuple):
        return choice
    return tuple(dict.fromkeys(_full_name(who, name, tools) for name in choice))


def choice_now(choice: ToolChoice | None, *, answered: int, final: bool, has_tools: bool) -> ToolChoice:
    """What holds for a request, after `answered` replies of the turn; `final`: it has to be the answer."""
    if not has_tools or choice is None:
        return "none" if final and has_tools else "auto"
    if final or choice == "none":
        return "none"
    return choice if answered == 0 else "auto"


def _full_name(who: str, name: str, tools: Sequence[str]) -> str:
    if name in tools:
        return name
    found = [tool for tool in tools if tool.rpartition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    message = f"{who}: settings.tool_choice names {name!r}"
    if found:
        raise UnknownTool(f"{message}, which several tools are called", f"write one of: {', '.join(found)}")
    near = get_close_matches(name, [*tools, *(tool.rpartition("/")[2] for tool in tools)], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"its tools are: {', '.join(tools)}"
    raise UnknownTool(f"{message}, which is not among its tools", hint)


def _told(choice: ToolChoice) -> str:
    return repr(list(choice) if isinstance(choice, tuple) else choice)
