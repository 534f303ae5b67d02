"""`wakeful pause`: let a turn rest, wherever it runs."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.ports import TurnRow
from wakeful.service.queries import find_turn
from wakeful.service.steering import pause_turn
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.resuming import resume_line
from wakeful.surfaces.cli.shown import out


def command(turn: Annotated[str, typer.Argument(metavar="TURN")], store: StoreOption = None) -> None:
    """Let a turn rest. What is under way is finished first; nothing new begins until somebody resumes it."""
    place = store_to_read(store)
    row, asked, line = asyncio.run(_pause(turn, place))
    if asked:
        out(f"turn {row.turn_id} rests as soon as nothing of it is under way")
    elif row.is_open:
        out(f"turn {row.turn_id} was paused already")
    else:
        out(f"turn {row.turn_id} is over already: {row.state}")
        return
    out(f"to go on: {line}")


async def _pause(turn: str, place: Place) -> tuple[TurnRow, bool, str]:
    async with opened_store(place.path) as opened:
        row = await find_turn(opened, turn)
        asked = await pause_turn(runtime(opened), row.turn_id, requested_by="operator")
        return row, asked, await resume_line(opened, row, place) if row.is_open else ""
