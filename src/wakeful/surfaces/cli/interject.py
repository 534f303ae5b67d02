"""`wakeful interject`: say something to a turn that is under way."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.service.queries import find_turn
from wakeful.service.steering import interject
from wakeful.surfaces.cli.options import StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import out


def command(
    turn: Annotated[str, typer.Argument(metavar="TURN")],
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    store: StoreOption = None,
) -> None:
    """Say something to a turn that is under way. The model reads it with its next request."""
    place = store_to_read(store)
    turn_id, message_id = asyncio.run(_interject(turn, text, place))
    out(f"{message_id} is safe; turn {turn_id} reads it with its next request")


async def _interject(turn: str, text: str, place: Place) -> tuple[str, str]:
    async with opened_store(place.path) as opened:
        row = await find_turn(opened, turn)
        return row.turn_id, await interject(runtime(opened), row.turn_id, text, said_by="operator")
