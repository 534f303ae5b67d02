"""`wakeful debug prompt`: the system prompt, part by part, and where each part is from. Asks no model."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.prompts import InstructionSource
from wakeful.service import Agent
from wakeful.service.code_loader import load
from wakeful.service.operations.skills import PREVIEW_PROMPT, PromptOf
from wakeful.service.operations.turn_reports import SHOW_PROMPT
from wakeful.service.operations.turns import TurnName
from wakeful.service.queries.prompt_report import prompt_of_agent
from wakeful.surfaces.cli.agents import agent_for, named_agent
from wakeful.surfaces.cli.daemon_turns import check_options, check_own_run, daemon_for
from wakeful.surfaces.cli.options import (
    AgentOrFileOption,
    JsonOption,
    McpOption,
    ProfileOption,
    StoreOption,
    ToolsOption,
    WideOption,
    WorkspaceOption,
)
from wakeful.surfaces.cli.places import any_place, ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.screen import columns, short
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain
from wakeful.views.prompt_report import PromptReport


def command(
    agent: AgentOrFileOption = None,
    tools: ToolsOption = None,
    mcp: McpOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="The prompt of a stored turn.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print only the prompt, as the model reads it.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """Show the system prompt of an agent: its folders, the files that were loaded, and the parts of the prompt.

    With --agent NAME, this is what the next turn of that agent of the daemon would be told. Without, it is the prompt
    that wakeful run would use now with the same options. No model is asked.
    """
    name = named_agent(agent)
    own = {"--agent": agent, "--tools": tools, "--mcp": mcp, "--workspace": workspace, "--profile": profile}
    if turn is not None:
        for option in (option for option, given in own.items() if given):
            raise WrongRequest(f"{option} does not go with --turn: a stored turn has its own prompt", "leave it out")
        report = ask(SHOW_PROMPT, TurnName(turn), place_to_ask(store))
    elif name is not None:
        place = daemon_for(name, store)
        check_options({option: given for option, given in own.items() if option != "--agent"}, name, place)
        report = ask(PREVIEW_PROMPT, PromptOf(name), place)
    else:
        check_own_run()
        loaded = load(tools or [])
        for words in loaded.notes:
            note(words)
        one = agent_for(
            loaded,
            agent,
            model=None,
            instructions=None,
            max_steps=None,
            workspace=workspace,
            profile=profile,
            mcp=mcp,
        )
        place = any_place(store)
        report = asyncio.run(_of_agent(place.path if Path(place.path).is_file() else None, one))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    elif text:
        out(plain(report.system_prompt))
    else:
        _tell(report, wide=wide)


def _tell(report: PromptReport, *, wide: bool) -> None:
    when = f"in turn {short(report.turn_id)}" if report.turn_id is not None else "in a turn that starts now"
    out(f"{report.agent}: {sum(block.tokens for block in report.blocks)} tokens (estimated), {when}")
    for name in ("agent_home", "workspace_id", "workspace_anchor", "execution_root", "cwd"):
        out(f"  {name:<18}{plain(getattr(report, name) or '-')}")
    policy = ", ".join(f"{name}={json_text(value)}" for name, value in report.execution_policy.items())
    out(f"  {'execution policy':<18}{one_line(policy, 400) or '-'}")
    out(f"  {'agent source':<18}{_source(report.loaded_agents_md.agent_source)}")
    out(f"  {'workspace source':<18}{_source(report.loaded_agents_md.workspace_source)}")
    for words in report.left_out:
        out(f"  {'left out':<18}{plain(words)}")
    rows = [
        (block.kind, block.stability, str(block.tokens), one_line(block.source or "-", 80), one_line(block.text, 60))
        for block in report.blocks
    ]
    if rows:
        out(["", *columns(rows, ("PART", "STABILITY", "TOKENS", "FROM", "BEGINS WITH"), wide=wide)])
    if report.skills:
        skills = [(skill.name, skill.scope, skill.entrypoint_path) for skill in report.skills]
        out(["", *columns(skills, ("SKILL", "SCOPE", "PATH"), wide=wide)])


def _source(source: InstructionSource | None) -> str:
    if source is None:
        return "-"
    return plain(f"{source.path} ({source.kind}{', cut' if source.truncated else ''})")


async def _of_agent(path: str | None, agent: Agent[Any, Any]) -> PromptReport:
    """The prompt of a run that starts now. The store is only read, and none is created."""
    async with opened_store(path, reading=True) as opened:
        return await prompt_of_agent(new_engine(opened), agent)
