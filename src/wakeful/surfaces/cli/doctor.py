"""`wakeful doctor`: is everything as it should be?"""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import doctor
from wakeful.contracts.catalogue import ProviderState
from wakeful.service.queries.doctor import DoctorReport
from wakeful.surfaces.cli.model_words import key_words, probe_lines, retry_words
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TimeoutOption
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.places import StoreAddress, any_place
from wakeful.surfaces.cli.shown_values import columns, json_text, out, plain, size, undeclared_words


def command(
    store: StoreOption = None,
    live: Annotated[
        list[str] | None,
        typer.Option("--live", metavar="MODEL", help="Ask this model for one word. May be given several times."),
    ] = None,
    timeout: TimeoutOption = None,
    json: JsonOption = False,
) -> None:
    """Report on this installation, its providers, and the store, whose every byte is read.

    Nothing is sent to a provider unless --live names a model. Ends with 1 when something is wrong.
    """
    place = any_place(store)
    report = asyncio.run(doctor(place.path, live or (), timeout=timeout))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        _tell(report, place)
    if not report.healthy:
        raise typer.Exit(FAILED)


def _tell(report: DoctorReport, place: StoreAddress) -> None:
    out(f"wakeful      {report.version}, Python {report.python}, {report.platform}, {report.store.engine}")
    why = f": {plain(report.confinement_reason)}" if report.confinement_reason else ""
    out(f"commands     held by {report.confinement}{why}" if report.confinement != "not_enforced" else _not_held(why))
    for warning in report.warnings:
        out(f"warning      {plain(warning)}")
    _tell_store(report, place)
    _tell_providers(report)
    for number, problem in enumerate(report.problems):
        lines = plain(problem).splitlines()
        out([f"{'' if number else 'problems':<13}{lines[0]}", *(f"{'':<15}{line}" for line in lines[1:])])
    if report.advice:
        out(f"next         {plain(report.advice)}")


def _not_held(why: str) -> str:
    return f"commands     not_enforced{why}; docs/explain/sandbox.md says what to install"


def _tell_providers(report: DoctorReport) -> None:
    rows = [
        (each.name, each.status, key_words(each), plain(each.endpoint) or _nowhere(each), retry_words(each.retry))
        for each in report.providers
    ]
    if rows:
        out("providers")
        out([f"  {line}" for line in columns(rows, ("PROVIDER", "STATUS", "KEY", "ENDPOINT", "RETRY"))])
    for probe in report.live:
        first, *more = probe_lines(probe)
        out([f"live         {first}", *(f"           {line}" for line in more)])


def _nowhere(provider: ProviderState) -> str:
    return "not configured" if provider.status == "unavailable" else "-"


def _tell_store(report: DoctorReport, place: StoreAddress) -> None:
    store = report.store
    if not store.exists:
        out(f"store        {plain(store.location)}: not there yet")
        out(f'next         wakeful run "hello"{place.flag}')
        return
    version = f"version {store.schema_version}" if store.schema_version is not None else "version unknown"
    newest = f" (this wakeful writes version {store.newest_schema_version})"
    older = newest if store.schema_version != store.newest_schema_version else ""
    out(f"store        {plain(store.location)}, {size(store.bytes)}, {version}{older}")
    if not report.store_healthy:
        out(f"integrity    {'DAMAGED' if report.damage else 'not checked: the store cannot be used'}")
        return
    out("integrity    every event is as it was written")
    out(f"turns        {report.turns}, unfinished {len(report.open_turns)}")
    for turn in report.open_turns[:5]:
        waits = f", waits for {', '.join(turn.waiting_for)}" if turn.waiting_for else ""
        out(f"             {turn.turn_id} ({plain(turn.agent)}) {turn.state}{plain(waits)}")
    out(f"unknown      {report.unknown_outcomes or 'no'} outcome{'' if report.unknown_outcomes == 1 else 's'}")
    if report.undeclared_tools:
        out(f"tools        {plain(undeclared_words(report.undeclared_tools))}")
    if report.open_turns:
        out(f"next         wakeful resume{place.flag}")
    if report.unknown_outcomes:
        out(f"next         wakeful unknown{place.flag}")
