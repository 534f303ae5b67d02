"""What tokens and searches cost. A price that is not known is not zero.

Prices are US dollars for a million tokens, and for a thousand searches that the provider runs by itself. What the owner
says wins: in code, then in the settings file; otherwise the seller's list counts, without discounts for batches or
commitments. Only who sells a model has a price for it: the same model from another provider has none unless its owner
gives it one. A server on this machine costs nothing (`local`).
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.models import TokenUsage
from wakeful.views.cost import LOCAL_LIST

MILLION = Decimal(1_000_000)
SELLERS = frozenset(
    {
        *("openai", "anthropic", "openrouter", "groq", "deepseek", "together", "mistral", "cerebras", "gemini", "xai"),
        *("azure", "huggingface", "fireworks", "moonshot", "zai", "minimax", "perplexity", "cohere"),
    }
)
"""The providers whose lists are read; some are no built-in names, and are there for those who configure them."""
IN_CODE = "code"
IN_SETTINGS = "settings"
"""What the lists of the owner are called."""


class Price(NamedTuple):
    """Dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    """None: cached tokens cost what others do."""
    cache_write: Decimal | None = None
    """None: writing to the cache costs nothing extra."""
    audio_input: Decimal | None = None
    """None: nobody knows what audio costs, so a request with audio has no cost here."""
    reasoning: Decimal | None = None
    """None: thoughts cost what other output does."""
    searches: Decimal | None = None
    """Dollars for a thousand searches of the provider's own; None: a reply that searched has no known cost."""
    beyond: tuple[tuple[int, "Price"], ...] = ()
    """Above so many input tokens the whole request goes by another price; in order."""


class ListedPrice(NamedTuple):
    """A price, and where it stands."""

    price: Price
    list_name: str
    as_of: date | None = None
    """The day of the list, where it is known."""

    def at(self, server: str) -> "ListedPrice":
        """The same price for what another server than the seller's answers."""
        return self._replace(list_name=f"{self.list_name} via {server}")


FREE = ListedPrice(Price(Decimal(0), Decimal(0)), "free")
"""Of a model that is nobody's to sell: a script."""


LOCAL = ListedPrice(Price(Decimal(0), Decimal(0), audio_input=Decimal(0), searches=Decimal(0)), LOCAL_LIST)
"""Of a model on a server of this machine, unless its owner says what it costs."""


class Cost(NamedTuple):
    """An amount, and the list it was computed from."""

    amount: Decimal
    list_name: str
    as_of: date | None = None
    currency: str = "USD"

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


SEARCH_FEES: Mapping[str, Decimal] = {
    "anthropic:": Decimal(10),
    "openai:": Decimal(10),
    "gemini:gemini-3": Decimal(14),
}
"""Dollars for a thousand searches, by the beginning of a model's name.
Older models of Gemini are billed by the prompt and not by the search: their fee is not known here."""


def search_fee(model_ref: str) -> Decimal | None:
    """The seller's fee for a thousand searches; None when nobody knows it."""
    return next((fee for start, fee in SEARCH_FEES.items() if model_ref.startswith(start)), None)


def cost(listed: ListedPrice | None, usage: TokenUsage, searches: int = 0) -> Cost | None:
    """What the tokens and the searches cost; None when nobody knows."""
    amount = None if listed is None else amount_of(listed.price, usage)
    if searches and listed is not None and amount is not None:
        fee = listed.price.searches
        amount = None if fee is None else amount + searches * fee / 1000
    return None if listed is None or amount is None else Cost(amount, listed.list_name, listed.as_of)


def amount_of(price: Price, usage: TokenUsage) -> Decimal | None:
    """Dollars. `input_tokens` counts cached, cache-writing and audio tokens too, `output_tokens` the thoughts."""
    for start, higher in reversed(price.beyond):
        if usage.input_tokens > start:
            price = higher
            break
    if usage.audio_tokens and price.audio_input is None:
        return None
    cached, written, heard = usage.cached_input_tokens, usage.cache_write_tokens, usage.audio_tokens
    thought = min(usage.reasoning_tokens, usage.output_tokens)
    total = max(0, usage.input_tokens - cached - written - heard) * price.input
    total += cached * (price.input if price.cached_input is None else price.cached_input)
    total += written * (price.input if price.cache_write is None else price.cache_write)
    total += heard * (price.audio_input or 0)
    total += (usage.output_tokens - thought) * price.output
    total += thought * (price.output if price.reasoning is None else price.reasoning)
    return total / MILLION


# --- what the owner says ----------------------------------------------------------------------------------------------

_AMOUNTS = ("input", "output", "cached_input", "cache_write", "audio_input", "reasoning", "searches")


def own_prices(table: object, where: str) -> dict[str, ListedPrice]:
    """`[providers.NAME.prices.MODEL]` tables, checked. Raises InvalidConfig with the place."""
    if not isinstance(table, Mapping) or not all(isinstance(each, Mapping) for each in table.values()):
        raise InvalidConfig(f"{where}: prices is not a table", 'Write [providers.NAME.prices."MODEL"] above its lines.')
    return {str(model): _own_price(each, f"{where} prices.{model}") for model, each in table.items()}


def price_in_code(table: object, where: str) -> ListedPrice:
    """One such table, given in code."""
    if not isinstance(table, Mapping):
        raise InvalidConfig(f"{where} is {table!r}", 'Write {"input": "3", "output": "15"}.')
    return _own_price(table, where)._replace(list_name=IN_CODE)


def _own_price(table: Mapping[str, Any], where: str) -> ListedPrice:
    for name in table:
        if name not in (*_AMOUNTS, "as_of"):
            from difflib import get_close_matches

            near = get_close_matches(name, (*_AMOUNTS, "as_of"), n=1)
            raise InvalidConfig(
                f"{where}: there is no price {name!r}",
                f"Did you mean {near[0]}?" if near else f"There are: {', '.join(_AMOUNTS)}, as_of.",
            )
    missing = [name for name in ("input", "output") if name not in table]
    if missing:
        raise InvalidConfig(f"{where}: {missing[0]} is missing", "Write both: dollars for a million tokens in and out.")
    amounts: dict[str, Any] = {name: _amount(table[name], f"{where}.{name}") for name in _AMOUNTS if name in table}
    return ListedPrice(Price(**amounts), IN_SETTINGS, _day(table["as_of"], where) if "as_of" in table else None)


def _amount(value: Any, where: str) -> Decimal:
    try:
        # A number of TOML is a float here: its shortest text is what was written.
        amount = Decimal(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or amount < 0:
        unit = "a thousand searches" if where.endswith(".searches") else "a million tokens"
        raise InvalidConfig(f"{where} is {value!r}", f'Write dollars for {unit}, such as "0.25".')
    return amount


def _day(value: Any, where: str) -> date:
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidConfig(f"{where}: as_of is {value!r}", "Write a day, such as 2026-11-01.") from None
