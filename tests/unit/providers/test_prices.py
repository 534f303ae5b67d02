"""What tokens cost, and that nobody guesses."""

import importlib.metadata
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data import providers as sellers
from genai_prices.data_snapshot import DataSnapshot

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.models import TokenUsage
from wakeful.providers import price_list
from wakeful.providers.endpoints import endpoint
from wakeful.providers.price_list import price_of
from wakeful.providers.prices import IN_SETTINGS, SELLERS, Cost, ListedPrice, Price, amount_of, cost, own_prices

LONG = Price(Decimal(5), Decimal(30), beyond=((272_000, Price(Decimal(10), Decimal(45))),))
CHEAP = Price(Decimal("0.20"), Decimal("1.25"), cached_input=Decimal("0.02"))
"""Prices of the test's own: what is computed does not hang on what a seller asks today."""
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_fresh_cached_and_written_tokens_have_their_own_prices() -> None:
    usage = TokenUsage(
        input_tokens=1_000_000, cached_input_tokens=600_000, cache_write_tokens=100_000, output_tokens=10_000
    )
    got = cost(price_of("anthropic:claude-opus-4-7"), usage)
    # 300,000 fresh at 5, 600,000 read at 0.50, 100,000 written at 6.25, 10,000 said at 25
    assert got == Cost(Decimal("2.675"), price_list.list_name(), price_list.list_date())


def test_the_sum_is_exact() -> None:
    got = cost(ListedPrice(CHEAP, "mine"), TokenUsage(input_tokens=1, output_tokens=1))
    assert got == Cost(Decimal("0.00000145"), "mine") and str(got) == "0.00000145 USD"


def test_audio_and_thoughts_have_prices_of_their_own_where_the_list_has_them() -> None:
    both = Price(Decimal(1), Decimal(10), audio_input=Decimal(40), reasoning=Decimal(3))
    usage = TokenUsage(input_tokens=100, audio_tokens=60, output_tokens=50, reasoning_tokens=20)
    assert amount_of(both, usage) == Decimal(40 * 1 + 60 * 40 + 30 * 10 + 20 * 3) / 1_000_000
    plain = TokenUsage(input_tokens=100, output_tokens=50, reasoning_tokens=20)
    assert amount_of(CHEAP, plain) == amount_of(CHEAP, plain.model_copy(update={"reasoning_tokens": 0}))


def test_audio_without_a_listed_price_is_not_priced_as_if_it_were_words() -> None:
    assert amount_of(CHEAP, TokenUsage(input_tokens=100, audio_tokens=60)) is None


@pytest.mark.parametrize(
    "ref", ["openai:gpt-99", "openai:moderation", "openai-codex:gpt-5.5", "ollama:qwen3", "scripted:demo", ""]
)
def test_an_unknown_price_is_unknown_and_not_zero(ref: str) -> None:
    assert price_of(ref) is None and cost(None, TokenUsage(input_tokens=10)) is None


def test_no_tokens_at_a_known_price_are_zero() -> None:
    assert amount_of(LONG, TokenUsage()) == 0


@pytest.mark.parametrize(
    ("ref", "like"),
    [
        ("anthropic:claude-haiku-4-5-20251001", "anthropic:claude-haiku-4-5"),
        ("openai:gpt-5.5-2026-04-23", "openai:gpt-5.5"),
    ],
)
def test_a_dated_snapshot_costs_what_its_model_costs(ref: str, like: str) -> None:
    assert price_of(ref) == price_of(like) is not None


def test_a_new_version_does_not_inherit_the_price_of_an_old_one() -> None:
    assert price_of("anthropic:claude-opus-6-1") is None
    assert price_of("openai:gpt-7") is None


def test_a_long_request_costs_more_as_a_whole() -> None:
    assert amount_of(LONG, TokenUsage(input_tokens=272_000, output_tokens=1_000)) == Decimal("1.39")
    assert amount_of(LONG, TokenUsage(input_tokens=272_001, output_tokens=1_000)) == Decimal("2.76501")


def test_a_provider_that_reports_more_cached_than_input_tokens_does_not_make_money() -> None:
    got = amount_of(CHEAP, TokenUsage(input_tokens=10, cached_input_tokens=20))
    assert got is not None and got > 0


def test_a_service_tier_has_the_price_the_list_gives_it_and_none_where_it_gives_none() -> None:
    usual, flex = price_of("openai:gpt-5.5", tier="default"), price_of("openai:gpt-5.5", tier="flex")
    assert usual is not None and flex is not None and usual == price_of("openai:gpt-5.5")
    assert flex.price.input == usual.price.input / 2
    assert price_of("anthropic:claude-opus-4-7", tier="priority") is None
    assert price_of("x:y", ListedPrice(CHEAP, "code"), tier="flex") is None


def test_a_price_that_changed_counts_from_the_day_on_which_it_did() -> None:
    before = price_of("openai:o3", at=int(datetime(2025, 6, 1, tzinfo=UTC).timestamp() * 1_000_000))
    after = price_of("openai:o3", at=int(NOW.timestamp() * 1_000_000))
    assert before is not None and after is not None
    assert (before.price.input, after.price.input) == (10, 2)


@pytest.mark.parametrize(
    ("ref", "listed"),
    [
        # Prices of the sellers' own pages, looked up in November 2026.
        ("anthropic:claude-opus-5-5", ("4", "20", "0.2", "5")),
        ("anthropic:claude-opus-5", ("5", "25", "0.5", "6.25")),
        ("anthropic:claude-sonnet-5", ("2", "10", "0.2", "2.5")),
        ("anthropic:claude-fable-5-1", ("10", "50", "0.25", "12.5")),
        ("openai:gpt-6-astra", ("10", "50", "1", "12.5")),
        ("openai:gpt-5", ("1.25", "10", "0.125", None)),
        ("openai:gpt-5-codex", ("1.25", "10", "0.125", None)),
        ("openai:gpt-realtime", ("4", "16", "0.4", None)),
    ],
)
def test_the_list_says_what_the_sellers_pages_say(ref: str, listed: tuple[str, str, str, str | None]) -> None:
    found = price_of(ref)
    assert found is not None
    wanted = [None if amount is None else Decimal(amount) for amount in listed]
    assert [*found.price[:4]] == wanted


USAGES = [
    TokenUsage(input_tokens=900, output_tokens=40),
    TokenUsage(input_tokens=900, cached_input_tokens=500, cache_write_tokens=100, output_tokens=40),
    TokenUsage(input_tokens=300_000, cached_input_tokens=250_000, output_tokens=4_000),
    TokenUsage(input_tokens=900_000, output_tokens=4_000, reasoning_tokens=3_000),
]


def test_every_sum_is_the_one_the_package_itself_would_make() -> None:
    """Over every model of every seller that sells by tokens: ours is a shorter way, and no other price."""
    bundled = DataSnapshot(providers=sellers, from_auto_update=False)
    compared = 0
    for seller in sellers:
        for model in seller.models if seller.id in SELLERS else ():
            found = price_list.listed(seller.id, model.id, None, NOW)
            if found is None:
                continue
            there, entry = bundled.find_provider_model(model.id, seller, None, None)
            for usage in USAGES:
                theirs = genai_prices.Usage(
                    input_tokens=usage.input_tokens,
                    cache_read_tokens=usage.cached_input_tokens,
                    cache_write_tokens=usage.cache_write_tokens,
                    output_tokens=usage.output_tokens,
                    output_reasoning_tokens=usage.reasoning_tokens,
                )
                total = entry.calc_price(theirs, there, genai_request_timestamp=NOW).total_price
                assert amount_of(found.price, usage) == total, (seller.id, model.id)
                compared += 1
    assert compared > 1_000


# --- the list ---------------------------------------------------------------------------------------------------------


def test_the_installed_list_has_a_version_and_a_day() -> None:
    version = importlib.metadata.version("genai-prices")
    assert price_list.list_name() == f"genai-prices {version}"
    assert price_list.list_date() == price_list.DATED[version], "a new version of the list needs its day in DATED"


def test_what_another_library_downloaded_is_not_used() -> None:
    from genai_prices.data_snapshot import set_custom_snapshot

    wanted = price_of("openai:gpt-5.5")
    set_custom_snapshot(DataSnapshot(providers=[], from_auto_update=True))
    try:
        assert price_of("openai:gpt-5.5") == wanted is not None
    finally:
        set_custom_snapshot(None)


@pytest.mark.parametrize("loads", [True, False])
def test_the_list_is_loaded_only_for_who_sells(loads: bool) -> None:
    ref = "openai:gpt-5.5" if loads else "ollama:qwen3"
    program = (
        "import sys, wakeful, wakeful.bootstrap\n"
        "from wakeful.providers.price_list import price_of\n"
        f"price_of({ref!r})\n"
        "print('genai_prices.data' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(loads)


# --- what the owner says ----------------------------------------------------------------------------------------------


def test_the_owners_price_wins_over_the_sellers() -> None:
    mine = ListedPrice(CHEAP, IN_SETTINGS, date(2026, 1, 2))
    assert price_of("openai:gpt-5.5", mine) is mine
    got = cost(mine, TokenUsage(input_tokens=500_000))
    assert got == Cost(Decimal("0.1"), IN_SETTINGS, date(2026, 1, 2))


def test_prices_stand_in_the_settings_file_beside_their_provider(tmp_path: Path) -> None:
    file = tmp_path / "wakeful.toml"
    file.write_text(
        '[providers.vllm.prices."org/qwen3"]\ninput = 0.1\noutput = "0.25"\ncached_input = 0\nas_of = 2026-11-01\n'
    )
    there = endpoint("vllm", environ={"WAKEFUL_CONFIG": str(file)})
    wanted = Price(Decimal("0.1"), Decimal("0.25"), cached_input=Decimal(0))
    assert there.prices == {"org/qwen3": ListedPrice(wanted, IN_SETTINGS, date(2026, 11, 1))}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([], "prices is not a table"),
        ({"m": 5}, "prices is not a table"),
        ({"m": {"input": 1}}, "prices.m: output is missing"),
        ({"m": {"input": 1, "output": 2, "cached": 1}}, "there is no price 'cached'"),
        ({"m": {"input": "much", "output": 2}}, "prices.m.input is 'much'"),
        ({"m": {"input": -1, "output": 2}}, "prices.m.input is -1"),
        ({"m": {"input": True, "output": 2}}, "prices.m.input is True"),
        ({"m": {"input": "NaN", "output": 2}}, "prices.m.input is 'NaN'"),
        ({"m": {"input": 1, "output": 2, "as_of": "soon"}}, "as_of is 'soon'"),
    ],
)
def test_a_price_that_is_none_is_told_with_its_place(table: object, said: str) -> None:
    with pytest.raises(InvalidConfig) as told:
        own_prices(table, "wakeful.toml: [providers.vllm]")
    assert said in told.value.message and told.value.message.startswith("wakeful.toml: [providers.vllm]")
    assert told.value.hint
