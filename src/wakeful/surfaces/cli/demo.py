"""`wakeful demo`: which demos there are."""

from typing import Annotated

import typer

from wakeful.contracts.errors import NotBuiltYet
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import out

LATER = {
    "wake": "an agent sleeps and is woken",
    "replay": "every decision of a run, again",
}


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="crash, approve or budget.")] = None,
) -> None:
    """List the demos. Each runs offline, without a key, in a few seconds."""
    if name in LATER:
        raise NotBuiltYet(f"the demo {name!r}", "wakeful demo crash, approve and budget are there")
    if name is not None:
        raise WrongRequest(f"there is no demo {name!r}", "wakeful demo lists them")
    out("wakeful demo crash     a run is killed in the middle of a payment, and pays once")
    out("wakeful demo approve   a call waits for a person, over a kill, and runs once")
    out("wakeful demo budget    a tree of subtasks keeps to one budget, over a kill")
    out(["", "not in this version:"])
    out([f"  {each:<10}{says}" for each, says in LATER.items()])
