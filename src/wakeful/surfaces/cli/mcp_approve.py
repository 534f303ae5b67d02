"""`wakeful mcp approve`: accept tools that are not what they were when they were accepted."""

from typing import Annotated

import typer

from wakeful.bootstrap import mcp_approve
from wakeful.surfaces.cli.options import JsonOption, McpServerArgument
from wakeful.surfaces.cli.shown import json_text, one_line, out, plain


def command(
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
