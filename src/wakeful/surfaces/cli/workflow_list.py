"""`wakeful workflow list`, `show` and `delete`: what is saved."""

import asyncio
from typing import Annotated

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.workflows import SavedWorkflow
from wakeful.decisions.workflows.drawing import as_lines, as_mermaid
from wakeful.service.workflows import WorkflowRegistry, workflow_registry
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WorkflowArgument
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown import columns, json_text, moment, one_line, out, plain


def listed(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the workflows that are saved, each with its newest revision."""
    place = store_to_read(store, "wakeful workflow save FILE")
    saved = asyncio.run(_all(place))
    if json:
        out(json_text([each.model_dump(mode="json") for each in saved], indent=2))
    elif not saved:
        out("no workflow is saved here")
        out(f"save one: wakeful workflow save FILE{place.flag}")
    else:
        cells = [
            (
                each.name,
                each.workflow_id,
                str(each.revision),
                moment(each.created_at),
                f"{len(each.graph.nodes)} nodes",
                one_line(each.graph.description, 80),
            )
            for each in saved
        ]
        out(columns(cells, ("NAME", "ID", "REVISION", "SAVED", "SIZE", "WHAT")))


def show(
    name: WorkflowArgument,
    revision: Annotated[int | None, typer.Option("--revision", min=1, help="Left out: the newest.")] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The graph as JSON, as it can be saved again.")] = False,
    store: StoreOption = None,
) -> None:
    """Show a workflow: its nodes in the order they may run, and where each takes its inputs from."""
    if json and mermaid:
        raise WrongRequest("--json and --mermaid are two forms of the same thing", "leave one of them out")
    saved = asyncio.run(_one(store_to_read(store, "wakeful workflow save FILE"), name, revision))
    if json:
        out(json_text(saved.graph.as_json(), indent=2))
    elif mermaid:
        out(plain(as_mermaid(saved.graph)).rstrip("\n"))
    else:
        out(f"{plain(saved.name)}  {saved.workflow_id}  revision {saved.revision}, saved {moment(saved.created_at)}")
        if saved.graph.description:
            out(plain(saved.graph.description))
        out(["", *(plain(line) for line in as_lines(saved.graph))])


def delete(name: WorkflowArgument, store: StoreOption = None) -> None:
    """Forget a workflow with all its revisions. What runs has its own copy and goes on."""
    saved = asyncio.run(_delete(store_to_read(store, "wakeful workflow save FILE"), name))
    many = "1 revision" if saved.revision == 1 else f"{saved.revision} revisions"
    out(f"{plain(saved.name)} ({saved.workflow_id}) is deleted, with {many}")


async def _all(place: Place) -> list[SavedWorkflow]:
    async with opened_store(place.path) as opened:
        return await (await workflow_registry(runtime(opened))).list()


async def _one(place: Place, name: str, revision: int | None) -> SavedWorkflow:
    async with opened_store(place.path) as opened:
        return await (await workflow_registry(runtime(opened))).find(name, revision)


async def _delete(place: Place, name: str) -> SavedWorkflow:
    async with opened_store(place.path) as opened:
        registry: WorkflowRegistry = await workflow_registry(runtime(opened))
        saved = await registry.find(name)
        await registry.delete(saved.workflow_id)
        return saved
