"""Spend windows, decided: which hold, where they begin and turn, what passes one."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.spending import PERIODS, Period, SpendRow, dollars, nanodollars
from wakeful.decisions.spend_windows import (
    OwnerWindows,
    applying,
    bounds,
    has_room,
    is_noticeable,
    passed_by,
    window_at,
    window_words,
)

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [
    UTC,
    BERLIN,
    ZoneInfo("America/Sao_Paulo"),  # its clocks used to skip midnight
    ZoneInfo("Asia/Kolkata"),
    ZoneInfo("Australia/Lord_Howe"),  # half an hour of summer time
    ZoneInfo("Pacific/Apia"),  # a whole day was skipped
    ZoneInfo("America/Havana"),  # has a midnight twice a year
]
SECOND = 1_000_000
HOUR = 3_600 * SECOND


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("period", "zone", "moment", "began", "turns"),
    [
        ("hour", UTC, "2027-01-15T22:59:59Z", "2027-01-15T22:00:00Z", "2027-01-15T23:00:00Z"),
        ("day", UTC, "2027-01-15T22:59:59Z", "2027-01-15T00:00:00Z", "2027-01-16T00:00:00Z"),
        ("month", UTC, "2027-12-31T23:59:59Z", "2027-12-01T00:00:00Z", "2028-01-01T00:00:00Z"),
        ("month", UTC, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("day", BERLIN, "2027-01-15T23:30:00Z", "2027-01-15T23:00:00Z", "2027-01-16T23:00:00Z"),
        # The day on which the clocks go forward has 23 hours, the one on which they go back 25.
        ("day", BERLIN, "2027-03-28T12:00:00Z", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"),
        ("day", BERLIN, "2027-10-31T12:00:00Z", "2027-10-30T22:00:00Z", "2027-10-31T23:00:00Z"),
        # Midnight does not exist here: the day begins at the moment the clocks skip it.
        ("day", ZONES[2], "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"),
    ],
)
def test_a_window_is_an_hour_a_day_or_a_month_of_the_owners(
    period: Period, zone: ZoneInfo, moment: str, began: str, turns: str
) -> None:
    assert bounds(period, at(moment), zone) == (at(began), at(turns))


MOMENTS = st.integers(at("2009-01-01T00:00:00Z"), at("2037-12-31T00:00:00Z"))


@given(st.sampled_from(PERIODS), st.sampled_from(ZONES), MOMENTS)
def test_windows_follow_each_other_without_a_gap_and_without_overlap(period: Period, zone: ZoneInfo, now: int) -> None:
    began, turns = bounds(period, now, zone)
    assert began <= now < turns
    assert bounds(period, began, zone) == bounds(period, turns - 1, zone) == (began, turns)
    assert bounds(period, turns, zone)[0] == turns
    assert bounds(period, began - 1, zone)[1] == began
    most = {"hour": 1, "day": 25, "month": 31 * 24 + 1}[period]
    assert 0 < turns - began <= most * HOUR


def test_a_request_counts_in_the_windows_of_its_agents_its_principal_and_the_runtime() -> None:
    owner = OwnerWindows(
        (SpendWindow("month", 60),), {"ada": (SpendWindow("day", 1),), "bob": (SpendWindow("day", 2),)}, BERLIN
    )
    own = [("ops", (SpendWindow("hour", "0.5"),)), ("clerk", ()), ("scout", (SpendWindow("day", 3),))]
    now = at("2027-01-15T23:30:00Z")
    found = applying(own, "ada", owner, now)
    assert [(each.scope, each.period, each.usd, each.began) for each in found] == [
        ("agent:ops", "hour", "0.5", at("2027-01-15T23:00:00Z")),
        ("agent:scout", "day", "3", at("2027-01-15T23:00:00Z")),
        ("principal:ada", "day", "1", at("2027-01-15T23:00:00Z")),
        ("runtime", "month", "60", at("2026-12-31T23:00:00Z")),
    ]
    assert applying([("ops", ())], None, OwnerWindows(), now) == ()
    assert [each.scope for each in applying([("ops", ())], "eve", owner, now)] == ["runtime"]


def test_what_is_exactly_used_up_was_allowed_and_the_next_billionth_is_not() -> None:
    window = window_at("runtime", SpendWindow("day", "1"), at("2027-01-15T12:00:00Z"), UTC)
    row = SpendRow(*window.key, window.turns, 0, nanodollars("0.5"), nanodollars("0.25"))
    assert has_room(window, row, nanodollars("0.25"))
    assert not has_room(window, row, nanodollars("0.25") + 1)
    assert has_room(window, row._replace(granted=1), nanodollars("0.25") + 1)
    assert has_room(window, None, nanodollars("1")) and not has_room(window, None, nanodollars("1") + 1)


def test_of_several_full_windows_the_one_that_takes_longest_is_named() -> None:
    now = at("2027-01-15T12:30:00Z")
    hour = window_at("agent:ops", SpendWindow("hour", "1"), now, UTC)
    day = window_at("runtime", SpendWindow("day", "2"), now, UTC)
    rows = {each.key: SpendRow(*each.key, each.turns, 0, nanodollars("0.9")) for each in (hour, day)}
    assert passed_by((hour, day), rows, nanodollars("0.1")) is None
    full = passed_by((hour, day), rows, nanodollars("0.2"))
    assert full is not None and (full.scope, full.needed, full.allowed) == ("agent:ops", "0.2", "1")
    assert not full.is_hopeless
    both = passed_by((hour, day), {**rows, day.key: rows[day.key]._replace(spent=nanodollars("2"))}, nanodollars("0.2"))
    assert both is not None and both.scope == "runtime"
    assert window_words(both) == "the day of the runtime, which turns at 2027-01-16T00:00:00.000Z"
    never = passed_by((hour, day), rows, nanodollars("1.5"))
    assert never is not None and (never.scope, never.is_hopeless) == ("agent:ops", True), "no hour is ever enough"


def test_a_window_is_worth_a_word_from_four_fifths_on_once() -> None:
    row = SpendRow("runtime", "day", 0, 1, limit=1_000, granted=1_000)
    assert not is_noticeable(row._replace(spent=1_599, held=400)), "what is held is not spent yet"
    assert is_noticeable(row._replace(spent=1_600))
    assert not is_noticeable(row._replace(spent=1_600, noticed=True))


@given(st.decimals(0, 1_000_000, places=9))
def test_amounts_come_back_as_they_were(amount: object) -> None:
    text = format(amount, "f")
    assert nanodollars(dollars(nanodollars(text))) == nanodollars(text)
    assert "E" not in dollars(nanodollars(text))


def test_a_fraction_of_a_billionth_counts_as_a_whole() -> None:
    assert nanodollars("0.0000000001") == 1
    assert (dollars(0), dollars(10**9), dollars(100 * 10**9), dollars(1)) == ("0", "1", "100", "0.000000001")


def test_a_month_is_at_least_four_weeks() -> None:
    began, turns = bounds("month", at("2027-02-10T00:00:00Z"))
    assert turns - began == timedelta(days=28) / timedelta(microseconds=1)
