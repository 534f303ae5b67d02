"""`wakeful workflow runs` and `cancel`: runs of workflows that a daemon has, and what came of them."""

from typing import Annotated, NoReturn

import typer

from wakeful.service.operations.workflow_runs import (
    CANCEL_WORKFLOW_RUN,
    LIST_WORKFLOW_RUNS,
    SHOW_WORKFLOW_RUN,
    START_WORKFLOW,
    WorkflowRunName,
    WorkflowRunQuery,
    WorkflowRunToCancel,
    WorkflowToRun,
)
from wakeful.surfaces.cli.daemon_turns import wait_for
from wakeful.surfaces.cli.exit_codes import COMPLETED, FAILED, NEEDS_PERSON
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.screen import columns, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, one_line, out, plain
from wakeful.surfaces.cli.workflow_words import tell_nodes, tell_outputs
from wakeful.views.workflow_runs import QueuedWorkflowRun

BEGINS_ONE = "wakeful workflow run NAME --agent AGENT"
EXITS = {"succeeded": COMPLETED, "failed": FAILED, "cancelled": FAILED}


def runs(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="One run: its id, its beginning, or its row number.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to list.")] = 20,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List the runs of workflows, newest first; or show one run with what its nodes came to."""
    place = place_to_ask(store, BEGINS_ONE)
    if run is not None:
        found = ask(SHOW_WORKFLOW_RUN, WorkflowRunName(run), place)
        out(json_text(found.model_dump(mode="json"), indent=2)) if json else _tell(found, place)
        return
    listed = ask(LIST_WORKFLOW_RUNS, WorkflowRunQuery(limit), place)
    remember("workflow runs", [each.run_id for each in listed], place)
    if json:
        out(json_text([each.model_dump(mode="json") for each in listed], indent=2))
    elif listed:
        cells = [
            (
                short(each.run_id),
                plain(each.workflow),
                plain(each.agent),
                each.status,
                age_cell(int(each.created_at * 1e6)),
                one_line(each.message, 200),
            )
            for each in listed
        ]
        out(columns(cells, ("RUN", "WORKFLOW", "AGENT", "STATUS", "AGE", "WHY"), wide=wide))
    else:
        out("no runs of workflows")


def cancel(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, its beginning, or its row number.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Stop a run of a workflow, or take it out of the queue. Safe to repeat."""
    place = place_to_ask(store, BEGINS_ONE)
    was = ask(SHOW_WORKFLOW_RUN, WorkflowRunName(run), place)
    found = ask(CANCEL_WORKFLOW_RUN, WorkflowRunToCancel(run), place)
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    elif was.status in EXITS:
        out(f"{short(found.run_id)} has ended already: {found.status}")
    else:
        out(f"{short(found.run_id)} was asked to stop: {found.status}")


def run_by_daemon(asked: WorkflowToRun, place: StoreAddress, *, wait: bool, as_json: bool) -> NoReturn:
    """The daemon makes the run safe at once; its outputs are waited for, if they are wanted."""
    found = ask(START_WORKFLOW, asked, place)
    if wait:
        wait_for(found.run_id, place, f"wakeful workflow runs {short(found.run_id)}")
        found = ask(SHOW_WORKFLOW_RUN, WorkflowRunName(found.run_id), place)
    if as_json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    elif not wait:
        out(plain(found.run_id))
        note(f"agent {plain(found.agent)} has it; wakeful workflow runs {short(found.run_id)}{place.flag}")
    elif found.status == "succeeded" and found.result is not None:
        tell_outputs(found.result)
    else:
        tell_nodes(found.result)
        note(f"{short(found.run_id)} {found.status}{f': {found.message}' if found.message else ''}")
        for line in _how_to_go_on(found, place):
            note(line)
    raise typer.Exit(COMPLETED if not wait else EXITS.get(found.status, NEEDS_PERSON))


def _tell(run: QueuedWorkflowRun, place: StoreAddress) -> None:
    out(
        [
            f"{short(run.run_id)}  {run.status}{f': {one_line(run.message, 300)}' if run.message else ''}",
            f"  workflow   {plain(run.workflow)}{f', revision {run.revision}' if run.revision else ''}",
            f"  agent      {plain(run.agent)}, thread {plain(run.thread)}",
            *([f"  turn       {short(run.turn_id)}"] if run.turn_id else []),
        ]
    )
    for node in run.result.nodes if run.result is not None else ():
        why = f": {one_line(node.error.message, 200)}" if node.error is not None else ""
        out(f"  node       {plain(node.id)} {node.status}{why}")
    for name, value in run.result.outputs.items() if run.result is not None else ():
        out(f"  output     {plain(name)}: {one_line(value if isinstance(value, str) else json_text(value), 300)}")
    out(_how_to_go_on(run, place))


def _how_to_go_on(run: QueuedWorkflowRun, place: StoreAddress) -> list[str]:
    if run.status in EXITS:
        return [f"log: wakeful events {short(run.turn_id)}{place.flag}"] if run.turn_id else []
    waits = (
        [f"its reason to wait: wakeful why {short(run.turn_id or run.run_id)}{place.flag}"]
        if run.status == "waiting"
        else []
    )
    return [*waits, f"to stop it: wakeful workflow cancel {short(run.run_id)}{place.flag}"]
