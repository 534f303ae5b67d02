"""When a schedule is due, over every change of the clocks, and what becomes of each due time."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.waking import CatchUp
from wakeful.decisions.waking.due_times import (
    MOST_CAUGHT_UP,
    MOST_COUNTED,
    DueTimes,
    NoDueTime,
    Schedule,
    Settlement,
    has_jumped,
    next_due,
    schedule_of,
    settle,
)

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE, HOUR = 60_000_000, 3_600_000_000


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * 1_000_000


NEW_YEAR = at("2026-01-01T00:00+00:00")


def lines(line: str, after: str, count: int = 3) -> list[str]:
    schedule, moment = schedule_of(line, BERLIN, at(after)), at(after)
    found = []
    for _ in range(count):
        following = next_due(schedule, moment)
        assert following is not None
        moment = following
        found.append(datetime.fromtimestamp(moment / 1e6, BERLIN).isoformat(timespec="minutes"))
    return found


def test_a_line_is_due_by_the_clock_of_its_zone() -> None:
    assert lines("0 7 * * 1-5", "2026-01-02T12:00+01:00") == [
        "2026-01-05T07:00+01:00",
        "2026-01-06T07:00+01:00",
        "2026-01-07T07:00+01:00",
    ]


@pytest.mark.parametrize("line", ["30 2 * * *", "*/30 2 * * *", "0,30 2 * * *"])
def test_an_hour_that_is_repeated_fires_once(line: str) -> None:
    found = lines(line, "2026-10-25T02:29+02:00", 2)
    assert found[0] == "2026-10-25T02:30+02:00"
    assert found[1].startswith("2026-10-26T02:")
    assert lines(line, "2026-10-25T02:10+01:00", 1)[0].startswith("2026-10-26"), "the second time round"


@pytest.mark.parametrize("line", ["30 2 * * *", "*/30 2 * * *", "0,30 2 * * *"])
def test_an_hour_that_is_skipped_fires_once_at_its_end(line: str) -> None:
    found = lines(line, "2026-03-28T12:00+01:00", 2)
    assert found[0] == "2026-03-29T03:00+02:00"
    assert found[1].startswith("2026-03-30T02:")


def test_a_line_for_every_hour_keeps_its_beat() -> None:
    assert lines("0 * * * *", "2026-10-25T01:30+02:00", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
    ]
    assert lines("0 * * * *", "2026-03-29T00:30+01:00", 2) == ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("* * * *", "4 fields, and a cron line has 5"),
        ("* * * * * *", "6 fields, and a cron line has 5"),
        ("61 * * * *", "is not a cron line: bad minute"),
        ("0 0 30 2 *", "is not a cron line: bad day-of-month"),
        ("", "has 0 fields"),
        ("0 7 * * someday", "is not a cron line: bad day-of-week"),
    ],
)
def test_a_line_that_cannot_be_due_is_refused_with_the_line(line: str, problem: str) -> None:
    with pytest.raises(NoDueTime) as raised:
        schedule_of(line, UTC, NEW_YEAR)
    assert repr(line) in str(raised.value) and problem in str(raised.value)


# --- what becomes of due times ------------------------------------------------------------------------------------

HOURLY = Schedule("0 * * * *", UTC)


def due(hour: int) -> int:
    return NEW_YEAR + hour * HOUR


def test_nothing_becomes_of_a_due_time_before_it_has_come() -> None:
    assert settle(due(1), due(1) - 1, "one", HOURLY) == Settlement(None, None, None, due(1))


@pytest.mark.parametrize("catch_up", ["one", "all", "none"])
def test_a_due_time_that_is_met_fires(catch_up: CatchUp) -> None:
    assert settle(due(1), due(1) + 5, catch_up, HOURLY) == Settlement(None, None, due(1), due(2))


@pytest.mark.parametrize("catch_up", ["one", "all"])
def test_a_single_due_time_fires_however_late(catch_up: CatchUp) -> None:
    assert settle(due(1), due(900), catch_up, None) == Settlement(None, None, due(1), None)


def test_one_message_stands_for_all_that_passed() -> None:
    late = due(5) + 30 * MINUTE
    assert settle(due(1), late, "one", HOURLY) == Settlement(None, DueTimes(due(1), due(4), 4), due(5), due(6))


def test_without_catching_up_what_passed_is_missed() -> None:
    late = due(5) + 30 * MINUTE
    assert settle(due(1), late, "none", HOURLY) == Settlement(DueTimes(due(1), due(5), 5), None, None, due(6))
    met = due(5) + MINUTE
    assert settle(due(1), met, "none", HOURLY) == Settlement(DueTimes(due(1), due(4), 4), None, due(5), due(6))


def test_catching_up_with_all_fires_the_newest_24_one_by_one() -> None:
    late = due(30) + 5
    assert settle(due(29), late, "all", HOURLY) == Settlement(None, None, due(29), due(30))
    first = settle(due(1), late, "all", HOURLY)
    assert first == Settlement(DueTimes(due(1), due(6), 6), None, due(7), due(8))
    fired = []
    following: int | None = due(1)
    while following is not None and following <= late:
        found = settle(following, late, "all", HOURLY)
        fired.append(found.fires)
        following = found.next_at
    assert fired == [due(hour) for hour in range(7, 31)] and len(fired) == MOST_CAUGHT_UP


@given(
    st.sampled_from(["*/7 * * * *", "0 7 * * *", "30 2 * * *", "0 0 1 * *"]),
    st.sampled_from(["one", "all", "none"]),
    st.integers(0, 3 * 24 * 60),
)
def test_every_due_time_ends_as_fired_folded_or_missed(line: str, catch_up: CatchUp, minutes: int) -> None:
    schedule = schedule_of(line, BERLIN, NEW_YEAR)
    first = next_due(schedule, NEW_YEAR)
    assert first is not None
    now = first + minutes * MINUTE
    expected, moment = [], NEW_YEAR
    while (following := next_due(schedule, moment)) is not None and following <= now:
        expected.append(following)
        moment = following
    ended: list[int] = []
    due_at: int | None = first
    while due_at is not None and due_at <= now:
        found = settle(due_at, now, catch_up, schedule)
        for together in (found.missed, found.folded):
            if together is not None:
                these = [each for each in expected if together.first <= each <= together.last]
                assert len(these) == together.number
                ended += these
        ended += [found.fires] if found.fires is not None else []
        due_at = found.next_at
    assert ended == expected


def test_a_year_of_minutes_is_settled_at_once_and_says_that_it_stopped_counting() -> None:
    schedule = schedule_of("* * * * *", BERLIN, NEW_YEAR)
    now = NEW_YEAR + 365 * 24 * HOUR
    found = settle(NEW_YEAR + MINUTE, now, "one", schedule)
    assert found == Settlement(None, DueTimes(NEW_YEAR + MINUTE, now - MINUTE, MOST_COUNTED - 1), now, now + MINUTE)
    all_of_them = settle(NEW_YEAR + MINUTE, now, "all", schedule)
    assert (all_of_them.fires, all_of_them.next_at) == (now - 23 * MINUTE, now - 22 * MINUTE)


def test_a_clock_that_moves_by_over_an_hour_more_or_less_than_time_passed_has_jumped() -> None:
    assert has_jumped(2 * HOUR, MINUTE) and has_jumped(-2 * HOUR, MINUTE)
    assert not has_jumped(HOUR, 0) and not has_jumped(8 * HOUR, 8 * HOUR)
