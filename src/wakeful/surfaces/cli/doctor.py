"""`wakeful doctor`: a check of the installation, its providers and the store."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap.installation import doctor
from wakeful.contracts.catalogue import ProviderState
from wakeful.service.queries.doctor import DoctorReport
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.model_words import key_words, probe_lines, retry_words
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TimeoutOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, place_to_check
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import json_text, out, plain, size, undeclared_words


def command(
    store: StoreOption = None,
    live: Annotated[
        list[str] | None,
        typer.Option("--live", metavar="MODEL", help="Ask this model for one word. Repeatable."),
    ] = None,
    timeout: TimeoutOption = None,
    json: JsonOption = False,
    wide: WideOption = False,
) -> None:
    """Check this installation, its providers and the whole store.

    Nothing is sent to a provider unless --live names a model. Ends with exit code 1 if there is a problem.
    """
    place = place_to_check(store)
    report = asyncio.run(doctor(place.path, live or (), timeout=timeout))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        _tell(report, place, wide=wide)
    if not report.healthy:
        raise typer.Exit(FAILED)


def _tell(report: DoctorReport, place: StoreAddress, *, wide: bool) -> None:
    prose(f"wakeful      {report.version}, Python {report.python}, {report.platform}, {report.store.engine}")
    why = f": {plain(report.confinement_reason)}" if report.confinement_reason else ""
    prose(f"sandbox      {report.confinement}{why}" if report.confinement != "not_enforced" else _not_held(why))
    for warning in report.warnings:
        prose(f"warning      {plain(warning)}")
    _tell_store(report, place)
    _tell_providers(report, wide=wide)
    for number, problem in enumerate(report.problems):
        lines = plain(problem).splitlines()
        prose([f"{'' if number else 'problems':<13}{lines[0]}", *(f"{'':<15}{line}" for line in lines[1:])])
    if report.advice:
        prose(f"next         {plain(report.advice)}")


def _not_held(why: str) -> str:
    return f"sandbox      not_enforced{why}; see docs/explain/sandbox.md"


def _tell_providers(report: DoctorReport, *, wide: bool) -> None:
    rows = [(each.name, each.status, key_words(each), *_details(each, wide)) for each in report.providers]
    if rows:
        titles = ("PROVIDER", "STATUS", "KEY", *(("ENDPOINT", "RETRY") if wide else ()))
        out(["providers", *(f"  {line}" for line in columns(rows, titles, wide=wide))])
    for probe in report.live:
        first, *more = probe_lines(probe)
        prose([f"live         {first}", *(f"           {line}" for line in more)])


def _details(provider: ProviderState, wide: bool) -> tuple[str, ...]:
    return (plain(provider.endpoint) or _nowhere(provider), retry_words(provider.retry)) if wide else ()


def _nowhere(provider: ProviderState) -> str:
    return "not configured" if provider.status == "unavailable" else "-"


def _tell_store(report: DoctorReport, place: StoreAddress) -> None:
    store = report.store
    if not store.exists:
        prose(f"store        {plain(store.location)}: not created yet")
        prose(f'next         wakeful run "hello"{place.flag}')
        return
    version = f"version {store.schema_version}" if store.schema_version is not None else "version unknown"
    newest = f" (this wakeful writes version {store.newest_schema_version})"
    older = newest if store.schema_version != store.newest_schema_version else ""
    prose(f"store        {plain(store.location)}, {size(store.bytes)}, {version}{older}")
    if not report.store_healthy:
        prose(f"integrity    {'DAMAGED' if report.damage else 'not checked: the store cannot be used'}")
        return
    out("integrity    ok: every event is unchanged")
    prose(f"turns        {report.turns}, unfinished {len(report.open_turns)}")
    for turn in report.open_turns[:5]:
        waits = f", waits for {', '.join(turn.waiting_for)}" if turn.waiting_for else ""
        prose(f"             {short(turn.turn_id)} ({plain(turn.agent)}) {turn.state}{plain(waits)}")
    prose(f"unknown      {report.unknown_outcomes or 'no'} outcome{'' if report.unknown_outcomes == 1 else 's'}")
    if report.undeclared_tools:
        prose(f"tools        {plain(undeclared_words(report.undeclared_tools))}")
    if report.open_turns:
        prose(f"next         wakeful resume{place.flag}")
    if report.unknown_outcomes:
        prose(f"next         wakeful unknown{place.flag}")
