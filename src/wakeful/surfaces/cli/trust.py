"""`wakeful trust`: accept files of a workspace as your own words."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files, or folders with AGENTS.md, skills or mcp.json. Default: list."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Trust files of a workspace as they are now. Without PATH, list the trusted files.

    Before that, AGENTS.md, CLAUDE.md and skills of a workspace count as untrusted input: agents read them, and calls
    that act outside the workspace need approval. Servers of the workspace's mcp.json do not start. A file whose content
    changes has to be trusted again.
    """
    from wakeful.bootstrap.trusted_files import accepted_files, trust

    found = [each for path in paths for each in trust(path)] if paths else accepted_files()
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
        return
    if not found:
        out("no trusted files; trust one: wakeful trust PATH")
    for each in found:
        when = "trusted" if paths else each.accepted_at[:10]
        out(plain(f"{when:<10}  {each.digest.removeprefix('sha256:')[:12]}  {each.path}"))
