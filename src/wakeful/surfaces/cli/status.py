"""`wakeful status`: how agents stand, and what they have used."""

from typing import Annotated

import typer

from wakeful.contracts.models import TokenUsage
from wakeful.service.operations import STATUS, AgentName
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.shown_values import json_text, out
from wakeful.views.agent_status import AgentStatus


def command(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="One agent. Left out: all of them.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Say of each agent what is open, what waits for somebody, and how many tokens it has used.

    Tokens are those of all its requests; the last turn is the newest that completed and reported any.
    """
    found = ask(STATUS, AgentName(agent), store_to_read(store))
    if json:
        out(json_text({"agents": [each.model_dump(mode="json") for each in found]}, indent=2))
        return
    for each in found:
        out(_lines(each))


def _lines(status: AgentStatus) -> list[str]:
    used = status.token_usage
    rounds = f"{used.total_model_rounds:,} round{'' if used.total_model_rounds == 1 else 's'}"
    last = _tokens(used.last_turn) if used.last_turn is not None else "none has reported any"
    queued = f"{status.queued_messages} messages queued, " if status.queued_messages else ""
    return [
        status.agent,
        f"  open       {status.open_turns} turns, {queued}{status.pending_actions} waiting for somebody, "
        f"{status.unknown_outcomes} of unknown outcome",
        f"  tokens     {_tokens(used.total)}, in {rounds}",
        f"  last turn  {last}",
    ]


def _tokens(usage: TokenUsage) -> str:
    return f"{usage.total_tokens:,} ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"
