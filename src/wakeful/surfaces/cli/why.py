"""`wakeful why`: why a call ran, waited or was refused, from the log."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store
from wakeful.contracts.explanations import CallExplanation
from wakeful.service.explaining import why_call
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import arguments_text, json_text, moment, one_line, out, plain


def command(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call's id, or TURN/CALL.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Tell a call's way through the gate: verdicts with reasons, rules, hooks, approval, sandbox, outcome."""
    told = asyncio.run(_why(call, store_to_read(store)))
    if json:
        out(json_text(told.model_dump(mode="json"), indent=2))
        return
    out(f"{plain(told.tool)}({arguments_text(told.arguments, 200)})")
    out(f"  call {plain(told.call_id)} of agent {plain(told.agent)}, turn {told.turn_id}")
    out(f"  {told.verdict}, {told.outcome or 'not over yet'}")
    out("")
    for step in told.steps:
        by = f"{plain(step.by)}: " if step.by else ""
        out(f"  {moment(step.at)}  {step.kind:<10}{by}{one_line(step.words, 400)}")
        for rule in step.rules:
            text = f": {one_line(rule.text, 300)}" if rule.text else ""
            out(f"  {'':<21}{'rule':<10}{plain(rule.ref)}{text}")


async def _why(call: str, place: Place) -> CallExplanation:
    async with opened_store(place.path) as opened:
        return await why_call(opened, call)
