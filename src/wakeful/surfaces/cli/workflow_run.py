"""`wakeful workflow run`: a saved workflow as a turn in this process."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.workflows import SavedWorkflow
from wakeful.service import MessageOrigin, RunRequest, WorkflowTerms, fitted, workflow_registry
from wakeful.service.code_loader import code_options
from wakeful.service.operations.workflow_runs import WorkflowToRun
from wakeful.service.operations.workflows import SHOW_WORKFLOW, WorkflowName
from wakeful.service.queries.history import unknown_calls
from wakeful.service.workflows.runs import WorkflowOutcome, run_workflow
from wakeful.surfaces.cli.agents import named_agent
from wakeful.surfaces.cli.daemon_turns import check_options, check_own_run, daemon_for
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.live_view import SilentView, somebody_or_nobody
from wakeful.surfaces.cli.options import (
    AgentOrFileOption,
    ApproveOption,
    JsonOption,
    NoInputOption,
    NoWaitOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WorkflowArgument,
    WorkspaceOption,
)
from wakeful.surfaces.cli.outcomes import exit_code, tell
from wakeful.surfaces.cli.places import StoreAddress, ask, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.shown_values import json_text, out
from wakeful.surfaces.cli.terminal_approver import approver_for
from wakeful.surfaces.cli.workflow_code import WorkflowCode, with_imported, workflow_code
from wakeful.surfaces.cli.workflow_runs import run_by_daemon
from wakeful.surfaces.cli.workflow_words import tell_nodes, tell_outputs
from wakeful.views.store_records import UnknownCall


def command(
    name: WorkflowArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input of the workflow. Repeatable."),
    ] = None,
    prompt: Annotated[str, typer.Option("--prompt", help="The input named prompt.")] = "",
    revision: Annotated[int | None, typer.Option("--revision", min=1, help="Default: the newest.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Names the run: the same key continues it, or prints its stored result.")
    ] = None,
    tools: ToolsOption = None,
    agent: AgentOrFileOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    approve: ApproveOption = None,
    no_input: NoInputOption = False,
    no_wait: NoWaitOption = False,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
    store: StoreOption = None,
) -> None:
    """Run a saved workflow and print its outputs: in this process, or with --agent NAME in the daemon.

    With --agent NAME the tools, the policy and the budget of that agent of the daemon hold, and the daemon goes on with
    the run even if this command ends.

    Nodes use the built-in tools and those of --tools, and the agents of --tools, --agent and imported packages. Calls
    that need approval are asked about at the terminal. Without a terminal the run is stored as pending, the command
    prints how to approve it, and ends with exit code 3.

    If the run is interrupted, wakeful resume continues it with its own copy of the workflow.
    """
    living = named_agent(agent)
    if living is not None:
        own = {
            "--tools": tools,
            "--workspace": workspace,
            "--profile": profile,
            "--approve": approve,
            "--no-input": no_input,
            "--quiet": quiet,
        }
        where = daemon_for(living, store)
        check_options(own, living, where)
        saved = ask(SHOW_WORKFLOW, WorkflowName(name, revision), where)
        asked = WorkflowToRun(saved.workflow_id, living, _inputs(saved, inputs or []), prompt, revision, key=key)
        run_by_daemon(asked, where, wait=not no_wait, as_json=json)
    check_own_run(no_wait=no_wait)
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
        go_on = f"\nInterrupted. To continue: wakeful resume {short(turn)}{place.flag}{again}" if turn else ""
        note(go_on or "\nInterrupted before anything was stored.")
        raise typer.Exit(INTERRUPTED) from None
    if json:
        out(json_text(_document(outcome), indent=2))
    elif outcome.run.completed and outcome.result is not None:
        tell_outputs(outcome.result)
    else:
        tell_nodes(outcome.result)
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
) -> tuple[WorkflowOutcome, list[UnknownCall]]:
    async with opened_store(place.path) as opened:
        system = new_engine(opened)
        code = await with_imported(system, code)
        request.workflows = WorkflowTerms(agents=code.agents)
        registry = await workflow_registry(system, code.agent, code.agents)
        saved = await registry.find(name, revision)
        given = _inputs(saved, inputs)
        with contextlib.redirect_stdout(sys.stderr), progress:
            outcome = await run_workflow(system, registry, saved, request, given)
        return outcome, await unknown_calls(opened) if outcome.run.unknown else []


def _inputs(saved: SavedWorkflow, given: Sequence[str]) -> dict[str, Any]:
    """`name=value` as values: read as JSON where the input can be no text."""
    texts: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WrongRequest(f"--input {each} is not NAME=VALUE", "write it like this: --input order=A17")
        if name in texts:
            raise WrongRequest(f"--input {name} is given twice", "leave one of them out")
        texts[name] = value
    return fitted(texts, {"properties": saved.graph.inputs})


def _document(outcome: WorkflowOutcome) -> dict[str, Any]:
    result = outcome.result.model_dump(mode="json") if outcome.result is not None else None
    return {"run": outcome.run.to_dict(), "result": result}
