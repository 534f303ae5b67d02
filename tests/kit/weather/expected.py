"""What of the programs is run under which weather, and what does not come through it yet.

`EXPECTED_FAILURES` only shrinks: a test named there that passes fails the run.
"""

from typing import NamedTuple

from kit.weather.served_scripts import GPT, ServedModel

OUTAGE_SECONDS = 3.0
"""How long the provider is away in each test, after the rate limit and the cut stream."""


class ExpectedFailure(NamedTuple):
    """Why it fails, and at which model: others may be cheaper."""

    reason: str
    model: ServedModel = GPT


EXPECTED_FAILURES: dict[str, ExpectedFailure] = {
    "a_program_that_runs_as_printed[budgets-and-cost]": ExpectedFailure("its small limit ends it before its answer"),
}
"""By the end of a test's id."""
STILL_CLOCKS = (
    "::test_an_agent_wakes_in_the_morning_asks_and_repairs",
    "::test_an_agent_works_on_a_repository_for_days_and_leaves_it_merged",
    "a_program_that_runs_as_printed[schedules-and-waits]",
)
"""Programs that hold the clock still, so that no wait of theirs ends: list prices, and fine weather."""
COUNTING = (
    "a_program_that_runs_as_printed[subtasks-and-workflows]",
    "test_research_splits_into_subtasks_and_a_second_run_is_free",
    "test_a_budget_stops_a_run_with_an_answer_where_there_is_room_for_one",
)
"""Programs that print how often the model was called, or end by it: a cut answer is paid, and so counts. Weather that
costs nothing."""
FREE = {
    "a_program_that_runs_as_printed[models]": "prints what a script costs, which is nothing",
    "test_the_picture_shows_what_the_demo_prints_today": "draws the log of a run in fine weather",
}
"""Tests of what is so only with a script."""


def expected(nodeid: str) -> ExpectedFailure | None:
    return next((why for end, why in EXPECTED_FAILURES.items() if nodeid.endswith(end)), None)


def without_weather(nodeid: str) -> str | None:
    """Why a test is left out."""
    return next((why for end, why in FREE.items() if nodeid.endswith(end)), None)


def weather_of(nodeid: str) -> list[str]:
    """The words for the first requests of a test."""
    if nodeid.endswith(STILL_CLOCKS):
        return []
    away = [f"outage seconds={OUTAGE_SECONDS:g}"] if OUTAGE_SECONDS else []
    return ["429 after=0.05", *([] if nodeid.endswith(COUNTING) else ["cut"]), *away]
