"""`wakeful cost`: the cost of model requests, by the prices of the day they were made.

A cost without a known price is called unknown, and a sum with such a cost in it a lower bound: neither is shown as 0.
"""

from datetime import datetime, time
from typing import Annotated, cast, get_args

import typer

from wakeful.service.operations.spending import SHOW_COSTS, CostQuestion
from wakeful.service.queries.costs import Grouping
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import counted, json_text, moment, out, plain
from wakeful.views.cost import CostLine, CostReport

GROUPINGS = get_args(Grouping)
DAYS = 30
"""The days that are read by default: an old store is not read from its beginning."""


def command(
    today: Annotated[bool, typer.Option("--today", help="Only requests of the owner's day.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="Only requests since this day or time: 2026-11-01.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help=f"Include requests older than {DAYS} days.")] = False,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's turns.")] = None,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Only this turn.")] = None,
    by: Annotated[str, typer.Option("--by", metavar="|".join(GROUPINGS), help="How requests are grouped.")] = "model",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the cost of model requests by model, agent, day or depth, for the last 30 days.

    Lost attempts count, and so do requests of child agents, planners and summaries. Each request is priced by the list
    that was valid when it was made. A model without a listed price has an unknown cost. A server on this machine costs
    nothing (local) unless your settings file gives its price, and a scripted model costs nothing.
    """
    if by not in GROUPINGS:
        raise WrongRequest(f"--by {by}: there is no such grouping", f"give one of: {', '.join(GROUPINGS)}")
    if today + all_ + (since is not None) > 1:
        raise WrongRequest("--today, --since and --all exclude each other", "give one of them")
    if turn is not None and agent is not None:
        raise WrongRequest("--turn and --agent were both given", "a turn has one agent: leave --agent out")
    start = moment_named(since) if since is not None else None
    recent = start is None and not (all_ or today) and turn is None
    if recent:
        start = _midnight() - DAYS * 86_400_000_000
    report = ask(SHOW_COSTS, CostQuestion(cast(Grouping, by), start, agent, turn, today), place_to_ask(store))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        _tell(report, " (older requests: --all)" if recent else "")


def _midnight() -> int:
    return _micros(datetime.combine(datetime.now().date(), time()))


def moment_named(text: str) -> int:
    try:
        return _micros(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise WrongRequest(f"--since {text!r} is not a day", "write 2026-11-01, or 2026-11-01T08:00") from None


def _micros(when: datetime) -> int:
    """A day without a zone is meant as the reader's own."""
    return round(when.timestamp() * 1_000_000)


# --- for people -------------------------------------------------------------------------------------------------------


def _tell(report: CostReport, older: str) -> None:
    when = f" since {moment(_micros(datetime.fromisoformat(report.since)))}{older}" if report.since is not None else ""
    if not report.total.calls:
        out(f"no model requests{when}")
        _tell_unread(report)
        return
    names = sorted(report.groups) if report.by in ("day", "depth") else list(report.groups)
    rows = [(name, *_cells(report.groups[name])) for name in names]
    titles = [report.by.upper(), "CALLS", "INPUT", "CACHED", "OUTPUT", f"COST {report.currency}"]
    out(_table([*rows, ("total", *_cells(report.total))], titles))
    out("")
    out(f"turns    {report.turns}{when}")
    lists = [f"{each.name}{f' of {each.date}' if each.date else ''}" for each in report.price_lists]
    out(f"prices   {', '.join(lists) or 'no price list'}")
    if report.total.unpriced_calls:
        calls = f"{report.total.unpriced_calls} of {counted(report.total.calls, 'call')}"
        out(f"unknown  {calls} without a known price: the true total is higher")
    if report.total.cut_off != "0":
        words = f"{report.total.cut_off} were reserved for requests that were cut off, and budgets count them"
        out(f"cut off  {words}: {report.total.spent} together")
    if not report.usage_complete:
        out("tokens   some calls reported no tokens: the true number is higher")
    _tell_unread(report)


def _tell_unread(report: CostReport) -> None:
    if report.unread:
        turns = counted(sum(report.unread.values()), "turn")
        out(f"damaged  {turns} of {', '.join(map(plain, report.unread))} cannot be read: the true total is higher")


def _cells(line: CostLine) -> tuple[str, ...]:
    counts = (line.calls, line.input_tokens, line.cached_input_tokens, line.output_tokens)
    return (*(f"{count:,}" for count in counts), _cost(line))


def _cost(line: CostLine) -> str:
    if line.calls and line.local_calls == line.calls:
        return f"{line.cost} local"
    if not line.unpriced_calls:
        return line.cost
    return "unknown" if line.unpriced_calls == line.calls else f"at least {line.cost}"


def _table(rows: list[tuple[str, ...]], titles: list[str]) -> list[str]:
    """Numbers stand under each other by their last digit."""
    table = [tuple(titles), *rows]
    widths = [max(len(row[index]) for row in table) for index in range(1, len(titles))]
    aligned = [(row[0], *(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))) for row in table]
    return columns(aligned[1:], aligned[0])
