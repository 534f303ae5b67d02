"""`wakeful cancel`: ask a turn to stop, wherever it runs."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.service.interrupting import cancel_turn
from wakeful.service.queries import find_turn
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.resuming import resume_line
from wakeful.surfaces.cli.shown import out


def command(turn: Annotated[str, typer.Argument(metavar="TURN")], store: StoreOption = None) -> None:
    """Ask a turn to stop. Whoever runs it ends it as cancelled, with every call accounted for."""
    place = store_to_read(store)
    out(asyncio.run(_cancel(turn, place)))


async def _cancel(turn: str, place: Place) -> list[str]:
    async with opened_store(place.path) as opened:
        row = await find_turn(opened, turn)
        if not await cancel_turn(runtime(opened), row.turn_id, requested_by="operator"):
            return [f"turn {row.turn_id} is over already: {row.state}"]
        now = await find_turn(opened, row.turn_id)
        if not now.is_open:
            return [f"turn {row.turn_id} rested, and is {now.state}"]
        asked = f"turn {row.turn_id} is asked to stop"
        if await opened.is_held(row.agent_id):
            return [asked]
        return [asked, f"no process runs it: this ends it: {await resume_line(opened, row, place)}"]
