"""`wakeful cancel`: ask a turn to stop, wherever it runs."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.ports import TurnRow
from wakeful.service.interrupting import cancel_turn
from wakeful.service.queries import find_turn
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.resuming import resume_line
from wakeful.surfaces.cli.shown import out


def command(turn: Annotated[str, typer.Argument(metavar="TURN")], store: StoreOption = None) -> None:
    """Ask a turn to stop. Whoever runs it ends it as cancelled, with every call accounted for."""
    place = store_to_read(store)
    row, asked, line = asyncio.run(_cancel(turn, place))
    if not asked:
        out(f"turn {row.turn_id} is over already: {row.state}")
        return
    out(f"turn {row.turn_id} is asked to stop")
    out(f"if no process runs it, this ends it: {line}")


async def _cancel(turn: str, place: Place) -> tuple[TurnRow, bool, str]:
    async with opened_store(place.path) as opened:
        row = await find_turn(opened, turn)
        asked = await cancel_turn(runtime(opened), row.turn_id, requested_by="operator")
        return row, asked, await resume_line(opened, row, place) if asked else ""
