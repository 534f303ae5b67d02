"""`wakeful trust`: accept files of a workspace as your own words."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files, or folders with AGENTS.md, CLAUDE.md or skills. None: list."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Accept guidance, skills or other files as they are now; without a path, list what you accepted.

    Until then, AGENTS.md, CLAUDE.md and skills of a workspace count as untrusted input: agents read them, and a call
    that acts outside the workspace needs a person. A change of content has to be accepted again.
    """
    from wakeful.bootstrap import accepted_files, trust

    found = [each for path in paths for each in trust(path)] if paths else accepted_files()
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
        return
    if not found:
        out("nothing was accepted yet: wakeful trust PATH")
    for each in found:
        out(plain(f"{'accepted' if paths else each.accepted_at}  {each.path}  {each.digest[:19]}"))
