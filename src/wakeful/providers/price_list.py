"""The sellers' price lists, as the package `genai-prices` bundles them.

Its data is large, so it is loaded once a process, and only when a model of one of the sellers is asked for. Rule: it is
read where it was installed and never fetched; what another library of this process may have downloaded is not used, so
that a version of the package always says the same.
"""

import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from wakeful.providers.prices import LOCAL, SELLERS, ListedPrice, Price, search_fee

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

LIST = "genai-prices"
DATED = {"0.2.1": date(2026, 10, 26)}
"""The newest day on which a version of the package says that a seller's list was looked at: it has no date itself."""
LISTED_AS = {"gemini": ("google",), "xai": ("x-ai",), "moonshot": ("moonshotai",), "azure": ("azure", "openai")}
"""The sellers that the package calls by another name. Azure asks OpenAI's prices for OpenAI's models, and its list has
only a few of them."""
USUAL_TIERS = frozenset({"", "default", "standard", "auto"})
"""Service tiers that cost what the list says."""
_KEYS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "audio_input": "input_audio_mtok",
    "reasoning": "output_reasoning_mtok",
}


class _Lists:
    """The loaded data, and what was looked up in it."""

    def __init__(self) -> None:
        from importlib.metadata import version

        from genai_prices.data import providers

        self.version = version(LIST)
        self.name = f"{LIST} {self.version}"
        self.as_of = DATED.get(self.version)
        self._by_id = {seller.id: seller for seller in providers}
        self._models: dict[tuple[str, str], ModelInfo | None] = {}
        self._prices: dict[int, Price | None] = {}

    def model(self, provider: str, name: str) -> "ModelInfo | None":
        key = provider, name
        if key not in self._models:
            # Only what the seller itself lists: the package would look among other sellers, too.
            found = (seller.find_model(sold.lower()) for seller, sold in self._sellers(provider, name))
            self._models[key] = next((model for model in found if model is not None), None)
        return self._models[key]

    def _sellers(self, provider: str, name: str) -> "list[tuple[Provider, str]]":
        """The lists of a provider, and the model's name in each."""
        if provider == "huggingface":  # a router: who is asked stands behind the model's name
            name, _, route = name.partition(":")
            listed = [f"huggingface_{route}"]
        else:
            listed = [*LISTED_AS.get(provider, (provider,))]
        return [(self._by_id[each], name) for each in listed if each in self._by_id]

    def names(self, provider: str) -> tuple[str, ...]:
        """Some entries of the list are the beginning of many names, `ft:gpt-4o` among them: those are no model."""
        now = datetime.now(UTC)
        return tuple(
            model.id
            for seller, _ in self._sellers(provider, "")
            for model in seller.models
            if not (model.deprecated or model.id.endswith("-") or model.id.startswith("ft:"))
            # Google sells others' models too, at another address.
            and (provider != "gemini" or model.id.startswith(("gemini-", "gemma-")))
            and self.price(model.get_prices(now)) is not None
        )

    def price(self, listed: "ModelPrice") -> Price | None:
        """As ours; made once, because the data stays as long as the process."""
        if id(listed) not in self._prices:
            self._prices[id(listed)] = _converted(listed)
        return self._prices[id(listed)]


_loaded: _Lists | None = None
_loading = threading.Lock()


def _lists() -> _Lists:
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:  # another thread may have been faster
                _loaded = _Lists()
    return _loaded


def is_loaded() -> bool:
    """Whether the data is here."""
    return _loaded is not None


def load() -> None:
    """Load the data, if it is not here."""
    _lists()


def price_of(
    model_ref: str, own: ListedPrice | None = None, *, tier: str | None = None, at: int = 0
) -> ListedPrice | None:
    """The price of `provider:model` for a service tier at a time (Unix microseconds); None when nobody knows it."""
    usual = (tier or "") in USUAL_TIERS
    if own is not None:
        return own if usual or own is LOCAL else None
    provider, _, name = model_ref.partition(":")
    if provider not in SELLERS:
        return None
    when = datetime.fromtimestamp(at / 1_000_000, UTC) if at else datetime.now(UTC)
    return listed(provider, name, None if usual else tier, when)


def listed(provider: str, name: str, tier: str | None, when: datetime) -> ListedPrice | None:
    """The price of a seller's model at a time; None when it is not in the list, or not for this service tier."""
    lists = _lists()
    model = lists.model(provider, name)
    if model is None:
        return None
    if tier is None:
        price = lists.price(model.get_prices(when))
    else:
        context = {"service_tier": tier}
        if not any(variant.when == context for variant in model.price_variants or ()):
            return None
        price = _converted(model.get_prices(when, context))
    if price is None:
        return None
    fee = search_fee(f"{provider}:{name}")  # the package has none
    return ListedPrice(price if fee is None else price._replace(searches=fee), lists.name, lists.as_of)


def context_window(provider: str, name: str) -> int | None:
    """The window that the list gives for a seller's model; None when it gives none."""
    model = _lists().model(provider, name) if provider in SELLERS else None
    return None if model is None else model.context_window


def model_names(provider: str) -> tuple[str, ...]:
    """The models that a seller lists by tokens in and out and has not withdrawn; nothing for one without a list."""
    return _lists().names(provider) if provider in SELLERS else ()


def list_name() -> str:
    """The package and its version."""
    return _lists().name


def list_date() -> date | None:
    """The day of the list, where it is known."""
    return _lists().as_of


def _converted(listed: "ModelPrice") -> Price | None:
    """None for what is not sold by tokens in and out alone: some sellers ask for each request, too."""
    found: dict[str, Any] = {name: getattr(listed, key) for name, key in _KEYS.items()}
    if found["input"] is None or found["output"] is None or listed.requests_kcount is not None:
        return None
    starts = sorted({tier.start for value in found.values() for tier in getattr(value, "tiers", ())})
    beyond = tuple((start, _from(found, start)) for start in starts)
    return _from(found, -1)._replace(beyond=beyond)


def _from(found: dict[str, Any], start: int) -> Price:
    """The price for requests with more input tokens than `start`."""
    return Price(**{name: _rate(value, start) for name, value in found.items()})


def _rate(value: Any, start: int) -> Any:
    if value is None or isinstance(value, Decimal):
        return value
    rate = value.base
    for tier in value.tiers:
        if tier.start <= start:
            rate = tier.price
    return rate
