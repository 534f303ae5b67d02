"""`wakeful run`: one turn in this process."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer

from wakeful.bootstrap.engines import new_engine, resolve_model
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import Prompt
from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.errors import InvalidConfig, StoreProblem
from wakeful.service import (
    Agent,
    Engine,
    MessageOrigin,
    RunRequest,
    Store,
    check_servers,
    choices_of,
    default_agent_id,
)
from wakeful.service.code_loader import LoadedCode, code_options, load
from wakeful.service.commands.turns import run_turn
from wakeful.service.operations.runtime import MessageToAgent
from wakeful.service.operations.runtime_agents import RUNNABLE_AGENT, AgentToRun
from wakeful.service.queries.history import unknown_calls
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.agents import DEFAULT_MODEL, agent_for, check_approved, named_agent
from wakeful.surfaces.cli.daemon_turns import answer_by_daemon, check_options
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.live_view import SilentView, somebody_or_nobody
from wakeful.surfaces.cli.options import (
    ApproveOption,
    JsonOption,
    McpOption,
    NetworkOption,
    NoInputOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WorkspaceOption,
)
from wakeful.surfaces.cli.outcomes import exit_code, tell, tell_json
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_fill, store_to_write
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.prompt_input import prompt_of
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.terminal_approver import approver_for
from wakeful.views.store_records import UnknownCall

"""Of files that --agent may name."""


class _StoreAgent(NamedTuple):
    """An agent of the store, as a run has it."""

    agent: Agent[Any, Any]
    revision: str


def command(
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="PROMPT", help="The prompt. Text that is piped in is added to it; - reads stdin alone."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="PROVIDER:MODEL",
            help="The model, such as anthropic:claude-opus-4-7, openai:gpt-5.5, ollama:qwen3 or scripted:path.yaml. "
            f"List them with wakeful models list. Default: {DEFAULT_MODEL}, which needs no key.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        list[Path] | None, typer.Option("--image", metavar="FILE", help="Attach a picture. Repeatable.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", metavar="FILE", help="Attach a file, such as a PDF. Repeatable.")
    ] = None,
    store: StoreOption = None,
    tools: ToolsOption = None,
    agent: Annotated[
        Path | None,
        typer.Option("--agent", metavar="NAME|FILE", help="An agent of the store, or an agent's YAML or JSON file."),
    ] = None,
    create_agent: Annotated[
        bool, typer.Option("--create-agent", help="With --agent NAME: create the agent if there is none.")
    ] = False,
    mcp: McpOption = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Names the run: the same key continues it, or prints its stored answer."),
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Continue this conversation. Default: a new one.")
    ] = None,
    json: JsonOption = False,
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Show the answer while it is written.")] = True,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="Most model rounds.")] = None,
    budget_calls: Annotated[int | None, typer.Option("--budget-calls", min=1, help="Most model calls.")] = None,
    budget_seconds: Annotated[float | None, typer.Option("--budget-seconds", help="Most seconds of work.")] = None,
    budget_usd: Annotated[
        str | None, typer.Option("--budget-usd", metavar="AMOUNT", help="Most dollars, subtasks included.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", min=1, help="Most tokens, input and output together.")
    ] = None,
    subtasks: Annotated[
        bool | None,
        typer.Option("--subtasks/--no-subtasks", help="Allow subtasks. Default: as the agent says, or no."),
    ] = None,
    plan: Annotated[
        bool | None, typer.Option("--plan/--no-plan", help="Plan before acting. Default: as the agent says, or no.")
    ] = None,
    instructions: Annotated[str | None, typer.Option("--instructions", help="The agent's instructions.")] = None,
    workspace: WorkspaceOption = None,
    network: NetworkOption = False,
    profile: ProfileOption = None,
    approve: ApproveOption = None,
    no_input: NoInputOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Run an agent on a prompt, in this process, and print its answer.

    The agent works in the current folder: it reads and changes files there, and runs commands that are confined to it.
    Use --profile chat for a conversation without tools. With --agent NAME the run belongs to an agent of the store and
    works where that agent does; where a daemon runs the agents, it is the daemon that runs it.

    Calls that need approval are asked about at the terminal. Without a terminal the run is stored as pending, the
    command prints how to approve it, and ends with exit code 3.

    Every step is stored before the next one begins. If the run is interrupted, wakeful resume continues it.
    """
    asked = prompt_of(prompt, image or (), file or ())
    name = named_agent(agent)
    place = place_to_fill(store) if name is not None else store_to_write(store)
    if place.daemon is not None and name is not None:
        own = {
            "--model": model,
            "--image or --file": image or file,
            "--tools": tools,
            "--mcp": mcp,
            "--max-steps": max_steps,
            "--budget-...": budget_calls or budget_seconds or budget_usd or budget_tokens,
            "--subtasks": subtasks,
            "--plan": plan,
            "--instructions": instructions,
            "--workspace": workspace,
            "--network": network,
            "--profile": profile,
            "--approve": approve,
            "--create-agent": create_agent,
        }
        _run_by_daemon(name, asked, own, place, thread=thread, key=key, json=json, quiet=quiet)
    loaded = load(tools or [])
    for words in loaded.notes:
        note(words)
    living = _living(name, place, loaded, model, instructions, create=create_agent)
    one = agent_for(
        loaded if living is None else LoadedCode(),
        agent if living is None else living.agent,
        model=model if living is None else None,
        instructions=instructions,
        max_steps=max_steps,
        workspace=workspace,
        network=network,
        profile=profile,
        subtasks=subtasks,
        planning_enabled=plan,
        mcp=mcp,
    )
    check_approved(one, approve)
    # Before anything is admitted: a model or a server that is not there must not leave a turn behind.
    choices_of(resolve_model, one)
    check_servers(one.mcp, one.workspace)
    request = RunRequest(
        one,
        asked,
        thread=thread if thread is not None or living is None else MAIN_THREAD,
        key=key,
        revision=living.revision if living is not None else None,
        budget=_budget(one, model_calls=budget_calls, seconds=budget_seconds, usd=budget_usd, tokens=budget_tokens),
        stream=stream,
        origin=MessageOrigin(
            surface="cli_prompt",
            model_from="user" if model is not None else "agent_config" if agent is not None else "runtime",
        ),
    )
    progress = somebody_or_nobody(quiet=quiet)
    of_file = agent if living is None else None
    request.approver = approver_for(progress, approve, no_input=no_input)
    try:
        result, unknown = asyncio.run(_run(request, place, progress))
    except KeyboardInterrupt:
        again = _again(progress, place, tools, of_file)
        note(f"\nInterrupted. {again}" if again else "\nInterrupted before anything was stored.")
        raise typer.Exit(INTERRUPTED) from None
    except StoreProblem as problem:
        problem.hint = "\n".join(filter(None, (problem.hint, _again(progress, place, tools, of_file))))
        raise
    if json:
        tell_json(result)
    else:
        tell(result, unknown, place, quiet=quiet, code=code_options(tools, of_file))
    raise typer.Exit(exit_code(result))


def _run_by_daemon(
    name: str,
    asked: Prompt,
    own: Mapping[str, Any],
    place: StoreAddress,
    *,
    thread: str | None,
    key: str | None,
    json: bool,
    quiet: bool,
) -> NoReturn:
    """The daemon runs its agent, as that is: what a run in this process could change about it is refused."""
    check_options(own, name, place)
    if not isinstance(asked, str):
        raise WrongRequest("a message to an agent of the daemon is text", "put the file where the agent works")
    answer_by_daemon(MessageToAgent(name, asked, thread or MAIN_THREAD, key), place, json=json, quiet=quiet)


async def _run(
    request: RunRequest, place: StoreAddress, progress: SilentView
) -> tuple[RunResult[Any], list[UnknownCall]]:
    request.watcher, request.on_turn = progress, progress.begun
    async with opened_store(place.path) as opened:
        # What tools print goes to stderr: stdout is for the answer alone.
        with contextlib.redirect_stdout(sys.stderr), progress:
            result = await run_turn(_engine(opened, lives=request.revision is not None), request)
        return result, await unknown_calls(opened) if result.unknown else []


def _living(
    name: str | None,
    place: StoreAddress,
    loaded: LoadedCode,
    model: str | None,
    instructions: str | None,
    *,
    create: bool,
) -> _StoreAgent | None:
    """The agent of the store that the run is for, if it is for one."""
    if name is None:
        if create:
            raise WrongRequest("--create-agent needs the name of an agent", "say which one: --agent NAME")
        return None
    return _agent_of_store(name, place, loaded, model=model, instructions=instructions, create=create)


def _agent_of_store(
    name: str, place: StoreAddress, loaded: LoadedCode, *, model: str | None, instructions: str | None, create: bool
) -> _StoreAgent:
    """Raises AgentNotFound for one that is not there and may not be made, and WrongRequest."""
    may_make = create or name == default_agent_id()
    new = {"name": name, "model": model or DEFAULT_MODEL, "instructions": instructions or ""} if may_make else None
    found = ask(RUNNABLE_AGENT, AgentToRun(name, new), place)
    own = next((agent for agent in loaded.agents if agent.name == name), None)
    if found.is_code and own is None:
        raise WrongRequest(
            f"agent {name} is defined in a program",
            f'run that program, name its code with --tools MODULE:NAME, or leave a message: wakeful send {name} "..."',
        )
    agent = own if found.is_code and own is not None else Agent.from_dict(dict(found.definition), loaded.tools)
    is_same = model is None or (new is not None and agent.model == model)
    if not is_same:
        raise WrongRequest(
            f"--model {model}: agent {name} has a model of its own, and it holds for all of its turns",
            f"change it: wakeful agent model {name} {model}{place.flag}",
        )
    if found.model is not None:
        agent = agent.changed(model=found.model)
    return _StoreAgent(agent, found.revision)


def _engine(store: Store, *, lives: bool) -> Engine:
    engine = new_engine(store)
    return replace(engine, surroundings=replace(engine.surroundings, lives=True)) if lives else engine


def _budget(agent: Agent[Any, Any], **asked: Any) -> Budget | None:
    """The agent's budget with what was asked for here in its place; None: whatever holds for the agent."""
    named = {name: value for name, value in asked.items() if value is not None}
    if not named:
        return None
    try:
        return (agent.budget or Budget()).changed(**named)
    except InvalidBudget as error:
        raise InvalidConfig(error.message, f"{error.hint}, as in --budget-calls 8 --budget-usd 0.50") from None


def _again(progress: SilentView, place: StoreAddress, tools: list[str] | None, agent: Path | None) -> str:
    """The command that continues the turn, once there is one."""
    if progress.turn_id is None:
        return ""
    return f"To continue: wakeful resume {short(progress.turn_id)}{place.flag}{code_options(tools, agent)}"
