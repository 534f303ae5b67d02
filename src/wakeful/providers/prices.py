"""What an attempt cost, by the price lists of the providers on a date. A price that is not known is not zero.

Prices are US dollars for a million tokens, list prices without discounts for batches or commitments. Only who sells a
model has a price for it: the same model from another provider, or on one's own machine, has none here.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from wakeful.contracts.models import TokenUsage

AS_OF = date(2026, 11, 6)
"""When the table was put together. What no list of the seller was found for is not in it: unknown is unknown."""
MILLION = Decimal(1_000_000)


class Money(NamedTuple):
    """An amount, and the day of the price list it was computed from."""

    amount: Decimal
    currency: str
    as_of: date

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


class Price(NamedTuple):
    """Dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    """None: cached tokens cost what others do."""
    cache_write: Decimal | None = None
    """None: writing to the cache costs nothing extra."""
    long_from: int | None = None
    """Above so many input tokens the whole request costs more."""
    long_input: Decimal = Decimal(1)
    """How many times as much its input then costs, cached input included."""
    long_output: Decimal = Decimal(1)


def _price(input: str, output: str, cached: str | None = None, write: str | None = None) -> Price:
    return Price(Decimal(input), Decimal(output), _maybe(cached), _maybe(write))


def _maybe(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


_OPUS = _price("5", "25", "0.50", "6.25")
_OPUS_4 = _price("15", "75", "1.50", "18.75")
_SONNET = _price("3", "15", "0.30", "3.75")

PRICES: dict[str, Price] = {
    "anthropic:claude-fable-5": _price("10", "50", "1", "12.50"),
    "anthropic:claude-fable-5-1": _price("10", "50", "0.25", "12.50"),
    "anthropic:claude-opus-4": _OPUS_4,
    "anthropic:claude-opus-4-1": _OPUS_4,
    "anthropic:claude-opus-4-5": _OPUS,
    "anthropic:claude-opus-4-6": _OPUS,
    "anthropic:claude-opus-4-7": _OPUS,
    "anthropic:claude-opus-4-8": _OPUS,
    "anthropic:claude-opus-5": _OPUS,
    "anthropic:claude-opus-5-5": _price("4", "20", "0.20", "5"),
    "anthropic:claude-sonnet-4": _SONNET,
    "anthropic:claude-sonnet-4-5": _SONNET,
    "anthropic:claude-sonnet-4-6": _SONNET,
    "anthropic:claude-haiku-4-5": _price("1", "5", "0.10", "1.25"),
}


def price_of(model_ref: str, prices: Mapping[str, Price] = PRICES) -> Price | None:
    """The price of a model, also under the name of one of its dated snapshots; None when it is not in the list."""
    found = prices.get(model_ref)
    return found if found is not None else prices.get(_undated(model_ref))


def cost(
    model_ref: str, usage: TokenUsage, prices: Mapping[str, Price] = PRICES, *, as_of: date = AS_OF
) -> Money | None:
    """What the tokens cost; None when nobody knows. `input_tokens` counts cached and cache-writing tokens too."""
    price = price_of(model_ref, prices)
    if price is None:
        return None
    cached, written = usage.cached_input_tokens, usage.cache_write_tokens
    fresh = max(0, usage.input_tokens - cached - written)
    heard = fresh * price.input
    heard += cached * (price.input if price.cached_input is None else price.cached_input)
    heard += written * (price.input if price.cache_write is None else price.cache_write)
    said = usage.output_tokens * price.output
    if price.long_from is not None and usage.input_tokens > price.long_from:
        heard, said = heard * price.long_input, said * price.long_output
    return Money((heard + said) / MILLION, "USD", as_of)


def _undated(model_ref: str) -> str:
    """Without `-20260423`, `-2026-04-23` or `-latest`; a version such as `-4-5` stays."""
    for size in (9, 11):
        tail = model_ref[-size:]
        if tail.startswith("-20") and tail.replace("-", "").isdigit() and len(tail.replace("-", "")) == 8:
            return model_ref[:-size]
    return model_ref.removesuffix("-latest")
