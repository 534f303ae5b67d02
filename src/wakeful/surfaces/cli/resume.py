"""`wakeful resume`: go on with what was cut off."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from wakeful.bootstrap.engines import new_engine, resolve_model
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import AgentBusy, AgentMissing, ToolMissing, WakefulError
from wakeful.contracts.workflows import WorkflowRunResult
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.packages.workflows import settle_package
from wakeful.service import Agent, Engine, Store, TurnRow
from wakeful.service.code_loader import LoadedCode, code_options, load
from wakeful.service.commands.agent_rebuild import (
    NOT_RUN,
    RUN_IT,
    NeverBegan,
    ToolsNotSupplied,
    code_needed,
    rebuilt_agent,
)
from wakeful.service.commands.turn_claims import recall
from wakeful.service.commands.turn_retries import check_retry
from wakeful.service.commands.turns import resume_turn
from wakeful.service.operations.retries import TurnRetry, budget_in
from wakeful.service.queries.history import unknown_calls
from wakeful.service.queries.turns import find_turn, open_turns, shown_states
from wakeful.service.run_result import RunResult
from wakeful.service.workflows.runs import runs_workflow, workflow_result
from wakeful.surfaces.cli.agents import check_approved
from wakeful.surfaces.cli.daemon_resume import resumed_by_daemon
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.live_view import somebody_or_nobody
from wakeful.surfaces.cli.options import (
    AgentOption,
    ApproveOption,
    JsonOption,
    NoInputOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WideOption,
    WorkspaceOption,
)
from wakeful.surfaces.cli.outcomes import exit_code, resume_line, tell
from wakeful.surfaces.cli.places import StoreAddress, place_to_ask, store_to_read
from wakeful.surfaces.cli.problems import NeedsPerson, WrongRequest, complain, note
from wakeful.surfaces.cli.runtime_watch import hold
from wakeful.surfaces.cli.screen import columns, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, one_line, out
from wakeful.surfaces.cli.terminal_approver import approver_for
from wakeful.surfaces.cli.workflow_words import tell_nodes, tell_outputs
from wakeful.views.store_records import TurnContinuation, UnknownCall


class SuppliedCode(NamedTuple):
    """Code and choices that the person brought along."""

    workspace: Path | None
    profile: str | None
    approve: list[str] | None
    no_input: bool
    code: str
    """The options that bring the same code again."""

    loaded: LoadedCode
    agents: list[Agent[Any, Any]]
    model: str | None
    lift_pause: bool
    """A turn was named: it goes on, also when somebody paused it."""


def command(
    turn: Annotated[
        str | None,
        typer.Argument(metavar="TURN", help="Id, beginning of the id, or key. Default: every unfinished turn."),
    ] = None,
    store: StoreOption = None,
    tools: ToolsOption = None,
    agent: AgentOption = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:MODEL", help="Continue with another model.")
    ] = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    approve: ApproveOption = None,
    no_input: NoInputOption = False,
    everything: Annotated[bool, typer.Option("--all", help="Take back wakeful pause --all or stop --all.")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Only list the unfinished turns.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Continue an unfinished turn, or all of them.

    The agent and its folder are restored from the turn's log; code for its tools comes from --tools. For a finished
    turn, the stored answer is printed. Pending approvals are asked about at the terminal. A paused turn continues only
    when you name it. With --all, agents of a runtime run again that pause --all or stop --all held; the process that
    runs them goes on with their turns.

    A paused turn of an agent of the daemon goes on in the daemon; --json prints the turn then.
    """
    if everything:
        if turn is not None or list_only:
            raise WrongRequest("--all was given with a turn or --list", "wakeful resume --all")
        hold("running", "", json, place_to_ask(store))
        return
    place = store_to_read(store) if turn is None or list_only else place_to_ask(store)
    if list_only:
        rows, states, go_on = asyncio.run(_open(place))
        remember("turns", [row.turn_id for row in rows], place, [row.key for row in rows if row.key])
        _list(rows, states, go_on, json=json, wide=wide)
        return
    if turn is not None and place.daemon is not None:
        own = {
            "--tools": tools,
            "--agent": agent,
            "--model": model,
            "--workspace": workspace,
            "--profile": profile,
            "--approve": approve,
        }
        if resumed_by_daemon(turn, own, place, json=json, quiet=quiet):
            return
        place = place._replace(daemon=None)  # nobody runs the turn: it goes on here, on the file
    loaded = load(tools or [])
    for words in loaded.notes:
        note(words)
    agents = [*loaded.agents, *([Agent.from_file(agent, loaded.tools)] if agent is not None else [])]
    try:
        code = code_options(tools, agent)
        named = turn is not None
        supplied = SuppliedCode(workspace, profile, approve, no_input, code, loaded, agents, model, lift_pause=named)
        turns = None if turn is None else [turn]
        codes = asyncio.run(resume_turns(turns, place, supplied, single=named, json=json, quiet=quiet))
    except KeyboardInterrupt:
        note(f"\nInterrupted. To continue: wakeful resume{' ' + turn if turn else ''}{place.flag}")
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(max(codes, default=0))


async def _open(place: StoreAddress) -> tuple[list[TurnRow], list[str], str]:
    """The turns that are unfinished, how they stand, and the line that goes on with the first of them."""
    async with opened_store(place.path, reading=True) as opened:
        rows = await open_turns(opened)
        states = await shown_states(opened, rows)
        if not rows:
            return rows, states, ""
        needed = await code_needed(opened, rows[0], resolve_model)
        if needed is None:
            return rows, states, "wakeful daemon start, or the program that runs the agent"
        ahead = TurnContinuation(turn_id=rows[0].turn_id, state=rows[0].state, code_needed=tuple(needed))
        return rows, states, resume_line(ahead, place)


def _list(rows: list[TurnRow], states: list[str], go_on: str, *, json: bool, wide: bool) -> None:
    if json:
        out(json_text([_as_json(row) for row in rows], indent=2))
    elif rows:
        cells = [
            (short(row.turn_id), state, age_cell(row.created_at), row.agent_name, one_line(row.prompt_preview, 200))
            for row, state in zip(rows, states, strict=True)
        ]
        out(columns(cells, ("TURN", "STATE", "AGE", "AGENT", "PROMPT"), wide=wide))
        waiting = [f"{short(row.turn_id)} waits for {_waits(row)}" for row in rows if row.waiting_for]
        out(["", *waiting, f"continue: {go_on}"])
    else:
        out("no unfinished turns")


def _waits(row: TurnRow) -> str:
    return ", ".join(short(each) for each in row.waiting_for)


def _as_json(row: TurnRow) -> dict[str, Any]:
    wanted = ("turn_id", "agent_id", "agent_name", "thread_id", "state", "key", "prompt_preview", "created_at")
    return {**{name: getattr(row, name) for name in wanted}, "waiting_for": list(row.waiting_for)}


async def check_code(asked: TurnRetry, place: StoreAddress, supplied: SuppliedCode, given: str) -> None:
    """Raises NeedsPerson where a turn that is to be tried again would go on here and its code is missing: then it stays
    as it was. Of one that cannot be tried again at all, that is said first. `given` are the options that were typed:
    the command takes the code of tools and of agents, and no other model."""
    if place.is_far:
        return
    async with opened_store(place.path) as store:
        row = await find_turn(store, asked.turn)
        system, again = new_engine(store), f"wakeful retry {short(row.turn_id)}{given}"
        is_of_daemon = place.daemon is not None and await store.runtime_agent(row.agent_id) is not None
        if row.is_open or is_of_daemon or await code_needed(store, row, system.resolve_model) is None:
            return
        await check_retry(store, row.turn_id, budget=budget_in(asked), max_steps=asked.max_steps)
        try:
            await _with_own(system, row, supplied)
        except ToolsNotSupplied as missing:
            raise _with_command(missing, again, place) from missing
        except (AgentMissing, ToolMissing) as missing:
            line = f"{again}{place.flag} --tools MODULE:AGENT"
            hint = f"{NOT_RUN}try it again from your program, or name the agent\n{line}"
            raise NeedsPerson(missing.message, hint) from missing


async def resume_turns(
    turns: Sequence[str] | None, place: StoreAddress, supplied: SuppliedCode, *, single: bool, json: bool, quiet: bool
) -> list[int]:
    """Resume and tell, one turn after the other; the exit code of each. None: all that are unfinished."""
    async with opened_store(place.path) as opened:
        system = new_engine(opened)
        rows = await open_turns(opened) if turns is None else [await find_turn(opened, turn) for turn in turns]
        if not rows and not json:
            note("no unfinished turns")
        codes, results = [], []
        for row in rows:
            try:
                result = await _one(system, row, place, supplied, quiet)
            except AgentBusy as busy:
                if single:
                    raise
                note(f"{busy.message}\nwatch it: wakeful events {short(row.turn_id)} --follow{place.flag}")
                continue
            except NeedsPerson as problem:
                if single:
                    raise
                complain(problem.message, problem.hint)  # the others go on
                codes.append(problem.exit_code)
                results.append(await recall(system, row, None))
                continue
            codes.append(exit_code(result))
            results.append(result)
            if json:
                continue
            outputs = await _outputs(opened, result)
            if outputs is not None and result.completed:
                tell_outputs(outputs)
                continue
            tell_nodes(outputs)
            unknown: list[UnknownCall] = await unknown_calls(opened) if result.unknown else []
            tell(result, unknown, place, quiet=quiet, code=supplied.code)
        if json:
            documents = [result.to_dict() for result in results]
            out(json_text(documents[0] if single else documents, indent=2))
        return codes


async def _outputs(store: Store, result: RunResult[Any]) -> WorkflowRunResult | None:
    """The result of a workflow, where the turn ran one to its end."""
    row = await store.turn(result.turn_id)
    if row is None or row.is_open or not await runs_workflow(store, row):
        return None
    return await workflow_result(store, row)


async def _one(
    system: Engine, row: TurnRow, place: StoreAddress, supplied: SuppliedCode, quiet: bool
) -> RunResult[Any]:
    progress = somebody_or_nobody(quiet=quiet)
    progress.begun(row.turn_id, row.agent_id)
    try:
        agents = supplied.agents
        if row.is_open:
            agents = await _with_own(system, row, supplied)
            if supplied.lift_pause:  # one turn was named, so what is approved has to be one of its tools
                check_approved(next(each for each in agents if each.name == row.agent_name), supplied.approve)
        approver = approver_for(progress, supplied.approve, no_input=supplied.no_input)
        with contextlib.redirect_stdout(sys.stderr), progress:
            result: RunResult[Any] = await resume_turn(
                system, row.turn_id, agents, watcher=progress, approver=approver, lift_pause=supplied.lift_pause
            )
        await settle_package(system, row, result)
        return result
    except (AgentMissing, ToolMissing) as missing:
        raise _with_command(missing, f"wakeful resume {short(row.turn_id)}", place) from missing


async def _with_own(system: Engine, row: TurnRow, supplied: SuppliedCode) -> list[Agent[Any, Any]]:
    """The supplied agents, the turn's own agent, and those that came in packages: a workflow's nodes may name them.

    The turn's own is made from what it wrote down. One that never began wrote nothing: then it is the imported one.
    """
    agents = list(supplied.agents)
    imported, not_made = await AgentRegistry(system, tools=supplied.loaded.tools).imported()
    if not any(agent.name == row.agent_name for agent in agents):
        try:
            own = await rebuilt_agent(
                system,
                row,
                supplied.loaded.tools,
                supplied.model,
                workspace=supplied.workspace,
                profile=supplied.profile,
            )
        except NeverBegan as never:
            found = next((agent for agent in imported if agent.name == row.agent_name), None)
            if found is None:
                raise not_made.get(row.agent_name, never) from None
            own = found
        agents.append(own)
    there = {agent.name for agent in agents}
    return [*agents, *(agent for agent in imported if agent.name not in there)]


def _with_command(missing: WakefulError, command: str, place: StoreAddress) -> NeedsPerson:
    """The same words, and the line to type."""
    if missing.hint == RUN_IT:
        return NeedsPerson(missing.message, missing.hint)
    if isinstance(missing, ToolsNotSupplied):
        options = " ".join(f"--tools MODULE:{name.rpartition('/')[2]}" for name in missing.names)
    else:
        options = "--model PROVIDER:MODEL" if "--model" in missing.hint else "--tools MODULE:AGENT"
    return NeedsPerson(missing.message, f"{missing.hint}\n{command}{place.flag} {options}")
