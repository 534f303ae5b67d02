"""What tokens cost, and that nobody guesses."""

from datetime import date
from decimal import Decimal

import pytest

from wakeful.contracts.models import TokenUsage
from wakeful.providers.prices import AS_OF, PRICES, Money, Price, cost, price_of


def test_fresh_cached_and_written_tokens_have_their_own_prices() -> None:
    usage = TokenUsage(
        input_tokens=1_000_000, cached_input_tokens=600_000, cache_write_tokens=100_000, output_tokens=10_000
    )
    # 300,000 fresh at 5, 600,000 read at 0.50, 100,000 written at 6.25, 10,000 said at 25
    assert cost("anthropic:claude-opus-4-7", usage) == Money(Decimal("2.675"), "USD", AS_OF)


TIERED = {
    "x:long": Price(Decimal(5), Decimal(30), long_from=272_000, long_input=Decimal(2), long_output=Decimal("1.5")),
    "x:cheap": Price(Decimal("0.20"), Decimal("1.25"), cached_input=Decimal("0.02")),
}
"""A list of the test's own: what is computed does not hang on what a seller asks today."""


def test_the_sum_is_exact() -> None:
    got = cost("x:cheap", TokenUsage(input_tokens=1, output_tokens=1), TIERED)
    assert got is not None and got.amount == Decimal("0.00000145")
    assert str(got) == "0.00000145 USD"


@pytest.mark.parametrize(
    "ref", ["openai:gpt-5.5", "openai:gpt-99", "ollama:qwen3", "openrouter:openai/gpt-5.5", "scripted:demo", ""]
)
def test_an_unknown_price_is_unknown_and_not_zero(ref: str) -> None:
    assert cost(ref, TokenUsage(input_tokens=10)) is None


def test_no_tokens_at_a_known_price_are_zero() -> None:
    got = cost("x:long", TokenUsage(), TIERED)
    assert got is not None and got.amount == 0


@pytest.mark.parametrize(
    ("ref", "like"),
    [
        ("anthropic:claude-haiku-4-5-20251001", "anthropic:claude-haiku-4-5"),
        ("anthropic:claude-opus-4-7", "anthropic:claude-opus-4-7"),
    ],
)
def test_a_dated_snapshot_costs_what_its_model_costs(ref: str, like: str) -> None:
    assert price_of(ref) is PRICES[like]


def test_a_new_version_does_not_inherit_the_price_of_an_old_one() -> None:
    assert price_of("anthropic:claude-opus-6-1") is None
    assert price_of("openai:gpt-5.5-ultra") is None


def test_a_long_request_costs_more_as_a_whole() -> None:
    short = cost("x:long", TokenUsage(input_tokens=272_000, output_tokens=1_000), TIERED)
    long = cost("x:long", TokenUsage(input_tokens=272_001, output_tokens=1_000), TIERED)
    assert short is not None and short.amount == Decimal("1.39")
    assert long is not None and long.amount == Decimal("272001") * 10 / 1_000_000 + Decimal("0.045")


def test_an_own_price_list_carries_its_own_date() -> None:
    mine = {"vllm:qwen3": Price(Decimal("0.1"), Decimal("0.2"))}
    got = cost("vllm:qwen3", TokenUsage(input_tokens=500_000), mine, as_of=date(2026, 1, 2))
    assert got == Money(Decimal("0.05"), "USD", date(2026, 1, 2))


def test_a_provider_that_reports_more_cached_than_input_tokens_does_not_make_money() -> None:
    got = cost("x:cheap", TokenUsage(input_tokens=10, cached_input_tokens=20), TIERED)
    assert got is not None and got.amount > 0
