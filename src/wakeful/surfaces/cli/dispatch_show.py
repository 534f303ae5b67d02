"""`wakeful dispatch list`, `show` and `cancel`: dispatched runs, here and elsewhere. Secrets are redacted."""

import asyncio
from typing import Annotated, Any

import typer

from wakeful.hosts.dispatch.dispatch_request import DispatchResult
from wakeful.service import redact
from wakeful.surfaces.cli.host_setup import OPERATOR, HostCode, opened_host
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, store_to_read
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or its beginning.")]


def listed(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to list.")] = 20,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List dispatched runs, newest first."""
    place = store_to_read(store, "wakeful dispatch run INSTRUCTIONS")
    runs = [redact(result.to_wire()) for result in asyncio.run(_all(place, limit))]
    if json:
        out(json_text(runs, indent=2))
    elif runs:
        cells = [
            (run["run_id"], run["status"], run["executor_id"], run["updated_at"], one_line(_about(run), 80))
            for run in runs
        ]
        out(columns(cells, ("RUN", "STATUS", "TARGET", "CHANGED", "RESULT"), wide=wide))
    else:
        out("no dispatched runs")


def show(run: RunArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show a dispatched run: its state, its result and its log."""
    place = store_to_read(store, "wakeful dispatch run INSTRUCTIONS")
    result, events = asyncio.run(_one(place, run))
    shown: dict[str, Any] = redact(result.to_wire())
    if json:
        out(json_text({**shown, "log": redact(events)}, indent=2))
        return
    out(
        [
            f"{plain(result.run_id)}  {result.status}",
            f"session     {plain(result.session_id)}",
            f"target      {plain(result.executor_id)}",
            f"began       {result.started_at}, last changed {result.updated_at}",
        ]
    )
    for name in ("output", "diagnostics", "provenance"):
        if shown[name]:
            prose(f"{name:<11} {json_text(shown[name]) if not isinstance(shown[name], str) else plain(shown[name])}")
    out(["", *(f"{event['at']}  {event['event']}" for event in events)])
    out(how_to_go_on(result, place))


def cancel(run: RunArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Stop a dispatched run. Safe to repeat."""
    place = store_to_read(store, "wakeful dispatch run INSTRUCTIONS")
    asked, result = asyncio.run(_cancel(place, run))
    if json:
        out(json_text({"cancelled": asked, "run": redact(result.to_wire())}, indent=2))
    elif asked:
        out(f"{result.run_id} was asked to stop: {result.status}")
    else:
        out(f"{result.run_id} has ended already: {result.status}")


def how_to_go_on(result: DispatchResult, place: StoreAddress) -> list[str]:
    """The next commands, for a run that has not ended."""
    if result.is_over:
        return []
    waits = result.diagnostics.get("waiting_for")
    lines = [f"it waits for approval: wakeful approvals{place.flag}"] if waits == "approval_required" else []
    lines += [f"it waits for a client: wakeful requests{place.flag}"] if waits == "runtime_tool_pending" else []
    if result.executor_id == "local":
        lines.append(f"to continue: wakeful dispatch resume {result.run_id}{place.flag}")
    return [*lines, f"to stop it: wakeful dispatch cancel {result.run_id}{place.flag}"]


async def _all(place: StoreAddress, limit: int) -> list[DispatchResult]:
    async with opened_host(place, HostCode(), reading=True) as host:
        return await host.dispatcher.all(OPERATOR, limit)


async def _one(place: StoreAddress, named: str) -> tuple[DispatchResult, list[dict[str, Any]]]:
    async with opened_host(place, HostCode(), reading=True) as host:
        run = await host.dispatcher.find(named, OPERATOR)
        return run, await host.dispatcher.events(run.session_id, run.run_id, OPERATOR)


async def _cancel(place: StoreAddress, named: str) -> tuple[bool, DispatchResult]:
    async with opened_host(place, HostCode()) as host:
        run = await host.dispatcher.find(named, OPERATOR)
        return await host.dispatcher.cancel(run.session_id, run.run_id, OPERATOR)


def _about(run: dict[str, Any]) -> str:
    said = run["diagnostics"].get("error_message") or run["diagnostics"].get("waiting_for") or run["output"] or ""
    return said if isinstance(said, str) else json_text(said)
