"""`wakeful mcp list`, `tools`, `approve`, `login`: the owner's MCP servers. Listing them starts none."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap.mcp_servers import mcp_approve, mcp_login, mcp_states, mcp_tools, mcp_untrusted, open_page
from wakeful.contracts.mcp import McpServerState
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.options import JsonOption, McpConfigOption, McpServerArgument, WideOption
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain


def listed(config: McpConfigOption = None, json: JsonOption = False, wide: WideOption = False) -> None:
    """List your MCP servers, the number of known tools of each, and the tools that changed. Starts no server.

    Servers come from mcp.json in your wakeful home and, once you trust it, from mcp.json of the current folder.
    """
    found = mcp_states(config)
    for path in mcp_untrusted() if config is None else ():
        note(f"not trusted, so its servers do not start: {path.name}\nread it, then: wakeful trust {path.name}")
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
        return
    if not found:
        out("no MCP servers; docs/guides/mcp.md shows how to add one to mcp.json")
        return
    out(columns([_row(each) for each in found], ("SERVER", "KIND", "TOOLS", "CHANGED", "ADDRESS"), wide=wide))
    for each in found:
        if each.parked:
            tools = ", ".join(parked.tool for parked in each.parked)
            out(plain(f"changed      {tools}: wakeful mcp approve {each.name}"))


def _row(state: McpServerState) -> tuple[str, ...]:
    tools = str(state.known_tools) if state.known_tools else "-"
    return state.name, state.kind, tools, str(len(state.parked)) if state.parked else "-", state.where


def tools(
    server: McpServerArgument, config: McpConfigOption = None, json: JsonOption = False, wide: WideOption = False
) -> None:
    """Start a server, or connect to it, and list its tools: offered or not, and why.

    Ends with exit code 1 if the server is not available.
    """
    found = asyncio.run(mcp_tools(config, server))
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    else:
        rows = [
            (each.name, each.status, each.permission_class or "", each.effect or "",
             one_line(each.reason or each.description, 200))
            for each in found
        ]  # fmt: skip
        out(columns(rows, ("TOOL", "STATUS", "CLASS", "EFFECT", "DESCRIPTION"), wide=wide))
    if any(each.status == "unavailable" for each in found):
        raise typer.Exit(FAILED)


def approve(
    server: McpServerArgument,
    tools: Annotated[
        list[str] | None, typer.Argument(metavar="TOOL", help="Only these tools, by the server's own names.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Accept the tools of a server whose description, schema or hints changed, as they were last seen.

    The accepted tools are printed with their new description. A later change has to be accepted again.
    """
    accepted = mcp_approve(server, tuple(tools or ()))
    if json:
        out(json_text([each.model_dump(mode="json") for each in accepted], indent=2))
        return
    if not accepted:
        out(plain(f"no tools of {server} have changed"))
    for each in accepted:
        out(plain(f"accepted     {each.tool}  (as of {each.since}, changed {each.changed})"))
        out(f"             {one_line(each.description, 400)}")


def login(
    server: McpServerArgument,
    config: McpConfigOption = None,
    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="NAME", help="Log in for this principal. Default: for runs without one."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser, or only print the address.")] = True,
) -> None:
    """Log in to an MCP server (OAuth). The token is stored for this server and principal only."""

    def show(url: str) -> None:
        note(f"open {url}")
        if browser:
            open_page(url)

    asyncio.run(mcp_login(config, server, principal, show))
    out(plain(f"logged in to {server}" + (f" for {principal}" if principal else "")))
