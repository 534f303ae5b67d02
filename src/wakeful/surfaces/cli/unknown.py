"""`wakeful unknown` and `wakeful resolve`: calls of which nobody knows whether they happened, and the
word of a person on them.
"""

from typing import Annotated

import typer

from wakeful.contracts.envelope import iso
from wakeful.service.operations import LIST_UNKNOWN, RESOLVE, NoRequest, OutcomeOfCall
from wakeful.service.queries.history import unknown_record
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.outcomes import resume_line, unknown_lines
from wakeful.surfaces.cli.places import any_place, ask, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import json_text, out, plain


def listed(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the calls whose outcome is unknown, with the commands that close each of them."""
    place = store_to_read(store)
    rows = ask(LIST_UNKNOWN, NoRequest(), place)
    if json:
        out(json_text([unknown_record(row, rows).model_dump(mode="json") for row in rows], indent=2))
    elif rows:
        for row in rows:
            out(f"{row.call_id}  in turn {row.turn_id}, since {iso(row.since)}")
            out(unknown_lines([row], rows, place))
    else:
        out("every outcome is known")


def resolve(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call's id, or TURN/CALL.")],
    happened: Annotated[
        str | None, typer.Option("--happened", metavar="TEXT", help="It happened, and this is what it returned.")
    ] = None,
    did_not_happen: Annotated[bool, typer.Option("--did-not-happen", help="It did not happen.")] = False,
    store: StoreOption = None,
) -> None:
    """Say whether a call happened. The log keeps it, and an unfinished turn tells its model."""
    place = any_place(store)
    if (happened is None) != did_not_happen:
        raise WrongRequest(
            "say one of the two: it happened, or it did not",
            f'wakeful resolve {call} --happened "what it returned"{place.flag}\n'
            f"wakeful resolve {call} --did-not-happen{place.flag}",
        )
    place = store_to_read(store)
    found = OutcomeOfCall(call, happened=happened is not None, result=happened or "")
    row, ahead = ask(RESOLVE, found, place)
    said = "did not happen" if happened is None else f"happened: {plain(happened)}"
    out(f"{row.call_id} ({plain(row.tool)}) {said}")
    if ahead is not None:
        out(f"its turn is unfinished; the model is told when it goes on: {resume_line(ahead, place)}")
