"""`wakeful mcp login`: let wakeful in to a server, with a browser."""

import asyncio
import webbrowser
from typing import Annotated

import typer

from wakeful.bootstrap import mcp_login
from wakeful.surfaces.cli.options import McpConfigOption, McpServerArgument
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.shown import out, plain


def command(
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
