"""What may be asked about money: what was spent, and the windows that limit it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.contracts.budgets import Money
    from wakeful.contracts.spending import Period
    from wakeful.service.queries.costs import Grouping
    from wakeful.views.cost import CostReport
    from wakeful.views.store_records import SpendingLimit


@dataclass(frozen=True, slots=True)
class SpendGrant:
    """More money for a window."""

    scope: str
    """Whose limit: `runtime`, `agent:NAME` or `principal:NAME`."""
    usd: "Money"
    """How much more, in US dollars."""
    period: "Period | None" = None
    """None: the only one there is."""
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CostQuestion:
    """Which requests to models are counted, and by what they are grouped; a day is one of this machine's calendar."""

    by: "Grouping"
    """What the groups are."""
    since: int | None = None
    agent: str | None = None
    turn: str | None = None
    today: bool = False
    """Since the owner's day began (`[budget] timezone`, or UTC), as the spend windows of a day; instead of `since`."""


async def _spending(opened: OpenStore, asked: NoRequest) -> "list[SpendingLimit]":
    from wakeful.service.commands.spend_windows import spending
    from wakeful.service.queries.history import limit_record

    return [limit_record(row) for row in await spending(opened.engine)]


async def _grant(opened: OpenStore, asked: SpendGrant) -> "SpendingLimit":
    from wakeful.service.commands.spend_windows import grant
    from wakeful.service.queries.history import limit_record

    check_no_tool(f"the spending limit of {asked.scope}")
    row = await grant(opened.engine, asked.scope, asked.usd, asked.period, by=asked.by, reason=asked.reason)
    return limit_record(row)


async def _costs(opened: OpenStore, asked: CostQuestion) -> "CostReport":
    from datetime import datetime

    from wakeful.service.queries.costs import costs_of, today_began

    def day(at: int) -> str:
        return datetime.fromtimestamp(at / 1_000_000).date().isoformat()

    since = today_began(opened.engine) if asked.today else asked.since
    return await costs_of(opened.store, asked.by, day=day, since=since, agent=asked.agent, turn_id=asked.turn)


_SPEND = "wakeful.views.store_records.SpendingLimit"
LIST_SPENDING = Operation("budgets.list", "observe", NoRequest, _SPEND, _spending, many=True)
GRANT = Operation("budgets.grant", "operate", SpendGrant, _SPEND, _grant)
SHOW_COSTS = Operation("costs.show", "observe", CostQuestion, "wakeful.views.cost.CostReport", _costs)
