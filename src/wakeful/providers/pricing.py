"""Prices as facts: what a request may cost before it is sent, and what an attempt cost.

Rule: what nobody knows is not written. A model that no list has costs no event; it and a script load no list.
"""

import asyncio
from collections.abc import Callable, Sequence

from wakeful.contracts.events import CostEstimated, CostRecorded
from wakeful.contracts.models import TokenUsage
from wakeful.ports import Model
from wakeful.providers.prices import SELLERS, Listed, Money, cost, price_of


class ListPricing:
    """By what a model's owner says it costs, or else its seller's list."""

    async def ready(self, models: Sequence[Model]) -> None:
        """Load the list, off the event loop, when one of the models may be in it and nobody has needed it before."""
        if any(model.ref.partition(":")[0] in SELLERS and _own(model) is None for model in models):
            from wakeful.providers import price_list

            if not price_list.is_loaded():
                await asyncio.to_thread(price_list.load)

    def estimate(
        self, model: Model, input_tokens: Callable[[], int], most_output: int, at: int
    ) -> CostEstimated | None:
        """The most a request can cost. The input is asked for only when the price is known."""
        listed = price_of(model.ref, _own(model), at=at)
        if listed is None:
            return None
        heard = input_tokens()
        money = cost(listed, TokenUsage(input_tokens=heard, output_tokens=most_output))
        if money is None:
            return None
        return CostEstimated(
            model_ref=model.ref,
            amount=f"{money.amount:f}",
            currency=money.currency,
            price_list=money.list_name,
            price_date=_day(money),
            input_tokens=heard,
            output_tokens=most_output,
        )

    def spent(
        self, model: Model, usage: TokenUsage, *, tier: str | None, at: int, attempt: int = 1, lost: bool = False
    ) -> CostRecorded | None:
        """What an attempt cost that used these tokens."""
        money = cost(price_of(model.ref, _own(model), tier=tier, at=at), usage)
        if money is None:
            return None
        return CostRecorded(
            model_ref=model.ref,
            amount=f"{money.amount:f}",
            currency=money.currency,
            price_list=money.list_name,
            price_date=_day(money),
            attempt=attempt,
            lost=lost,
        )


def _own(model: Model) -> Listed | None:
    """What the owner says: the model carries it. A model that says nothing about it goes by the lists."""
    own = getattr(model, "price", None)
    return own if isinstance(own, Listed) else None


def _day(money: Money) -> str | None:
    return None if money.as_of is None else money.as_of.isoformat()
