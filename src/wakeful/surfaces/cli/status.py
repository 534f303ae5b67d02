"""`wakeful status`: each agent's open turns, pending work and tokens."""

from typing import Annotated

import typer

from wakeful.contracts.models import TokenUsage
from wakeful.service.operations.agents import STATUS, StatusQuery
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.runtime import FILE_PROBLEMS
from wakeful.surfaces.cli.file_words import problem_lines
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.shown_values import age_cell, counted, json_text, out
from wakeful.views.agent_status import AgentStatus


def command(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="One agent. Default: all agents.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show each agent's open turns, pending approvals, unknown outcomes and tokens used.

    Tokens are those of all requests of the agent; the last turn is the newest completed turn that reported any.
    """
    place = store_to_read(store)
    found = ask(STATUS, StatusQuery(agent), place)
    problems = [each for each in ask(FILE_PROBLEMS, NoRequest(), place) if agent in (None, each.agent)]
    if json:
        told = {"agents": [each.model_dump(mode="json") for each in found]}
        if problems:
            told["file_problems"] = [each.model_dump(mode="json") for each in problems]
        out(json_text(told, indent=2))
        return
    for each in found:
        out(_lines(each))
    if problems:
        out(["files that are not in force", *(f"  {line}" for line in problem_lines(problems))])


def _lines(status: AgentStatus) -> list[str]:
    used = status.token_usage
    rounds = counted(used.total_model_rounds, "round")
    last = _tokens(used.last_turn) if used.last_turn is not None else "no tokens reported yet"
    queued = f"{counted(status.queued_messages, 'queued message')}, " if status.queued_messages else ""
    changed = []
    if status.revised_at is not None:
        since = counted(status.turns_since_revision or 0, "turn")
        changed = [f"  changed    {age_cell(int(status.revised_at * 1e6))} ago, {since} since"]
    return [
        status.agent,
        f"  open       {counted(status.open_turns, 'turn')}, {queued}{status.pending_actions} pending, "
        f"{counted(status.unknown_outcomes, 'unknown outcome')}",
        f"  tokens     {_tokens(used.total)}, in {rounds}",
        f"  last turn  {last}",
        *changed,
    ]


def _tokens(usage: TokenUsage) -> str:
    return f"{usage.total_tokens:,} ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"
