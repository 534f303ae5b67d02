"""What providers said about their limits, and how long that is believed."""

from typing import Any

import pytest

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ModelCompleted, QuotaBlocked, QuotaLow, RateLimitHit
from wakeful.contracts.models import ProviderLimit
from wakeful.decisions.limits import known_limits, quota_low
from wakeful.decisions.routing import KnownLimit

AT = 1_800_000_000_000_000
MS = AT // 1000


def facts(*events: Any) -> list[StoredFact]:
    return [StoredFact("agent", place, Fact(event, AT)) for place, event in enumerate(events, 1)]


def answered(ref: str) -> ModelCompleted:
    return ModelCompleted(
        model_ref=ref,
        attempt=1,
        stop_reason="end",
        context_build_ms=0,
        provider_round_ms=1,
        provider_started_at="2027-01-15T08:00:00.000Z",
        provider_completed_at="2027-01-15T08:00:00.001Z",
    )


@pytest.mark.parametrize(("remaining", "low"), [(0, True), (9, True), (9.99, True), (10, False), (100, False)])
def test_little_is_left_when_it_is_less_than_a_tenth(remaining: float, low: bool) -> None:
    full = ProviderLimit(name="requests", limit=60, remaining=60)
    limit = ProviderLimit(name="tokens", limit=100, remaining=remaining, resets_at="2027-01-15T08:00:01Z")
    told = quota_low("a:m", 2, (full, limit))
    if not low:
        assert told is None
        return
    assert told == QuotaLow(
        model_ref="a:m",
        attempt=2,
        limit_name="tokens",
        limit=100,
        observed=100 - remaining,
        resets_at="2027-01-15T08:00:01Z",
        limits=(full, limit),
    )


def test_a_limit_that_does_not_say_how_much_there_is_says_nothing() -> None:
    for limit in (
        ProviderLimit(name="requests", remaining=0),
        ProviderLimit(name="requests", limit=0, remaining=0),
        ProviderLimit(name="requests", limit=60),
    ):
        assert quota_low("a:m", 1, (limit,)) is None
    assert quota_low("a:m", 1, ()) is None


def test_a_limit_is_believed_until_the_moment_that_was_named() -> None:
    told = facts(
        RateLimitHit(model_ref="a:m", attempt=1, retry_after_ms=2_000),
        QuotaBlocked(model_ref="b:m", attempt=1, retry_after_ms=1_000, resets_at="2027-01-15T08:00:30.000Z"),
        QuotaLow(model_ref="c:m", attempt=1, resets_at="2027-01-15T08:00:10Z"),
    )
    assert known_limits(told, MS) == {
        "a:m": KnownLimit("limited", MS + 2_000),
        "b:m": KnownLimit("blocked", MS + 30_000),
        "c:m": KnownLimit("low", MS + 10_000),
    }
    assert known_limits(told, MS + 2_000).keys() == {"b:m", "c:m"}
    assert known_limits(told, MS + 30_000) == {}


def test_what_was_said_by_a_clock_that_was_ahead_holds_no_longer() -> None:
    """Else a provider that asked for a minute would be left out until the clock comes to that day again."""
    told = facts(
        RateLimitHit(model_ref="a:m", attempt=1, retry_after_ms=60_000),
        QuotaBlocked(model_ref="b:m", attempt=1, resets_at="2027-01-15T08:00:30.000Z"),
    )
    assert known_limits(told, MS - 20 * 86_400_000) == {}
    again = StoredFact("agent", 3, Fact(RateLimitHit(model_ref="a:m", attempt=1, retry_after_ms=5_000), AT - 9_000_000))
    assert known_limits([*told, again], MS - 8_000) == {"a:m": KnownLimit("limited", MS - 4_000)}, "it said so since"


def test_that_little_is_left_holds_after_an_answer_too() -> None:
    low = QuotaLow(model_ref="a:m", attempt=1, resets_at="2027-01-15T08:00:10Z")
    assert known_limits(facts(low, answered("a:m")), MS) == {"a:m": KnownLimit("low", MS + 10_000)}


def test_without_a_moment_and_after_an_answer_nothing_is_believed() -> None:
    assert known_limits(facts(RateLimitHit(model_ref="a:m", attempt=1)), MS) == {}
    assert known_limits(facts(QuotaBlocked(model_ref="a:m", attempt=1, resets_at="soon")), MS) == {}
    hit = RateLimitHit(model_ref="a:m", attempt=1, retry_after_ms=2_000)
    assert known_limits(facts(hit, answered("a:m")), MS) == {}
    assert known_limits(facts(hit, answered("b:m")), MS).keys() == {"a:m"}
    assert known_limits(facts(answered("a:m"), hit), MS).keys() == {"a:m"}
