"""`wakeful dispatch run` and `resume`, and `wakeful targets`: hand work to a target, and see who takes it."""

import asyncio
import contextlib
import json as json_module
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.hosts.dispatch.dispatch_request import TERMINAL, DispatchResult, ExecutorTarget
from wakeful.service.operations.dispatches import SHOW_DISPATCH, START_DISPATCH, DispatchName, NewDispatch
from wakeful.surfaces.cli.agents import named_agent
from wakeful.surfaces.cli.daemon_turns import check_options, check_own_run, daemon_for, wait_for
from wakeful.surfaces.cli.dispatch_show import RunArgument, how_to_go_on, result_of
from wakeful.surfaces.cli.exit_codes import FAILED, NEEDS_PERSON
from wakeful.surfaces.cli.host_setup import OPERATOR, HostCode, opened_host
from wakeful.surfaces.cli.options import (
    AgentOption,
    AgentOrFileOption,
    JsonOption,
    NoWaitOption,
    StoreOption,
    ToolsOption,
    WideOption,
)
from wakeful.surfaces.cli.places import StoreAddress, any_place, ask, store_to_read, store_to_write
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain

InputsOption = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input, as JSON or text. Repeatable."),
]


def run(
    instructions: Annotated[str, typer.Argument(metavar="INSTRUCTIONS", help="The task, in words.")],
    task: Annotated[str, typer.Option("--name", metavar="ID", help="A name for the task.")] = "task",
    inputs: InputsOption = None,
    name: Annotated[str | None, typer.Option("--as", metavar="AGENT", help="The agent that runs it.")] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="ID", help="The preferred target.")] = None,
    allow: Annotated[list[str] | None, typer.Option("--allow", metavar="ID", help="Only these targets.")] = None,
    resource_class: Annotated[str, typer.Option("--class", metavar="CLASS", help="The resource class it needs.")] = "",
    need: Annotated[
        list[str] | None,
        typer.Option("--need", metavar="CAPABILITY", help="A capability the target must have. Repeatable."),
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Its session.")] = None,
    run_id: Annotated[str | None, typer.Option("--run-id", metavar="ID", help="The id of the run, used once.")] = None,
    tools: ToolsOption = None,
    agent: AgentOrFileOption = None,
    no_wait: NoWaitOption = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Hand work to a target and wait for its result. The built-in target, local, runs it as a turn of an agent.

    With --agent NAME the daemon runs it, as a new turn of that agent; Ctrl-C, or --no-wait, leaves it to the daemon.
    """
    living = named_agent(agent)
    if living is not None:
        own = {
            "--as": name,
            "--target": target,
            "--allow": allow,
            "--class": resource_class,
            "--need": need,
            "--tools": tools,
        }
        where = daemon_for(living, store)
        check_options(own, living, where)
        work = NewDispatch(living, instructions, task, _inputs(inputs or []), session, run_id)
        _run_by_daemon(work, where, wait=not no_wait, as_json=json)
        return
    check_own_run(no_wait=no_wait)
    place = store_to_write(store)
    given: dict[str, Any] = {
        "task": {"id": task, "instructions": instructions, "input": _inputs(inputs or [])},
        "placement": {
            "preferred_target": target,
            "allowed_targets": allow or [],
            "resource_class": resource_class,
            "required_capabilities": need or [],
        },
        "metadata": {"agent": name} if name is not None else {},
        "session_id": session,
        "run_id": run_id,
    }
    _tell(asyncio.run(_run(place, HostCode(tools, agent), given)).to_wire(), place, as_json=json)


def resume(
    run: RunArgument,
    tools: ToolsOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Continue an unfinished run of the built-in target."""
    place = store_to_read(store, "wakeful dispatch run INSTRUCTIONS")
    _tell(asyncio.run(_resume(place, HostCode(tools, agent), run)).to_wire(), place, as_json=json)


def targets(
    tools: ToolsOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List the targets for dispatched work: local, if there is an agent, and those of installed packages."""
    place = any_place(store)
    there = place if Path(place.path).exists() else place._replace(path=":memory:")  # looking makes no store
    listed = asyncio.run(_targets(there, HostCode(tools, agent)))
    if json:
        out(json_text([target.to_wire() for target in listed], indent=2))
    elif listed:
        cells = [
            (target.id, target.kind, ", ".join(target.capabilities), ", ".join(target.resource_classes) or "any",
             one_line(target.description, 80))
            for target in listed
        ]  # fmt: skip
        out(columns(cells, ("ID", "KIND", "CAPABILITIES", "CLASSES", "DESCRIPTION"), wide=wide))
    else:
        out("no targets")
        out("Supply an agent with --tools MODULE:AGENT or --agent FILE, or import one:")
        out(f"  wakeful package import FILE{place.flag}")


def _run_by_daemon(work: NewDispatch, place: StoreAddress, *, wait: bool, as_json: bool) -> None:
    """The daemon makes the work safe at once; its result is waited for, if it is wanted."""
    found = ask(START_DISPATCH, work, place)
    if wait:
        message = result_of(found)["provenance"].get("message_id")
        if message is not None:
            wait_for(message, place, f"wakeful dispatch show {found.run_id}")
        found = ask(SHOW_DISPATCH, DispatchName(found.run_id), place)
    elif not as_json:
        out(plain(found.run_id))
        note(f"agent {plain(work.agent)} has it; wakeful dispatch show {plain(found.run_id)}{place.flag}")
        return
    _tell(result_of(found), place, as_json=as_json, waited=wait)


async def _run(place: StoreAddress, code: HostCode, given: dict[str, Any]) -> DispatchResult:
    async with opened_host(place, code) as host:
        with contextlib.redirect_stdout(sys.stderr):
            return await host.dispatcher.run(given, OPERATOR)


async def _resume(place: StoreAddress, code: HostCode, run: str) -> DispatchResult:
    async with opened_host(place, code) as host:
        known = await host.dispatcher.find(run, OPERATOR)
        with contextlib.redirect_stdout(sys.stderr):
            return await host.dispatcher.resume(known.session_id, known.run_id, OPERATOR)


async def _targets(place: StoreAddress, code: HostCode) -> tuple[ExecutorTarget, ...]:
    async with opened_host(place, code) as host:
        return await host.dispatcher.targets()


def _inputs(given: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WrongRequest(f"--input {each} is not NAME=VALUE", "write it like this: --input month=5")
        if name in values:
            raise WrongRequest(f"--input {name} is given twice", "leave one of them out")
        try:
            values[name] = json_module.loads(value)
        except ValueError:
            values[name] = value
    return values


def _tell(result: Mapping[str, Any], place: StoreAddress, *, as_json: bool, waited: bool = True) -> None:
    fallback, run, status = result["diagnostics"].get("placement_fallback"), plain(result["run_id"]), result["status"]
    if fallback is not None:
        unused = f"{fallback['preferred_target']} was not used ({fallback['reason']})"
        note(f"{unused}; the run went to {fallback['selected_target']}")
    if as_json:
        out(json_text(result, indent=2))
    elif status == "succeeded":
        answer = result["output"]
        out(plain(answer) if isinstance(answer, str) else json_text(answer, indent=2))
        note(f"{run} succeeded; wakeful dispatch show {run}{place.flag}")
    else:
        why = result["diagnostics"].get("error_message")
        note(f"{run} {status}{f': {why}' if why else ''}")
        for line in how_to_go_on(result, place):
            note(line)
    if status not in TERMINAL and waited:
        raise typer.Exit(NEEDS_PERSON)
    if status in ("failed", "cancelled"):
        raise typer.Exit(FAILED)
