"""`wakeful package import` and `run`: agents from bundles, and workflows of packages."""

import asyncio
import contextlib
import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.contracts.errors import ForTheCaller
from wakeful.hosts.abilities.packages import RUN
from wakeful.service import MessageOrigin, RunRequest, WorkflowTerms
from wakeful.service.code_loader import code_options
from wakeful.service.operations.dispatches import IMPORT_BUNDLE, BundleToImport
from wakeful.service.serving.daemon_client import ControlRefused
from wakeful.surfaces.cli.connect_option import connect_to
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.host_setup import HostCode, opened_host
from wakeful.surfaces.cli.live_view import somebody_or_nobody
from wakeful.surfaces.cli.options import (
    AgentOption,
    ApproveOption,
    JsonOption,
    NoInputOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WorkspaceOption,
)
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_fill, store_to_write
from wakeful.surfaces.cli.problems import NeedsPerson, WrongRequest, complain, note, unreadable
from wakeful.surfaces.cli.shown_values import json_text, out, plain
from wakeful.surfaces.cli.terminal_approver import approver_for
from wakeful.surfaces.cli.workflow_code import workflow_code


def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Bundles, as JSON.")],
    on_conflict: Annotated[
        str, typer.Option("--on-conflict", metavar="error|skip|upgrade", help="If an agent of that name exists.")
    ] = "upgrade",
    slug: Annotated[str | None, typer.Option("--slug", help="The name of the agent.")] = None,
    tools: ToolsOption = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Register the agents of bundles. Tools they name come from --tools, or are those of the daemon; a bundle brings no
    code.

    Without --tools and --store, the daemon that is there registers them, with its own tools.
    """
    if tools and connect_to.get() is not None:
        raise WrongRequest("--tools is code of this machine, and the daemon of --connect has its own", "leave one out")
    place = store_to_write(store) if tools else place_to_fill(store)
    if place.daemon is not None:
        results = [_import_by_daemon(place, file, slug, on_conflict) for file in files]
    else:
        given = {"on_conflict": on_conflict, **({"slug": slug} if slug is not None else {})}
        results = asyncio.run(_import(place, HostCode(tools), [{"source": str(file)} for file in files], given))
    if json:
        out(json_text(results, indent=2))
    for result, file in zip(results, files, strict=True):
        if not result["success"]:
            complain(f"{file}: {result['error']['code']}: {result['error']['message']}")
        elif not json:
            out(f"{plain(str(result.get('agent_slug', file)))} {result.get('status', 'imported')}")
    if not all(result["success"] for result in results):
        raise typer.Exit(FAILED)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The request, as JSON: package, workflow, input, ...")],
    tools: ToolsOption = None,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    approve: ApproveOption = None,
    no_input: NoInputOption = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Run a workflow of a package: one that was saved here, or the one in the request.

    Its nodes may name the agents that wakeful package import registered for the package; tools come from --tools. An
    installed package that brings a handler of its own (hook runtime_package_run_handler) is asked first.
    """
    place = store_to_write(store)
    asked = _read(file)
    code = workflow_code(tools, agent, workspace, profile)
    progress = somebody_or_nobody(quiet=json)
    approver = approver_for(progress, approve, no_input=no_input)
    request = RunRequest(
        code.agent,
        "",
        origin=MessageOrigin(surface="cli_prompt"),
        workflows=WorkflowTerms(agents=code.agents),
        approver=approver,
        watcher=progress,
    )
    request.on_turn = progress.begun
    with progress:
        result = asyncio.run(_run(place, asked, HostCode.of(code), request))
    out(json_text(result if json else result["result"], indent=2))
    note(f"{result['run_id']} {result['status']}")
    turn = result["metadata"].get("turn_id")
    if result["status"] == "pending" and turn:
        again = f"wakeful resume {turn}{place.flag}{code_options(tools, agent)}"
        note(f"{result['result']['waits_for']}\nto continue: {again}")
        raise typer.Exit(NeedsPerson.exit_code)
    if result["status"] in ("failed", "cancelled"):
        complain(f"{result['error'].get('code', result['status'])}: {result['error'].get('message', '')}")
        raise typer.Exit(FAILED)


def _import_by_daemon(place: StoreAddress, file: Path, slug: str | None, on_conflict: str) -> dict[str, Any]:
    """The same result as of an import in this process."""
    try:
        done = ask(IMPORT_BUNDLE, BundleToImport(_read(file, "a bundle"), slug, on_conflict), place)
    except (ForTheCaller, ControlRefused) as refused:
        code = getattr(refused, "code", "invalid_request")
        return {"success": False, "error": {"code": code, "message": refused.message.removeprefix(f"{code}: ")}}
    return {"success": True, "agent_slug": done.slug, "agent": done.definition}


async def _import(
    place: StoreAddress, code: HostCode, specs: list[dict[str, Any]], given: dict[str, Any]
) -> list[dict[str, Any]]:
    async with opened_host(place, code) as host:
        return await host.bundles.import_all(specs, given)


async def _run(place: StoreAddress, asked: dict[str, Any], code: HostCode, request: RunRequest) -> dict[str, Any]:
    async with opened_host(place, code, packages=request) as host:
        with contextlib.redirect_stdout(sys.stderr):
            answer: dict[str, Any] = await host.abilities.call(RUN, asked)
        return answer


def _read(file: Path, what: str = "a request") -> dict[str, Any]:
    try:
        request = json_module.loads(file.read_text("utf-8"))
    except OSError as error:
        raise unreadable(file, error, "name a JSON file") from None
    except ValueError as error:
        raise WrongRequest(f"{file} is not JSON: {error}", "name a JSON file") from None
    if not isinstance(request, dict):
        raise WrongRequest(
            f"{file} holds a {type(request).__name__}, not {what}",
            '{"package": ..., "workflow": ...}' if what == "a request" else '{"agent": {"agent_slug": ...}, ...}',
        )
    return request
