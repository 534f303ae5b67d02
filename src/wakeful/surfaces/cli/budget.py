"""`wakeful budget` and `budget grant`: what is spent in which window of time, and more for one of them."""

from typing import Annotated

import typer

from wakeful.contracts.envelope import iso
from wakeful.contracts.spending import PERIODS, RUNTIME, SpendRow, agent_scope, dollars, principal_scope
from wakeful.service import scope_words
from wakeful.service.commands.spend_windows import OPERATOR
from wakeful.service.operations import GRANT, LIST_SPENDING, NoRequest, SpendGrant
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, store_to_read
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import columns, json_text, out, plain


def command(json: JsonOption = False, store: StoreOption = None) -> None:
    """Show what is spent in the windows that are under way: of the runtime, of principals, of agents.

    An agent's windows are shown once it has asked a model in them.
    """
    place = store_to_read(store)
    rows = ask(LIST_SPENDING, NoRequest(), place)
    if json:
        out(json_text([_as_json(row) for row in rows], indent=2))
    elif not rows:
        out("no spend window is under way")
    else:
        head = ("SCOPE", "WINDOW", "LIMIT", "GRANTED", "SPENT", "RESERVED", "TURNS AT")
        out(columns([_cells(row) for row in rows], head))


def more(
    usd: Annotated[str, typer.Option("--usd", metavar="AMOUNT", help="How many dollars more.")],
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="For one agent.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="ID", help="For one principal.")] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="hour|day|month", help="Which; left out: the only one.")
    ] = None,
    by: Annotated[str, typer.Option("--as", metavar="NAME", help="Who grants it.")] = OPERATOR,
    reason: Annotated[str, typer.Option("--reason", metavar="WORDS", help="Why; it is written down.")] = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Allow more in the window that is under way: of an agent, of a principal or, with neither, of the runtime.

    It is over with the window. What waits for money goes on with wakeful resume.
    """
    if agent is not None and principal is not None:
        raise WrongRequest("--agent and --principal were both given", "grant to one of them at a time")
    if window is not None and window not in PERIODS:
        raise WrongRequest(f"--window is {window!r}", f"give one of: {', '.join(PERIODS)}")
    scope = agent_scope(agent) if agent is not None else RUNTIME if principal is None else principal_scope(principal)
    place = store_to_read(store)
    row = ask(GRANT, SpendGrant(scope, usd, window, by, reason), place)
    if json:
        out(json_text(_as_json(row), indent=2))
        return
    out(f"{plain(scope_words(row.scope))} has {usd} dollars more in this {row.period}, until {iso(row.turns)}")
    out(f"go on with what waited: wakeful resume{place.flag}")


def _cells(row: SpendRow) -> tuple[str, ...]:
    amounts = (row.limit, row.granted, row.spent, row.held)
    return plain(row.scope), row.period, *map(dollars, amounts), iso(row.turns)


def _as_json(row: SpendRow) -> dict[str, object]:
    return {
        "scope": row.scope,
        "window": row.period,
        "began_at": iso(row.began),
        "turns_at": iso(row.turns),
        "limit_usd": dollars(row.limit),
        "granted_usd": dollars(row.granted),
        "spent_usd": dollars(row.spent),
        "reserved_usd": dollars(row.held),
        "noticed": row.noticed,
    }
