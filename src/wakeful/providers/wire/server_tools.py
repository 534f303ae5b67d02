"""Tools that a provider runs by itself, as far as the formats are alike: what of them is left out of a request."""

from collections.abc import Iterable, Sequence

from wakeful.contracts.tools import ServerTool


def untaken_options(tools: Sequence[ServerTool], taken: Iterable[str]) -> list[str]:
    """The options of server tools that a format has no word for, as `left_out` names them."""
    known = {*taken}
    given = ("max_uses", "allowed_domains", "blocked_domains")
    return [f"{tool.kind}.{name}" for tool in tools for name in given if getattr(tool, name) and name not in known]


def untaken_tools(tools: Sequence[ServerTool]) -> list[str]:
    """Server tools of a request to a format, or a model, that has none."""
    return [f"tools.{tool.kind}" for tool in tools]
