"""`wakeful store forget`: go on with a store whose log is shorter than it was."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.bootstrap.stores import forget_store_end
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.places import any_place
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    path: Annotated[Path | None, typer.Argument(metavar="PATH", help="The store. Default: your own.")] = None,
    json: JsonOption = False,
) -> None:
    """Accept a store that you deleted or restored from a backup on purpose.

    wakeful refuses a store that has lost the end of its log, because calls that are missing from it would run again.
    This command accepts the store as it is now. The store itself is not changed.
    """
    place = any_place(path)
    if path is not None and path.is_dir():
        raise WrongRequest(f"{path} is a folder, not a store", "name the file")
    agents = forget_store_end(place.path)
    if json:
        out(json_text({"store": place.path, "forgotten": agents > 0, "agents": agents}, indent=2))
    elif agents:
        many = f"{agents} agent{'' if agents == 1 else 's'}"
        out(f"{plain(place.path)} is accepted as it is now ({many})")
    else:
        out(f"nothing to do: there is no anchor file beside {plain(place.path)}")
