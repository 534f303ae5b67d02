"""`wakeful mcp tools`: a server's tools, as an agent would get them."""

import asyncio

import typer

from wakeful.bootstrap import mcp_tools
from wakeful.surfaces.cli.options import JsonOption, McpConfigOption, McpServerArgument
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.shown import columns, json_text, one_line, out


def command(server: McpServerArgument, config: McpConfigOption = None, json: JsonOption = False) -> None:
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
