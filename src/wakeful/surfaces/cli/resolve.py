"""`wakeful resolve`: the word of a person on a call whose outcome nobody knew."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.ports import UnknownRow
from wakeful.service.resolving import resolve_unknown
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.places import Place, any_place, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.resuming import resume_line
from wakeful.surfaces.cli.shown import out, plain


def command(
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
    row, line = asyncio.run(_resolve(call, happened, place))
    said = "did not happen" if happened is None else f"happened: {plain(happened)}"
    out(f"{row.call_id} ({plain(row.tool_name)}) {said}")
    if line:
        out(f"its turn is unfinished; the model is told when it goes on: {line}")


async def _resolve(call: str, happened: str | None, place: Place) -> tuple[UnknownRow, str]:
    async with opened_store(place.path) as opened:
        row = await resolve_unknown(runtime(opened), call, happened=happened is not None, result=happened or "")
        turn = await opened.turn(row.turn_id)
        return row, await resume_line(opened, turn, place) if turn is not None and turn.is_open else ""
