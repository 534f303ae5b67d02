"""`wakeful debug latency`: where a turn's time went, from the durations that its stored facts carry."""

import asyncio

from wakeful.bootstrap import opened_store
from wakeful.contracts.turns import TurnLatency
from wakeful.service.queries import find_turn, latency_of
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import columns, duration, json_text, out

INSIDE = "  "
"""What happened in a child stands to the right."""


def command(turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Say where a turn's time went: assembling requests, waiting for models, inside tools."""
    report = asyncio.run(_latency(turn, store_to_read(store)))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
        return
    whole = f"{duration(report.turn_ms)}, of which {duration(report.active_ms or 0)} at work" if report.turn_ms else "-"
    out(f"turn {report.turn_id}: {whole}")
    if report.queue_wait_ms is not None:
        out(f"  queue     {duration(report.queue_wait_ms)}, before it was taken up")
    out(f"  context   {duration(report.context_build_ms)}")
    out(f"  models    {duration(report.provider_ms)}")
    out(f"  tools     {duration(report.tools_ms)}")
    if report.cleanup_ms is not None:
        out(f"  cleanup   {duration(report.cleanup_ms)}")
    rows = []
    for each in report.rounds:
        lost = f"{each.lost_attempts} lost, {duration(each.lost_ms)}" if each.lost_attempts else ""
        rows.append(
            (str(each.step), "model", INSIDE * each.depth + each.model_ref, duration(each.provider_round_ms), lost)
        )
    rows += [
        (str(t.step), "tool", INSIDE * t.depth + t.tool_name, duration(t.execution_ms), "" if t.succeeded else "failed")
        for t in report.tools
    ]
    if rows:
        out(["", *columns(sorted(rows, key=lambda row: int(row[0])), ("STEP", "WHAT", "NAME", "TOOK", ""))])


async def _latency(turn: str | None, place: Place) -> TurnLatency:
    async with opened_store(place.path) as opened:
        return await latency_of(opened, await find_turn(opened, turn))
