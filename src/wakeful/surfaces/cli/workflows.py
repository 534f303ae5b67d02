"""`wakeful workflow list`, `show`, `delete`, `validate`, `save`: graphs, and what is saved of them."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidWorkflow
from wakeful.contracts.workflows import GraphProblem, SavedWorkflow, WorkflowGraph
from wakeful.service import as_lines, as_mermaid, read_graph, workflow_registry
from wakeful.service.code_loader import code_options
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.workflow_runs import SAVE_WORKFLOW, WorkflowToSave
from wakeful.service.operations.workflows import DELETE_WORKFLOW, LIST_WORKFLOWS, SHOW_WORKFLOW, WorkflowName
from wakeful.surfaces.cli.agents import named_agent
from wakeful.surfaces.cli.daemon_turns import check_options, check_own_run, daemon_for
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import (
    AgentOption,
    AgentOrFileOption,
    GraphFileArgument,
    JsonOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WideOption,
    WorkflowArgument,
    WorkspaceOption,
)
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask, store_to_write
from wakeful.surfaces.cli.problems import WrongRequest, unreadable
from wakeful.surfaces.cli.screen import columns, short
from wakeful.surfaces.cli.shown_values import age_cell, counted, json_text, moment, one_line, out, plain
from wakeful.surfaces.cli.workflow_code import WorkflowCode, with_imported, workflow_code

SAVES_ONE = "wakeful workflow save FILE"


def listed(json: JsonOption = False, wide: WideOption = False, store: StoreOption = None) -> None:
    """List the saved workflows, each with its newest revision."""
    place = place_to_ask(store, SAVES_ONE)
    saved = ask(LIST_WORKFLOWS, NoRequest(), place)
    remember("workflows", [each.workflow_id for each in saved], place, [each.name for each in saved])
    if json:
        out(json_text([each.model_dump(mode="json") for each in saved], indent=2))
    elif not saved:
        out("no saved workflows")
        out(f"save one: wakeful workflow save FILE{place.flag}")
    else:
        cells = [
            (
                each.name,
                short(each.workflow_id),
                str(each.revision),
                age_cell(each.created_at),
                counted(len(each.graph.nodes), "node"),
                one_line(each.graph.description, 80),
            )
            for each in saved
        ]
        out(columns(cells, ("NAME", "ID", "REVISION", "AGE", "SIZE", "DESCRIPTION"), wide=wide))


def show(
    name: WorkflowArgument,
    revision: Annotated[int | None, typer.Option("--revision", min=1, help="Default: the newest.")] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the graph as JSON, ready to be saved again.")] = False,
    store: StoreOption = None,
) -> None:
    """Draw a workflow: its nodes in the order they run, and where each gets its inputs."""
    if json and mermaid:
        raise WrongRequest("--json and --mermaid were both given", "leave one of them out")
    saved = ask(SHOW_WORKFLOW, WorkflowName(name, revision), place_to_ask(store, SAVES_ONE))
    if json:
        out(json_text(saved.graph.as_json(), indent=2))
    elif mermaid:
        out(plain(as_mermaid(saved.graph)).rstrip("\n"))
    else:
        when = f"revision {saved.revision}, saved {moment(saved.created_at)}"
        out(f"{plain(saved.name)}  {short(saved.workflow_id)}  {when}")
        if saved.graph.description:
            out(plain(saved.graph.description))
        out(["", *(plain(line) for line in as_lines(saved.graph))])


def delete(name: WorkflowArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Delete a workflow with all its revisions. Runs that have started keep their own copy."""
    saved = ask(DELETE_WORKFLOW, WorkflowName(name), place_to_ask(store, SAVES_ONE))
    if json:
        out(json_text(saved.model_dump(mode="json"), indent=2))
        return
    many = "1 revision" if saved.revision == 1 else f"{saved.revision} revisions"
    out(f"deleted {plain(saved.name)} ({short(saved.workflow_id)}), {many}")


def validate(
    file: GraphFileArgument,
    tools: ToolsOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """Check a workflow file and list every problem by code and path. Nothing is run or saved.

    Tools of nodes come from --tools and the built-in ones, agents from --tools and --agent.
    """
    code = workflow_code(tools, agent, workspace, profile)
    graph = read_graph(_text(file))
    problems = asyncio.run(_problems(graph, code)) if isinstance(graph, WorkflowGraph) else graph
    if json:
        told = [each.model_dump(mode="json") for each in problems]
        out(json_text({"valid": not problems, "problems": told}, indent=2))
        if problems:
            raise typer.Exit(WrongRequest.exit_code)
    elif problems:
        raise InvalidWorkflow(f"{file} is not a valid workflow", problems)
    else:
        assert isinstance(graph, WorkflowGraph)
        out(f"{plain(graph.name)} is valid: {counted(len(graph.nodes), 'node')}, {counted(len(graph.edges), 'edge')}")


def save(
    file: GraphFileArgument,
    tools: ToolsOption = None,
    agent: AgentOrFileOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Save a workflow file: as a new workflow, or as the next revision of the one with its id or name.

    An invalid workflow is not saved. With --agent NAME the daemon checks it, with the tools of that agent.
    """
    graph = read_graph(_text(file))
    if not isinstance(graph, WorkflowGraph):
        raise InvalidWorkflow(f"{file} is not a workflow", graph)
    living = named_agent(agent)
    if living is not None:
        where = daemon_for(living, store)
        check_options({"--tools": tools, "--workspace": workspace, "--profile": profile}, living, where)
        kept = ask(SAVE_WORKFLOW, WorkflowToSave(living, graph.model_dump(mode="json", by_alias=True)), where)
        _tell_saved(kept, where, f" --agent {living}", json)
        return
    check_own_run()
    code = workflow_code(tools, agent, workspace, profile)
    place = store_to_write(store)
    saved = asyncio.run(_save(graph, code, place.path))
    _tell_saved(saved, place, code_options(tools, agent), json)


def _tell_saved(saved: SavedWorkflow, place: StoreAddress, code: str, json: bool) -> None:
    if json:
        out(json_text(saved.reference.model_dump(mode="json"), indent=2))
        return
    out(f"saved {plain(saved.name)} as {short(saved.workflow_id)}, revision {saved.revision}")
    out(f"show it: wakeful workflow show {short(saved.workflow_id)}{place.flag}")
    out(f"run it: wakeful workflow run {short(saved.workflow_id)}{place.flag}{code}")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise unreadable(file, error, "name a JSON file") from None
    except UnicodeDecodeError:
        raise WrongRequest(f"{file} is not a text file", "name a JSON file, in UTF-8") from None


async def _problems(graph: WorkflowGraph, code: WorkflowCode) -> tuple[GraphProblem, ...]:
    async with opened_store(None) as opened:
        return (await workflow_registry(new_engine(opened), code.agent, code.agents)).problems(graph)


async def _save(graph: WorkflowGraph, code: WorkflowCode, path: str) -> SavedWorkflow:
    async with opened_store(path) as opened:
        system = new_engine(opened)
        code = await with_imported(system, code)
        return await (await workflow_registry(system, code.agent, code.agents)).keep(graph)
