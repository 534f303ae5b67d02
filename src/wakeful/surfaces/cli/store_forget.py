"""`wakeful store forget`: go on with a store whose log is shorter than it was."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.bootstrap import forget_store_end
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.places import any_place
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def command(
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="The store. Left out: the one of the home.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Forget how far the log of a store had come, after you deleted it or restored an older copy on purpose.

    wakeful refuses a store that has lost the end of its log, because effects that are not in it any more would be
    repeated. This takes the store as it is now. Nothing in the store itself is changed.
    """
    place = any_place(path)
    if path is not None and path.is_dir():
        raise WrongRequest(f"{path} is a folder, and a store is a file", "name the file")
    agents = forget_store_end(place.path)
    if json:
        out(json_text({"store": place.path, "forgotten": agents > 0, "agents": agents}, indent=2))
    elif agents:
        many = f"{agents} agent{'' if agents == 1 else 's'}"
        out(f"forgot how far the log of {many} in {plain(place.path)} had come: the store is taken as it is now")
    else:
        out(f"nothing to forget: no anchor stands beside {plain(place.path)}")
