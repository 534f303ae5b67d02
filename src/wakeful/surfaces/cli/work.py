"""`wakeful work` and `work add`: the work items of an agent, and one more for its queue."""

from typing import Annotated

import typer

from wakeful.service.operations.work import ENQUEUE_WORK, LIST_WORK, NewWorkItem, WorkItemQuery
from wakeful.surfaces.cli.agent_control import AgentArgument
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, one_line, out, plain


def listed(
    agent: AgentArgument,
    completed: Annotated[bool, typer.Option("--completed", help="List completed items instead.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many at most.")] = 100,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List the work items of an agent: what each is for, how it stands, and what holds it up."""
    place = place_to_ask(store)
    found = ask(LIST_WORK, WorkItemQuery(agent, completed, limit), place)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no work items")
    else:
        cells = [
            (
                short(each.id),
                "current" if each.is_current else each.readiness,
                age_cell(int(each.created_at * 1e6)),
                one_line(each.objective, 200),
                one_line(each.completion_report or each.blocked_by or "", 200) or "-",
            )
            for each in found
        ]
        out(columns(cells, ("ITEM", "STATE", "AGE", "OBJECTIVE", "REPORT" if completed else "BLOCKED BY"), wide=wide))


def add(
    agent: AgentArgument,
    objective: Annotated[str, typer.Argument(metavar="OBJECTIVE", help="The result that is wanted.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Add an objective to an agent's queue. The agent works on it when nothing that comes first is left."""
    place = place_to_ask(store)
    item = ask(ENQUEUE_WORK, NewWorkItem(agent, objective), place)
    if json:
        out(json_text(item.model_dump(mode="json"), indent=2))
        return
    prose(f"{short(item.id)} is in the queue of agent {plain(item.agent)}: {item.readiness}")
    out(f"all of them: wakeful work {plain(item.agent)}{place.flag}")
