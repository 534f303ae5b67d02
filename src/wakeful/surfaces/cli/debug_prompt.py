"""`wakeful debug prompt`: the system prompt, part by part, and where each part is from. Asks no model."""

from typing import Annotated

import typer

from wakeful.contracts.prompts import InstructionSource
from wakeful.service.operations.skills import PREVIEW_PROMPT, PromptOf
from wakeful.service.operations.turn_reports import SHOW_PROMPT
from wakeful.service.operations.turns import TurnName
from wakeful.service.queries.prompt_report import prompt_of_agent
from wakeful.surfaces.cli.agent_in_question import AgentInQuestion
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
from wakeful.surfaces.cli.places import ask
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
    report = AgentInQuestion(agent, tools, mcp, workspace, profile, turn, store).report(
        "prompt",
        of_turn=lambda turn, place: ask(SHOW_PROMPT, TurnName(turn), place),
        of_agent=lambda name, place: ask(PREVIEW_PROMPT, PromptOf(name), place),
        of_run=prompt_of_agent,
    )
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
