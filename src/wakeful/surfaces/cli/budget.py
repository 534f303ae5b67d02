"""`wakeful budget` and `budget grant`: what is spent in which window of time, and more for one of them."""

from decimal import Decimal
from typing import Annotated

import typer

from wakeful.contracts.spending import PERIODS, RUNTIME, agent_scope, principal_scope
from wakeful.service import scope_words
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.spending import (
    GRANT,
    LIST_SPENDING,
    SHOW_COSTS,
    CostQuestion,
    SpendGrant,
)
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import json_text, moment, out, plain
from wakeful.views.store_records import SpendingLimit


def command(json: JsonOption = False, wide: WideOption = False, store: StoreOption = None) -> None:
    """Show the spending limits that apply now, and how much of each is used.

    Limits apply to everything together, to principals, or to agents, for an hour, a day or a month. An agent's limit is
    listed once the agent has made a model request in that time.
    """
    place = place_to_ask(store)
    rows = ask(LIST_SPENDING, NoRequest(), place)
    if json:
        out(json_text([row.model_dump(mode="json") for row in rows], indent=2))
    elif not rows:
        out("no spending limits apply now")
    else:
        head = ("SCOPE", "WINDOW", "LIMIT", "GRANTED", "SPENT", "RESERVED", "RESETS AT")
        out(columns([_cells(row) for row in rows], head, wide=wide))
        today = ask(SHOW_COSTS, CostQuestion("agent", today=True), place).total
        if Decimal(today.cut_off):
            out(f"of the money spent today {today.cut_off} were reserved for requests that were cut off")


def more(
    usd: Annotated[str, typer.Option("--usd", metavar="AMOUNT", help="How many dollars to add.")],
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="For one agent.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="ID", help="For one principal.")] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="hour|day|month", help="Which limit. Default: the only one.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="WORDS", help="The reason, for the log.")] = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Raise the current spending limit of an agent or a principal; with neither, of everything together.

    The grant ends with the hour, day or month. Turns that were stopped by the limit continue with wakeful resume; those
    of agents of a runtime go on by themselves.
    """
    if agent is not None and principal is not None:
        raise WrongRequest("--agent and --principal were both given", "grant to one of them at a time")
    if window is not None and window not in PERIODS:
        raise WrongRequest(f"--window {window}: there is no such period", f"give one of: {', '.join(PERIODS)}")
    scope = agent_scope(agent) if agent is not None else RUNTIME if principal is None else principal_scope(principal)
    place = place_to_ask(store)
    row = ask(GRANT, SpendGrant(scope, usd, window, reason=reason), place)
    if json:
        out(json_text(row.model_dump(mode="json"), indent=2))
        return
    until = moment(round(row.resets_at * 1e6))
    prose(f"{plain(scope_words(row.scope))} may spend {usd} dollars more in this {row.window}, until {until}")
    if not Decimal(row.limit_usd):
        prose(f"no limit was used in this {row.window} yet: the grant is added to one that it has, and sets none")
    out(f"continue stopped turns: wakeful resume{place.flag}")


def _cells(row: SpendingLimit) -> tuple[str, ...]:
    amounts = (row.limit_usd, row.granted_usd, row.spent_usd, row.reserved_usd)
    return plain(row.scope), row.window, *amounts, moment(round(row.resets_at * 1e6))
