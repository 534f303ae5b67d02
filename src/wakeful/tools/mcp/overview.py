"""Servers and their tools as values, for listings."""

from collections.abc import Iterable
from difflib import get_close_matches
from os import PathLike

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.mcp import McpParkedTool, McpServerState, McpToolState
from wakeful.tools.mcp import places
from wakeful.tools.mcp.config import mcp_servers
from wakeful.tools.mcp.pins import ParkedTool, Pins
from wakeful.tools.mcp.servers import HttpServer
from wakeful.tools.mcp.source import McpSource


def source(config: "str | PathLike[str]", name: str) -> McpSource:
    """One server of a file. Raises InvalidConfig with what there is."""
    found = {each.server.name: each for each in mcp_servers(config)}
    if name not in found:
        near = get_close_matches(name, found, n=2, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(found) or 'none'}."
        raise InvalidConfig(f"there is no MCP server {name!r} in {config}", hint)
    return found[name]


def states(sources: Iterable[McpSource]) -> tuple[McpServerState, ...]:
    """Every server, without starting one."""
    return tuple(_state(each) for each in sources)


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
        raise InvalidConfig(f"no tool of an MCP server {name!r} was ever seen", "List the servers: wakeful mcp list")
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
