"""`wakeful workflow validate` and `save`: a graph from a file, held to the tools and agents that are there."""

import asyncio
from pathlib import Path

import typer

from wakeful.bootstrap import opened_store, runtime
from wakeful.contracts.errors import InvalidWorkflow
from wakeful.contracts.workflows import GraphProblem, SavedWorkflow, WorkflowGraph
from wakeful.decisions.workflows.reading import read_graph
from wakeful.service.workflows import workflow_registry
from wakeful.surfaces.cli.loading import code_options
from wakeful.surfaces.cli.options import (
    AgentOption,
    GraphFileArgument,
    JsonOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WorkspaceOption,
)
from wakeful.surfaces.cli.places import store_to_write
from wakeful.surfaces.cli.problems import WrongRequest, unreadable
from wakeful.surfaces.cli.shown import json_text, out, plain
from wakeful.surfaces.cli.workflow_code import WorkflowCode, with_imported, workflow_code


def validate(
    file: GraphFileArgument,
    tools: ToolsOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """Say everything that is wrong with a graph, by code and path. Nothing is run or kept.

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
        raise InvalidWorkflow(f"{file} is not a workflow that could run", problems)
    else:
        assert isinstance(graph, WorkflowGraph)
        out(f"{plain(graph.name)} is valid: {len(graph.nodes)} nodes, {len(graph.edges)} edges")


def save(
    file: GraphFileArgument,
    tools: ToolsOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Keep a graph: a new workflow, or the next revision of the one with its id or name. An invalid one is not kept."""
    code = workflow_code(tools, agent, workspace, profile)
    graph = read_graph(_text(file))
    if not isinstance(graph, WorkflowGraph):
        raise InvalidWorkflow(f"{file} is not a workflow", graph)
    place = store_to_write(store)
    saved = asyncio.run(_save(graph, code, place.path))
    if json:
        out(json_text(saved.reference.model_dump(mode="json"), indent=2))
    else:
        out(f"{plain(saved.name)} is saved as {saved.workflow_id}, revision {saved.revision}")
        out(f"look at it: wakeful workflow show {saved.workflow_id}{place.flag}")
        out(f"run it: wakeful workflow run {saved.workflow_id}{place.flag}{code_options(tools, agent)}")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise unreadable(file, error, "name a JSON file") from None
    except UnicodeDecodeError:
        raise WrongRequest(f"{file} is no text", "name a JSON file, in UTF-8") from None


async def _problems(graph: WorkflowGraph, code: WorkflowCode) -> tuple[GraphProblem, ...]:
    async with opened_store(None) as opened:
        return (await workflow_registry(runtime(opened), code.agent, code.agents)).problems(graph)


async def _save(graph: WorkflowGraph, code: WorkflowCode, path: str) -> SavedWorkflow:
    async with opened_store(path) as opened:
        system = runtime(opened)
        code = await with_imported(system, code)
        return await (await workflow_registry(system, code.agent, code.agents)).keep(graph)
