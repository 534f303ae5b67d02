"""Servers and their tools, as values for whoever asks."""

from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.mcp import McpParkedTool, McpServerState, McpToolState
from wakeful.settings.home import home
from wakeful.tools.mcp import places
from wakeful.tools.mcp.config import mcp_servers
from wakeful.tools.mcp.pins import ParkedTool, Pins
from wakeful.tools.mcp.servers import HttpServer
from wakeful.tools.mcp.source import McpSource


def sources(config: "str | PathLike[str] | None") -> list[McpSource]:
    """The servers of a file; of `mcp.json` in the home when none is named, and of none when there is none."""
    if config is None:
        config = home() / "mcp.json"
        if not Path(config).exists():
            return []
    return mcp_servers(config)


def source(config: "str | PathLike[str] | None", name: str) -> McpSource:
    """One server. Raises InvalidConfig with what there is."""
    found = {each.server.name: each for each in sources(config)}
    if name not in found:
        near = get_close_matches(name, found, n=2, cutoff=0.5)
        where = config if config is not None else home() / "mcp.json"
        if not Path(where).exists():
            raise InvalidConfig(f"there is no file {where} to name an MCP server {name!r}", "docs/mcp.md has its form")
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(found) or 'none'}"
        raise InvalidConfig(f"{where} names no MCP server {name!r}", hint)
    return found[name]


def states(config: "str | PathLike[str] | None") -> tuple[McpServerState, ...]:
    """Every server, without starting one."""
    return tuple(_state(each) for each in sources(config))


async def tools_of(given: McpSource) -> tuple[McpToolState, ...]:
    """A server's tools, asked of the server itself."""
    try:
        offer = await given.offer()
    finally:
        await given.close()
    offered = [
        McpToolState(
            name=tool.name,
            status="offered",
            effect=tool.declaration.effect,
            permission_class=tool.declaration.permission,
            description=tool.declaration.description,
        )
        for tool in offer.tools
    ]
    withheld = [
        McpToolState(name=each.name, status=each.status, reason=each.reason, description=each.description)
        for each in offer.withheld
    ]
    return (*offered, *withheld)


def approve(name: str, tools: tuple[str, ...] = ()) -> tuple[McpParkedTool, ...]:
    """Accept what changed; says what was accepted. Needs no configuration: it is about what was seen.

    Raises InvalidConfig for a server of which nothing was ever seen.
    """
    pins = Pins(places.pins_file())
    if not pins.known(name) and not pins.parked(name):
        raise InvalidConfig(f"no tool of an MCP server {name!r} was ever seen", "which there are: wakeful mcp list")
    return tuple(map(_parked, pins.approve(name, tools or None)))


def _state(given: McpSource) -> McpServerState:
    server = given.server
    return McpServerState(
        name=server.name,
        kind="http" if isinstance(server, HttpServer) else "stdio",
        where=server.where,
        login=isinstance(server, HttpServer) and server.oauth is not None,
        known_tools=len(given.pins.known(server.name)),
        parked=tuple(map(_parked, given.pins.parked(server.name))),
    )


def _parked(each: ParkedTool) -> McpParkedTool:
    return McpParkedTool(tool=each.tool, since=each.since, changed=each.changed, description=each.description)
