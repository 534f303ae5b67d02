"""`wakeful approvals show`: everything about one of them."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.approvals import Approval
from wakeful.service.approvals import show
from wakeful.surfaces.cli.approval_words import details
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import json_text, out


def command(
    approval: Annotated[str, typer.Argument(metavar="ID")], json: JsonOption = False, store: StoreOption = None
) -> None:
    """Show one approval or question: the tool, its arguments, its directory, why, and what may be done."""
    place = store_to_read(store)
    record = asyncio.run(_record(place, approval))
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        out(details(record, place))


async def _record(place: Place, approval: str) -> Approval:
    async with opened_store(place.path) as opened:
        return await show(runtime(opened), approval)
