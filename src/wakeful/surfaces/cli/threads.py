"""`wakeful thread list` and `thread delete`: conversations of the agents of a store."""

from typing import Annotated

import typer

from wakeful.service.operations.agents import STATUS, StatusQuery
from wakeful.service.operations.threads import DELETE_THREAD, LIST_THREADS, ThreadQuery, ThreadRemoval
from wakeful.service.operations.turns import PAGE
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import age_cell, counted, json_text, one_line, out, plain

OfAgent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="The agent, if several have such a thread.")
]


def listed(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="An agent. Default: all agents.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many of the newest.")] = PAGE,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List conversations, the most recently used first."""
    place = place_to_ask(store)
    found = ask(LIST_THREADS, ThreadQuery(agent, limit), place)
    if agent is not None and not found:
        ask(STATUS, StatusQuery(agent), place)  # one that is not there is told
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no threads")
    else:
        cells = [
            (
                plain(each.thread),
                plain(each.agent),
                str(each.turns),
                age_cell(int(each.active_at * 1e6)),
                each.last_turn.state,
                one_line(each.last_turn.prompt, 200),
            )
            for each in found
        ]
        out(columns(cells, ("THREAD", "AGENT", "TURNS", "USED", "LAST TURN", "PROMPT"), wide=wide))


def delete(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The name of the conversation.")],
    agent: OfAgent = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the log.")] = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Delete a conversation. The next message under its name begins an empty one.

    Its messages leave the store with the next pass of retention. Briefs, costs and approvals stay.
    """
    place = place_to_ask(store)
    record = ask(DELETE_THREAD, ThreadRemoval(thread, agent, reason=reason), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    out(f"thread {plain(record.thread)} of {plain(record.agent)} is deleted, {counted(record.turns, 'turn')}")
    out(f"its messages leave the store with the next pass of retention: wakeful store compact{place.flag}")
