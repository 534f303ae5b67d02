"""`wakeful unknown`: calls of which nobody knows whether they happened."""

import asyncio

from wakeful.bootstrap import opened_store
from wakeful.contracts.envelope import iso
from wakeful.ports import UnknownRow
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.outcomes import reference, unknown_lines
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import json_text, out


def command(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the calls whose outcome is unknown, with the commands that close each of them."""
    place = store_to_read(store)
    rows = asyncio.run(_unknown(place))
    if json:
        out(json_text([_as_json(row, rows) for row in rows], indent=2))
    elif rows:
        for row in rows:
            out(f"{row.call_id}  in turn {row.turn_id}, since {iso(row.since)}")
            out(unknown_lines([row], rows, place))
    else:
        out("every outcome is known")


async def _unknown(place: Place) -> list[UnknownRow]:
    async with opened_store(place.path) as opened:
        return await opened.unknown()


def _as_json(row: UnknownRow, rows: list[UnknownRow]) -> dict[str, object]:
    return {**row._asdict(), "since": iso(row.since), "resolve": reference(row, rows)}
