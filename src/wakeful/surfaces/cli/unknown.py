"""`wakeful unknown` and `wakeful resolve`: calls with an unknown outcome, and what a person
found out about them.
"""

from typing import Annotated

import typer

from wakeful.service.operations.calls import LIST_UNKNOWN, RESOLVE, OutcomeOfCall
from wakeful.service.operations.operation import NoRequest
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.outcomes import resume_line, unknown_lines
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import prose, short
from wakeful.surfaces.cli.shown_values import ago, json_text, out, plain


def listed(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the calls with an unknown outcome, each with the commands that resolve it."""
    place = place_to_ask(store)
    rows = ask(LIST_UNKNOWN, NoRequest(), place)
    remember("calls", [f"{row.turn_id}/{row.call_id}" for row in rows], place)
    if json:
        out(json_text([row.model_dump(mode="json") for row in rows], indent=2))
    elif rows:
        for row in rows:
            out(f"{row.call_id}  turn {short(row.turn_id)}, {ago(round(row.since * 1e6))} ago")
            prose(unknown_lines([row], place))
    else:
        out("no unknown outcomes")


def resolve(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call's id or its beginning, or TURN/CALL.")],
    happened: Annotated[
        str | None, typer.Option("--happened", metavar="TEXT", help="It happened; TEXT is its result.")
    ] = None,
    did_not_happen: Annotated[bool, typer.Option("--did-not-happen", help="It did not happen.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Record whether a call happened. If its turn is unfinished, the model is told when it continues."""
    if (happened is None) != did_not_happen:
        raise WrongRequest(
            "resolve needs --happened TEXT or --did-not-happen, and not both",
            f'wakeful resolve {call} --happened "its result"\nwakeful resolve {call} --did-not-happen',
        )
    place = place_to_ask(store)
    found = OutcomeOfCall(call, happened=happened is not None, result=happened or "")
    row = ask(RESOLVE, found, place)
    if json:
        out(json_text(row.model_dump(mode="json"), indent=2))
        return
    said = "did not happen" if happened is None else f"happened: {plain(happened)}"
    out(f"{row.call_id} ({plain(row.tool)}) {said}")
    if row.ahead is not None:
        out(f"The turn is unfinished. To continue it: {resume_line(row.ahead, place)}")
