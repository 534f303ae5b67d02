"""`wakeful mcp list`, `tools`, `approve`, `login`: the MCP servers of the owner's file. Listing them starts none."""

import asyncio
import webbrowser
from typing import Annotated

import typer

from wakeful.bootstrap import mcp_approve, mcp_login, mcp_states, mcp_tools
from wakeful.contracts.mcp import McpServerState
from wakeful.surfaces.cli.options import JsonOption, McpConfigOption, McpServerArgument
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.shown_values import columns, json_text, one_line, out, plain


def listed(config: McpConfigOption = None, json: JsonOption = False) -> None:
    """List the MCP servers of your file, how many tools each is known to have, and which of them changed.

    Nothing is started and nothing is looked for: only the servers of a file that you name, or of mcp.json in your home.
    """
    found = mcp_states(config)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
        return
    if not found:
        out("no MCP servers: name a file with --config, or put mcp.json into $WAKEFUL_HOME")
        return
    out(columns([_row(each) for each in found], ("SERVER", "KIND", "WHERE", "TOOLS", "WAITING")))
    for each in found:
        if each.parked:
            tools = ", ".join(parked.tool for parked in each.parked)
            out(plain(f"changed      {tools}: wakeful mcp approve {each.name}"))


def _row(state: McpServerState) -> tuple[str, ...]:
    tools = str(state.known_tools) if state.known_tools else "not seen yet"
    return state.name, state.kind, state.where, tools, str(len(state.parked)) if state.parked else ""


def tools(server: McpServerArgument, config: McpConfigOption = None, json: JsonOption = False) -> None:
    """Start or connect to a server and list its tools: which are offered, in which class, and why others are not.

    Ends with 1 when the server is not available.
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
        out(columns(rows, ("TOOL", "STATUS", "CLASS", "EFFECT", "")))
    if any(each.status == "unavailable" for each in found):
        raise typer.Exit(FAILED)


def approve(
    server: McpServerArgument,
    tools: Annotated[
        list[str] | None, typer.Argument(metavar="TOOL", help="Only these, as the server names them.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Accept the tools of a server whose description, schema or hints changed, as they were last seen.

    What was accepted is told, with what each tool now says of itself. A later change waits for you again.
    """
    accepted = mcp_approve(server, tuple(tools or ()))
    if json:
        out(json_text([each.model_dump(mode="json") for each in accepted], indent=2))
        return
    if not accepted:
        out(plain(f"nothing of {server} waits to be accepted"))
    for each in accepted:
        out(plain(f"accepted     {each.tool}  (as of {each.since}, changed {each.changed})"))
        out(f"             {one_line(each.description, 400)}")


def login(
    server: McpServerArgument,
    config: McpConfigOption = None,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="NAME", help="For whom. Left out: for runs that name nobody.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser, or only tell the address.")] = True,
) -> None:
    """Log in to an MCP server that wants it (OAuth). What it grants is kept for it and the principal alone."""

    def show(url: str) -> None:
        note(f"go to {url}")
        if browser:
            webbrowser.open(url)

    asyncio.run(mcp_login(config, server, principal, show))
    out(plain(f"logged in to {server}" + (f" for {principal}" if principal else "")))
