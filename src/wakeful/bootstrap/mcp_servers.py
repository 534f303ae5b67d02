"""MCP servers by name: of a file, of the owner, of a folder that is trusted."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import programs
from wakeful.contracts.errors import InvalidConfig

if TYPE_CHECKING:
    from wakeful.contracts.mcp import McpParkedTool, McpServerState, McpToolState
    from wakeful.tools.mcp.source import McpSource


def mcp_states(config: Path | None) -> "tuple[McpServerState, ...]":
    """The MCP servers of a file; of none, those of the owner and of the current folder, once trusted. Starts none."""
    from wakeful.engine.named_servers import server_files
    from wakeful.tools.mcp.config import mcp_servers, servers_of
    from wakeful.tools.mcp.overview import states

    if config is not None:
        return states(mcp_servers(config))
    known: dict[str, Any] = {}
    for file in server_files(Path.cwd()):
        if file.is_trusted:
            for each in servers_of(file.data, str(file.path), file.path.absolute().parent):
                known.setdefault(each.server.name, each)
    return states(known.values())


def mcp_untrusted() -> list[Path]:
    """Files of the current folder that name MCP servers and were not trusted as they are."""
    from wakeful.engine.named_servers import server_files

    return [file.path for file in server_files(Path.cwd()) if not file.is_trusted and not file.problem]


def _mcp_server(config: Path | None, name: str) -> "McpSource":
    from wakeful.engine.named_servers import find_server
    from wakeful.tools.mcp.overview import source

    return source(config, name) if config is not None else find_server(name, Path.cwd())


async def mcp_tools(config: Path | None, name: str) -> "tuple[McpToolState, ...]":
    """A server's tools; the server is started or connected to for it. Raises InvalidConfig."""
    from wakeful.tools.mcp.overview import tools_of

    return await tools_of(_mcp_server(config, name))


def mcp_approve(name: str, tools: tuple[str, ...] = ()) -> "tuple[McpParkedTool, ...]":
    """Accept the changed tools of a server."""
    from wakeful.tools.mcp.overview import approve

    return approve(name, tools)


def open_page(url: str) -> None:
    """Show a page in the browser of whoever sits here. Which program that is, is looked up on the PATH."""
    import webbrowser

    os.environ["PATH"] = programs.search_path()
    webbrowser.open(url)


async def mcp_login(config: Path | None, name: str, principal: str | None, show: Callable[[str], None]) -> None:
    """Log in to a server; `show` gets the address a person has to go to. Raises InvalidConfig."""
    from wakeful.tools.mcp.failures import NotReached

    found = _mcp_server(config, name)
    from wakeful.tools.mcp.login import browser_login

    try:
        await browser_login(found, show, principal)
    except NotReached as problem:
        raise InvalidConfig(f"the MCP server {name!r} refused the login: {problem.message}") from None
