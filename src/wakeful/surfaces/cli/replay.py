"""`wakeful replay`: fold a turn's log again and prove that every decision comes out the same."""

import asyncio

import typer

from wakeful.bootstrap import opened_store
from wakeful.service.queries import find_turn
from wakeful.service.replay import ReplayReport, replay_turn
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import columns, json_text, one_line, out


def command(turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Decide a stored turn again, from its facts alone, and compare with what was recorded.

    Needs neither the model nor the tools. Ends with 1 at the first decision that comes out differently.
    """
    place = store_to_read(store)
    report = asyncio.run(_replay(turn, place))
    if json:
        out(json_text(report.to_dict(), indent=2))
    else:
        _tell(report, place)
    if not report.identical:
        raise typer.Exit(FAILED)


async def _replay(turn: str | None, place: Place) -> ReplayReport:
    async with opened_store(place.path) as opened:
        return await replay_turn(opened, await find_turn(opened, turn))


def _tell(report: ReplayReport, place: Place) -> None:
    still = " (unfinished)" if report.turn.is_open else ""
    out(f"turn {report.turn.turn_id} of agent {report.turn.agent_name}, {report.turn.state}{still}")
    if report.checked:
        out(columns([(kind, str(count)) for kind, count in report.checked.items()], ("DECISION", "SAME")))
    total = sum(report.checked.values())
    if report.divergence is None:
        out(f"identical: {total} decisions from {report.events} events, each as it was recorded")
        return
    first = report.divergence
    out(f"DIFFERENT after {total} decisions, at event {first.event_id} ({first.kind}):")
    out(f"  recorded:    {one_line(first.recorded, 400)}")
    out(f"  recomputed:  {one_line(first.recomputed, 400)}")
    out(f"the event: wakeful events {report.turn.turn_id} --as facts{place.flag}")
