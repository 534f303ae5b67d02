"""`wakeful tools`: the tools of an agent, offered or not, and why."""

from typing import Annotated

import typer

from wakeful.contracts.tool_catalog import OFFERED, CatalogEntry
from wakeful.service.operations.inspection import LIST_AGENT_TOOLS, AgentTools
from wakeful.service.operations.turn_reports import SHOW_TOOLS
from wakeful.service.operations.turns import TurnName
from wakeful.service.queries.tool_inventory import ToolInventory, tool_inventory
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
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import counted, json_text, one_line, out, plain, undeclared_words


def command(
    agent: AgentOrFileOption = None,
    tools: ToolsOption = None,
    mcp: McpOption = None,
    workspace: WorkspaceOption = None,
    profile: ProfileOption = None,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="The tools of a stored turn.")] = None,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List the tools of an agent: allowed, needing approval, denied, sandboxed or missing, and why.

    With --agent NAME, these are the tools of that agent of the daemon. Without, they are those that wakeful run would
    have now with the same options. Nothing is run.
    """
    found = AgentInQuestion(agent, tools, mcp, workspace, profile, turn, store).report(
        "tools",
        of_turn=lambda turn, place: ask(SHOW_TOOLS, TurnName(turn), place),
        of_agent=lambda name, place: ask(LIST_AGENT_TOOLS, AgentTools(name), place),
        of_run=lambda engine, agent: tool_inventory(engine, agent=agent),
    )
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    else:
        _tell(found, wide=wide)


def _tell(found: ToolInventory, *, wide: bool) -> None:
    entries = found.catalog.entries
    offered = len(found.catalog.offered)
    where = f"in turn {short(found.turn_id)}" if found.turn_id is not None else "in a run that starts now"
    out(f"{found.agent}: {counted(len(entries), 'tool')}, {offered} offered, {where}")
    if entries:
        rows = [
            (
                each.tool_name,
                each.policy if each.policy in OFFERED else each.policy.upper(),
                "reads" if each.is_read_only else "destructive" if each.is_destructive else "changes",
                each.runtime_owner,
                one_line(each.policy_reason.removeprefix(f"{each.tool_name} is of "), 160) + one_line(_held(each), 300),
            )
            for each in entries
        ]
        out(["", *columns(rows, ("TOOL", "POLICY", "EFFECT", "RUN BY", "WHY"), wide=wide)])
    if found.catalog.undeclared:
        out("")
        prose(plain(undeclared_words(found.catalog.undeclared)))


def _held(entry: CatalogEntry) -> str:
    """Where a tool that is held may write, and whether it reaches the network."""
    held = entry.sandbox
    if held is None or held.mode == "not_enforced":
        return ""
    writes = ", ".join(held.write_roots) or "nothing"
    reads = ", ".join(held.read_roots) or "all that you may"
    return f"; in {held.cwd}; reads {reads}; writes {writes}; network {held.network}"
