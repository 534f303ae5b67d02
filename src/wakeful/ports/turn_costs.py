"""What the requests to models of a turn that ended come to: one row a turn, written with its end."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from wakeful.contracts.models import TokenUsage
from wakeful.ports.tables import Condition, Match, RowQuery, Table, TableIndex
from wakeful.ports.turns import TURNS, TURNS_BY_AGE, TurnRow, Turns
from wakeful.views.model_calls import CallGroup, PriceListUsed, TurnCost

_TOKENS = tuple(TokenUsage.model_fields)
_NEVER = (1 << 63) - 1


class TurnCostRow(NamedTuple):
    """A turn's cost as it is stored. `groups` are the fields of its call groups."""

    turn_id: str
    agent_id: str
    ended_at: int
    first_at: int
    last_at: int
    groups: list[Any]
    agent_name: str | None = None
    """The row stays when its turn is gone."""

    @classmethod
    def of(cls, turn_id: str, agent_id: str, ended_at: int, cost: TurnCost, agent_name: str) -> "TurnCostRow":
        groups = [*map(_fields, cost.groups)]
        return cls(turn_id, agent_id, ended_at, cost.first_at, cost.last_at, groups, agent_name)

    @property
    def gone_turn(self) -> TurnRow:
        """What is left of the turn where retention removed its log: its name, and when it was."""
        name = self.agent_name or self.agent_id
        at = self.first_at or self.ended_at
        return TurnRow(
            self.turn_id, self.agent_id, name, "", "completed", 0, 0, 0, 0, None, "", "", (), at, self.ended_at
        )

    @property
    def cost(self) -> TurnCost:
        return TurnCost(self.first_at, self.last_at, tuple(_group(*each) for each in self.groups))


COSTS_BY_END = RowQuery(("ended_at", "turn_id"), served_by="turn_costs_by_end")

TURN_COSTS = Table(
    "turn_costs",
    TurnCostRow,
    key=("turn_id",),
    indexes=(TableIndex("turn_costs_by_end", ("ended_at",)),),
    queries=(COSTS_BY_END,),
    renamed={"groups": "costs"},
)


class TurnCosts(Turns, Protocol):
    """Reads what turns cost."""

    async def turn_costs(self, *, since: int | None = None) -> list[tuple[TurnRow, TurnCost | None]]:
        """Turns that were open at a moment or later, oldest first, each with what its requests to models come to.

        None: it has not ended, or ended in a store of version 6 or before. Its log knows. Of turns that retention has
        removed the cost is here all the same, with what is left of the turn.
        """
        if since is None:
            turns = await self.list_rows(TURNS, TURNS_BY_AGE)
        else:
            ended, still = Condition("ended_at", "IS NOT NULL"), Condition("ended_at", "IS NULL")
            late = Match({}, ("ended_at", since, _NEVER), ended, served_by="turns_by_end")
            turns = await self.find_rows(
                TURNS, [late, Match({}, where=still, served_by="turns_open")], order=TURNS_BY_AGE.order
            )
        rows = await self.list_rows(TURN_COSTS, COSTS_BY_END, after=() if since is None else (since - 1,))
        costs = {row.turn_id: row.cost for row in rows}
        there = {turn.turn_id for turn in turns}
        gone = [(row.gone_turn, row.cost) for row in rows if row.turn_id not in there]
        found = [*gone, *((turn, costs.get(turn.turn_id)) for turn in turns)]
        return sorted(found, key=lambda each: each[0].created_at) if gone else found


def _fields(group: CallGroup) -> list[Any]:
    prices = None if group.price_list is None else [group.price_list.name, group.price_list.date]
    tokens = [getattr(group.used, name) for name in _TOKENS]
    counts = (group.calls, group.unpriced, group.unreported)
    held = [str(group.held)] if group.held else []
    return [group.model_ref, group.depth, prices, *counts, tokens, str(group.cost), *held]


def _group(
    model_ref: str, depth: int, listed: tuple[str, str | None] | None, calls: int, unpriced: int, unreported: int,
    tokens: Sequence[int], cost: str, held: str = "0",
) -> CallGroup:  # fmt: skip
    prices = None if listed is None else _price_list(*listed)
    used = TokenUsage(**dict(zip(_TOKENS, tokens, strict=True)))
    return CallGroup(model_ref, depth, prices, calls, unpriced, unreported, used, Decimal(cost), Decimal(held))


@lru_cache(maxsize=64)
def _price_list(name: str, date: str | None) -> PriceListUsed:
    return PriceListUsed(name=name, date=date)
