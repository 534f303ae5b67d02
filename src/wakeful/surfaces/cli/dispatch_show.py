"""`wakeful dispatch list`, `show` and `cancel`: dispatched runs, here and elsewhere. Secrets are redacted."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from wakeful.contracts.envelope import iso
from wakeful.hosts.dispatch.dispatch_request import TERMINAL
from wakeful.service import redact
from wakeful.service.operations.dispatches import (
    CANCEL_DISPATCH,
    LIST_DISPATCHES,
    SHOW_DISPATCH,
    DispatchName,
    DispatchQuery,
    DispatchToCancel,
)
from wakeful.surfaces.cli.host_setup import OPERATOR, HostCode, opened_host
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, local_times, moment, one_line, out, plain
from wakeful.views.dispatch_records import DispatchDetails, DispatchedRun

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, its beginning, or its row number.")]
BEGINS_ONE = "wakeful dispatch run INSTRUCTIONS"
EMPTY: Mapping[str, Any] = {
    "executor_id": "-",
    "started_at": "-",
    "updated_at": "-",
    "output": None,
    "diagnostics": {},
    "provenance": {},
}


def listed(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to list.")] = 20,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List dispatched runs, newest first."""
    place = place_to_ask(store, BEGINS_ONE)
    runs = ask(LIST_DISPATCHES, DispatchQuery(limit=limit), place)
    remember("dispatches", [run.run_id for run in runs], place)
    if json:
        out(json_text([result_of(run) for run in runs], indent=2))
    elif runs:
        cells = [
            (
                short(run.run_id),
                run.status,
                str(result_of(run)["executor_id"]),
                age_cell(int(run.updated_at * 1e6)),
                one_line(_about(result_of(run)), 80),
            )
            for run in runs
        ]
        out(columns(cells, ("RUN", "STATUS", "TARGET", "AGE", "RESULT"), wide=wide))
    else:
        out("no dispatched runs")


def show(run: RunArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show a dispatched run: its state, its result and its log."""
    place = place_to_ask(store, BEGINS_ONE)
    found = ask(SHOW_DISPATCH, DispatchName(run), place)
    result = result_of(found)
    if json:
        out(json_text(document(found), indent=2))
        return
    out(
        [
            f"{plain(found.run_id)}  {found.status}",
            f"session     {plain(found.session_id)}",
            f"target      {plain(str(result['executor_id']))}",
            local_times(f"began       {result['started_at']}, last changed {result['updated_at']}"),
        ]
    )
    for name in ("output", "diagnostics", "provenance"):
        if result[name]:
            prose(f"{name:<11} {json_text(result[name]) if not isinstance(result[name], str) else plain(result[name])}")
    out(["", *(f"{moment(round(event.at * 1e6))}  {event.event}" for event in found.log)])
    out(how_to_go_on(result, place))


def cancel(run: RunArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Stop a dispatched run. Safe to repeat."""
    place = place_to_ask(store, BEGINS_ONE)
    if place.daemon is not None:
        was_over = ask(SHOW_DISPATCH, DispatchName(run), place).status in TERMINAL
        result = result_of(ask(CANCEL_DISPATCH, DispatchToCancel(run), place))
        asked = not was_over and result["status"] in ("cancelling", "cancelled")
    else:
        asked, result = asyncio.run(_cancel(place, run))
    if json:
        out(json_text({"cancelled": asked, "run": result}, indent=2))
    elif asked:
        out(f"{plain(result['run_id'])} was asked to stop: {result['status']}")
    else:
        out(f"{plain(result['run_id'])} has ended already: {result['status']}")


def document(run: DispatchDetails) -> dict[str, Any]:
    """A run as JSON: its result, with its log."""
    log = [{**line.model_dump(mode="json"), "at": iso(round(line.at * 1e6))} for line in run.log]
    return {**result_of(run), "log": log}


def result_of(run: DispatchedRun) -> dict[str, Any]:
    """The published result of a run; of a record that was changed by hand, as much as it holds."""
    known = {"run_id": run.run_id, "session_id": run.session_id, "status": run.status}
    found = run.record.get("result")
    return {**EMPTY, **known, **(found if isinstance(found, dict) else {})}


def how_to_go_on(result: Mapping[str, Any], place: StoreAddress) -> list[str]:
    """The next commands, for a run that has not ended."""
    if result["status"] in TERMINAL:
        return []
    waits, run = result["diagnostics"].get("waiting_for"), plain(result["run_id"])
    lines = [f"it waits for approval: wakeful approvals{place.flag}"] if waits == "approval_required" else []
    lines += [f"it waits for a client: wakeful requests{place.flag}"] if waits == "runtime_tool_pending" else []
    if result["executor_id"] == "local":
        lines.append(f"to continue: wakeful dispatch resume {run}{place.flag}")
    return [*lines, f"to stop it: wakeful dispatch cancel {run}{place.flag}"]


async def _cancel(place: StoreAddress, named: str) -> tuple[bool, dict[str, Any]]:
    async with opened_host(place, HostCode()) as host:
        run = await host.dispatcher.find(named, OPERATOR)
        asked, result = await host.dispatcher.cancel(run.session_id, run.run_id, OPERATOR)
        return asked, redact(result.to_wire())


def _about(result: Mapping[str, Any]) -> str:
    said = result["diagnostics"].get("error_message") or result["diagnostics"].get("waiting_for") or result["output"]
    return said if isinstance(said, str) else json_text(said) if said else ""
