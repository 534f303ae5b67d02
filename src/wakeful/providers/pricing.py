"""Prices as facts: what a request may cost before it is sent, and what an attempt cost.

Rule: what nobody knows is not written. A model that no list has costs no event; it and a script load no list.
"""

import asyncio
from collections.abc import Callable, Sequence

from wakeful.contracts.events import CostEstimated, CostRecorded
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.values import unchecked
from wakeful.ports import Model
from wakeful.providers import price_list
from wakeful.providers.prices import LOCAL, SELLERS, Cost, ListedPrice, cost

_cost_estimated, _cost_recorded, _used = unchecked(CostEstimated), unchecked(CostRecorded), unchecked(TokenUsage)


class ListPricing:
    """By what a model's owner says it costs, or else its seller's list."""

    async def ready(self, models: Sequence[Model]) -> None:
        """Load the list, off the event loop, when one of the models may be in it and nobody has needed it before."""
        sold = any(model.ref.partition(":")[0] in SELLERS and _own(model) is None for model in models)
        if sold and not price_list.is_loaded():
            await asyncio.to_thread(price_list.load)

    def estimate(
        self, model: Model, input_tokens: Callable[[], int], most_output: int, at: int, searches: int = 0
    ) -> CostEstimated | None:
        """The most a request can cost. The input is asked for only when the price is known.

        Searches are counted where their fee is known; where it is not, the reply has no known cost, and its
        reservation stands for it.
        """
        listed = _listed(model, None, at)
        if listed is None:
            return None
        heard = input_tokens()
        counted = searches if listed.price.searches is not None else 0
        # Where writing to the cache is the dearest way to be heard, all of it may be written.
        written = heard if (listed.price.cache_write or 0) > listed.price.input else 0
        used = _used(input_tokens=heard, output_tokens=most_output, cache_write_tokens=written)
        money = cost(listed, used, counted)
        if money is None:
            return None
        return _cost_estimated(
            model_ref=model.ref,
            amount=f"{money.amount:f}",
            currency=money.currency,
            price_list=money.list_name,
            price_date=_day(money),
            input_tokens=heard,
            output_tokens=most_output,
        )

    def spent(
        self,
        model: Model,
        usage: TokenUsage | None,
        *,
        tier: str | None,
        at: int,
        attempt: int = 1,
        lost: bool = False,
        searches: int = 0,
    ) -> CostRecorded | None:
        """What an attempt cost that used these tokens; where nobody counted them, what this machine answered."""
        listed = _listed(model, tier, at)
        if usage is None and listed is not LOCAL:
            return None
        money = cost(listed, usage or TokenUsage(), searches)
        if money is None:
            return None
        return _cost_recorded(
            model_ref=model.ref,
            amount=f"{money.amount:f}",
            currency=money.currency,
            price_list=money.list_name,
            price_date=_day(money),
            attempt=attempt,
            lost=lost,
        )


def _listed(model: Model, tier: str | None, at: int) -> ListedPrice | None:
    """The price of a model. A seller's price for what another server answers in its name says which one that is."""
    own = _own(model)
    listed = price_list.price_of(model.ref, own, tier=tier, at=at)
    there = getattr(model, "asked_at", "") if own is None and listed is not None else ""
    return listed if listed is None or not there else listed.at(there)


def _own(model: Model) -> ListedPrice | None:
    """What the owner says: the model carries it. A model that says nothing about it goes by the lists."""
    own = getattr(model, "price", None)
    return own if isinstance(own, ListedPrice) else None


def _day(money: Cost) -> str | None:
    return None if money.as_of is None else money.as_of.isoformat()
