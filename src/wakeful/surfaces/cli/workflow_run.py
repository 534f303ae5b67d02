"""`wakeful workflow run`: a saved workflow as a turn in this process."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from wakeful.bootstrap import new_engine, opened_store
from wakeful.contracts.workflows import SavedWorkflow, WorkflowRunResult
from wakeful.service import MessageOrigin, RunRequest, UnknownRow, WorkflowTerms, as_text, fitted, workflow_registry
from wakeful.service.workflows.runs import WorkflowOutcome, run_workflow
from wakeful.surfaces.cli.code_loader import code_options
from wakeful.surfaces.cli.live_view import SilentView, somebody_or_nobody
from wakeful.surfaces.cli.options import (
    AgentOption,
    ApproveOption,
    JsonOption,
    NoInputOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WorkflowArgument,
    WorkspaceOption,
)
from wakeful.surfaces.cli.outcomes import INTERRUPTED, exit_code, tell
from wakeful.surfaces.cli.places import StoreAddress, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain
from wakeful.surfaces.cli.terminal_approver import approver_for
from wakeful.surfaces.cli.workflow_code import WorkflowCode, with_imported, workflow_code


def command(
    name: WorkflowArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; may be given several times."),
    ] = None,
    prompt: Annotated[str, typer.Option("--prompt", help="The input called prompt, where the workflow has one.")] = "",
    revision: Annotated[int | None, typer.Option("--revision", min=1, help="Left out: the newest.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Same key, same run: the same line resumes it, or gives its result.")
    ] = None,
    tools: ToolsOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    approve: ApproveOption = None,
    no_input: NoInputOption = False,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
    store: StoreOption = None,
) -> None:
    """Run a saved workflow, in this process, and print its outputs.

    Tools of its nodes come from --tools and the built-in ones, agents from --tools, --agent and imported packages.
    Calls go through the same gate as those of a conversation. What needs a person is asked here, at a terminal;
    elsewhere the run rests, says which command decides, and ends with 3.

    If the run is cut off, wakeful resume goes on with it; it has its own copy of the graph.
    """
    place = store_to_read(store, "wakeful workflow save FILE")
    code = workflow_code(tools, agent, workspace, profile)
    progress = somebody_or_nobody(quiet=quiet)
    approver = approver_for(progress, approve, no_input=no_input)
    request = RunRequest(
        code.agent,
        prompt,
        key=key,
        origin=MessageOrigin(surface="cli_prompt"),
        workflows=WorkflowTerms(agents=code.agents),
        approver=approver,
        watcher=progress,
    )
    request.on_turn = progress.begun
    again = code_options(tools, agent)
    try:
        outcome, unknown = asyncio.run(_run(name, revision, inputs or [], code, request, place, progress))
    except KeyboardInterrupt:
        turn = progress.turn_id
        note(f"\nstopped; to go on: wakeful resume {turn}{place.flag}{again}" if turn else "\nstopped; nothing began")
        raise typer.Exit(INTERRUPTED) from None
    if json:
        out(json_text(_document(outcome), indent=2))
    elif outcome.run.completed and outcome.result is not None:
        _tell_outputs(outcome.result)
    else:
        _tell_nodes(outcome.result)
        tell(outcome.run, unknown, place, quiet=quiet, code=again)
    raise typer.Exit(exit_code(outcome.run))


async def _run(
    name: str,
    revision: int | None,
    inputs: Sequence[str],
    code: WorkflowCode,
    request: RunRequest,
    place: StoreAddress,
    progress: SilentView,
) -> tuple[WorkflowOutcome, list[UnknownRow]]:
    async with opened_store(place.path) as opened:
        system = new_engine(opened)
        code = await with_imported(system, code)
        request.workflows = WorkflowTerms(agents=code.agents)
        registry = await workflow_registry(system, code.agent, code.agents)
        saved = await registry.find(name, revision)
        given = _inputs(saved, inputs)
        with contextlib.redirect_stdout(sys.stderr), progress:
            outcome = await run_workflow(system, registry, saved, request, given)
        return outcome, await opened.unknown() if outcome.run.unknown else []


def _inputs(saved: SavedWorkflow, given: Sequence[str]) -> dict[str, Any]:
    """`name=value` as values: read as JSON where the input can be no text."""
    texts: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WrongRequest(f"--input {each} is not NAME=VALUE", "for example: --input order=A17")
        if name in texts:
            raise WrongRequest(f"--input {name} is given twice", "leave one of them out")
        texts[name] = value
    return fitted(texts, {"properties": saved.graph.inputs})


def _document(outcome: WorkflowOutcome) -> dict[str, Any]:
    result = outcome.result.model_dump(mode="json") if outcome.result is not None else None
    return {"run": outcome.run.to_dict(), "result": result}


def _tell_outputs(result: WorkflowRunResult) -> None:
    if len(result.outputs) == 1:
        out(plain(as_text(next(iter(result.outputs.values())))))
    elif result.outputs:
        out(json_text(result.outputs, indent=2))
    else:
        out(f"{len(result.nodes)} nodes succeeded")
    for name, error in result.lost_outputs.items():
        note(f"there is no {name}: {error.message}")


def _tell_nodes(result: WorkflowRunResult | None) -> None:
    for node in result.nodes if result is not None else ():
        why = f": {one_line(node.error.message, 200)}" if node.error is not None else ""
        note(f"{node.id} {node.status}{why}")
