"""`wakeful doctor`: is everything as it should be?"""

import asyncio

import typer

from wakeful.bootstrap import doctor
from wakeful.service.doctor import DoctorReport
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.places import Place, any_place
from wakeful.surfaces.cli.shown import json_text, out, plain, size


def command(store: StoreOption = None, json: JsonOption = False) -> None:
    """Report on this installation and on the store, whose every byte is read. Ends with 1 when something is wrong."""
    place = any_place(store)
    report = asyncio.run(doctor(place.path))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        _tell(report, place)
    if not report.healthy:
        raise typer.Exit(FAILED)


def _tell(report: DoctorReport, place: Place) -> None:
    store = report.store
    out(f"wakeful      {report.version}, Python {report.python}, {report.platform}, {store.engine}")
    out(f"providers    {', '.join(f'{each.name}: {each.status}' for each in report.providers)}")
    if not store.exists:
        out(f"store        {plain(store.location)}: not there yet")
        out(f'next         wakeful run "hello"{place.flag}')
        return
    version = f"version {store.schema_version}" if store.schema_version is not None else "version unknown"
    newest = f" (this wakeful writes version {store.newest_schema_version})"
    older = newest if store.schema_version != store.newest_schema_version else ""
    out(f"store        {plain(store.location)}, {size(store.bytes)}, {version}{older}")
    if not report.healthy:
        out(f"integrity    {'DAMAGED' if report.damage else 'not checked: the store cannot be used'}")
        out([f"             {plain(problem)}" for problem in report.problems])
        out(f"next         {plain(report.advice)}")
        return
    out("integrity    every event is as it was written")
    out(f"turns        {report.turns}, unfinished {len(report.open_turns)}")
    for turn in report.open_turns[:5]:
        waits = f", waits for {', '.join(turn.waiting_for)}" if turn.waiting_for else ""
        out(f"             {turn.turn_id} ({plain(turn.agent)}) {turn.state}{plain(waits)}")
    out(f"unknown      {report.unknown_outcomes or 'no'} outcome{'' if report.unknown_outcomes == 1 else 's'}")
    if report.open_turns:
        out(f"next         wakeful resume{place.flag}")
    if report.unknown_outcomes:
        out(f"next         wakeful unknown{place.flag}")
