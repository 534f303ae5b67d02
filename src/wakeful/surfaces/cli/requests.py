"""`wakeful requests`: calls that a client has to run, with the real parameters: a client needs them."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.service.client_requests import pending_requests, show_request
from wakeful.surfaces.cli.options import JsonOption, RequestArgument, StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.request_words import how_to_end, line
from wakeful.surfaces.cli.shown import json_text, out, plain


def command(
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Only those of one turn.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List what clients are asked to run and have not answered. What is past its time is ended on the way."""
    place = store_to_read(store)
    found = asyncio.run(_pending(place, turn))
    if json:
        out(json_text([request.model_dump(mode="json") for request in found], indent=2))
    elif found:
        for request in found:
            out(line(request))
        out(["", *how_to_end(found[0], place)])
    else:
        out("no client is asked for anything")


def show(request: RequestArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show one request, with everything a client needs to run it."""
    place = store_to_read(store)
    found = asyncio.run(_show(place, request))
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
        return
    out(
        [
            f"{found.request_id}  {found.status}",
            f"tool        {plain(found.tool_name)}",
            f"parameters  {json_text(found.parameters)}",
            f"turn        {plain(found.run_id)}, call {plain(found.tool_call_id)}",
            f"until       {plain(found.timeout_at) or 'the run ends'}",
        ]
    )
    if found.is_pending:
        out(["", *how_to_end(found, place)])


async def _pending(place: Place, turn: str | None) -> list[RuntimeToolRequest]:
    async with opened_store(place.path) as opened:
        return await pending_requests(runtime(opened), turn)


async def _show(place: Place, request: str) -> RuntimeToolRequest:
    async with opened_store(place.path) as opened:
        return await show_request(runtime(opened), request)
