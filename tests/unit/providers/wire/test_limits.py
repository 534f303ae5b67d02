"""What headers say about limits: in each provider's own spelling, and never more than they say."""

import pytest

from wakeful.contracts.models import ProviderLimit
from wakeful.providers.wire.failures import from_status
from wakeful.providers.wire.limits import MOST_LIMITS, limits_of

NOW = 1_800_000_000.0
"""2027-01-15T08:00:00Z"""
OPENAI = {
    "X-RateLimit-Limit-Requests": "60",
    "X-RateLimit-Remaining-Requests": "0",
    "X-RateLimit-Reset-Requests": "6m0.5s",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-tokens": "20ms",
}
ANTHROPIC = {
    "anthropic-ratelimit-input-tokens-limit": "10000",
    "anthropic-ratelimit-input-tokens-remaining": "0",
    "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:30Z",
    "anthropic-ratelimit-unified-status": "rejected",
}


def test_openais_headers_say_what_is_counted_last() -> None:
    assert limits_of(OPENAI, NOW) == (
        ProviderLimit(name="requests", limit=60, remaining=0, resets_at="2027-01-15T08:06:00.500Z"),
        ProviderLimit(name="tokens", limit=150_000, remaining=149_984, resets_at="2027-01-15T08:00:00.020Z"),
    )


def test_anthropics_headers_say_it_in_the_middle_and_give_a_date() -> None:
    assert limits_of(ANTHROPIC, NOW) == (
        ProviderLimit(name="input-tokens", limit=10_000, remaining=0, resets_at="2027-01-15T08:00:30.000Z"),
    )


@pytest.mark.parametrize(
    ("reset", "resets_at"),
    [
        ("60", "2027-01-15T08:01:00.000Z"),
        ("1800000060", "2027-01-15T08:01:00.000Z"),
        ("1800000060000", "2027-01-15T08:01:00.000Z"),
        ("1h2m3s", "2027-01-15T09:02:03.000Z"),
        ("2027-01-15T09:01:00+01:00", "2027-01-15T08:01:00.000Z"),
    ],
)
def test_servers_that_count_one_thing_spell_its_reset_in_many_ways(reset: str, resets_at: str) -> None:
    headers = {"x-ratelimit-limit": "20, 20;w=60", "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    whole = ProviderLimit(name="requests", limit=20, remaining=0, resets_at=resets_at)
    assert limits_of(headers, NOW) == (whole,)
    assert limits_of({name.removeprefix("x-"): value for name, value in headers.items()}, NOW) == (whole,)


@pytest.mark.parametrize("garbage", ["", "soon", "-1", "NaN", "1e400", "9" * 40, "5 minutes", "\x00", "6m0.5s later"])
def test_what_cannot_be_read_says_nothing(garbage: str) -> None:
    headers = {"x-ratelimit-limit-requests": garbage, "x-ratelimit-reset-requests": garbage}
    assert limits_of(headers, NOW) == ()


def test_a_span_counts_from_the_moment_it_came_and_says_nothing_without_one() -> None:
    assert limits_of({"x-ratelimit-reset-tokens": "12s"}) == ()
    served = {"Date": "Fri, 15 Jan 2027 08:00:00 GMT", "x-ratelimit-reset-tokens": "12s"}
    failure = from_status("acme", None, 429, served, b"", now=1.0)
    assert failure.limits == (ProviderLimit(name="tokens", resets_at="2027-01-15T08:00:12.000Z"),)


def test_a_server_cannot_fill_the_log_with_limits() -> None:
    headers = {f"x-ratelimit-limit-{number}": "1" for number in range(1000)}
    assert len(limits_of(headers, NOW)) == MOST_LIMITS
    assert limits_of({f"x-ratelimit-limit-{'x' * 100}": "1"}, NOW) == ()


@pytest.mark.parametrize(("status", "seen"), [(429, 2), (500, 0), (401, 0)])
def test_they_are_kept_for_a_refusal_that_is_about_a_limit(status: int, seen: int) -> None:
    assert len(from_status("acme", None, status, OPENAI, b"", now=NOW).limits) == seen
