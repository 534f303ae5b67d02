"""`wakeful approvals`: what waits for a person."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.approvals import Approval
from wakeful.service.approvals import approvals
from wakeful.surfaces.cli.approval_words import age, call_text, decided_words, left, pending_lines
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import columns, json_text, one_line, out


def command(
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided, oldest first.")] = False,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Of one turn alone.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List what waits for a person: approvals and questions, with the commands that decide them.

    Then: wakeful approvals show | approve | reject | edit | answer | always ID, and wakeful approvals rules | revoke.
    An id may be cut short as long as it means one record.
    """
    place = store_to_read(store)
    records = asyncio.run(_records(place, everything, turn))
    if json:
        out(json_text([record.model_dump(mode="json") for record in records], indent=2))
    elif not records:
        out("nothing waits for a decision" if not everything else "nobody has been asked anything")
    else:
        cells = [
            (
                each.id,
                age(each),
                left(each) if each.status == "pending" else each.status,
                each.agent,
                call_text(each, 80),
                one_line(each.why, 120) if each.status == "pending" else decided_words(each),
            )
            for each in records
        ]
        out(columns(cells, ("ID", "AGE", "LEFT", "AGENT", "WHAT", "WHY")))
        pending = [each for each in records if each.status == "pending"]
        if pending:
            out(["", *pending_lines(pending[:1], place)])
            out(f"    all of it:  wakeful approvals show {pending[0].id}{place.flag}")


async def _records(place: Place, everything: bool, turn: str | None) -> list[Approval]:
    async with opened_store(place.path) as opened:
        return await approvals(runtime(opened), pending_only=not everything, turn_id=turn)
