"""`wakeful demo`: the list of demos."""

from typing import Annotated

import typer

from wakeful.contracts.errors import NotBuiltYet
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import out

LATER = {
    "replay": "recompute every decision of a run",
}


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="crash, approve, budget or wake.")] = None,
) -> None:
    """List the demos. Each runs offline, without a key, in a few seconds."""
    if name in LATER:
        raise NotBuiltYet(f"the demo {name!r}", "list those there are: wakeful demo")
    if name is not None:
        raise WrongRequest(f"there is no demo {name!r}", "list them: wakeful demo")
    out("wakeful demo crash     a run is killed during a payment, and pays once")
    out("wakeful demo approve   a call waits for approval, across a kill, and runs once")
    out("wakeful demo budget    subtasks share one budget, across a kill")
    out("wakeful demo wake      a timer wakes an agent, across a kill")
    out(["", "not in this version:"])
    out([f"  {each:<10}{says}" for each, says in LATER.items()])
