"""`wakeful demo`: the list of demos."""

from difflib import get_close_matches
from typing import Annotated

import typer

from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import out

DEMOS = ("crash", "approve", "budget", "wake", "replay")


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="crash, approve, budget, wake or replay.")] = None,
) -> None:
    """List the demos. Each runs offline, without a key, in a few seconds."""
    if name is not None:
        near = get_close_matches(name, DEMOS, n=1)
        hint = f"did you mean wakeful demo {near[0]}?" if near else "list them: wakeful demo"
        raise WrongRequest(f"there is no demo {name!r}", hint)
    out("wakeful demo crash     a run is killed during a payment, and pays once")
    out("wakeful demo approve   a call waits for approval, across a kill, and runs once")
    out("wakeful demo budget    subtasks share one budget, across a kill")
    out("wakeful demo wake      a webhook wakes a sleeping agent, across a kill")
    out("wakeful demo replay    every decision is recomputed; a changed log is noticed")
