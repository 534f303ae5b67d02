"""A run that plans and whose conversation is folded, killed at every moment: no phase is paid for twice."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash import long_scenarios
from crash.storms import storm
from crash.sweeps import sweep
from crash.test_controls import without_requests
from wakeful.testing import KillPoint, kill_everywhere

STORMS = range(int(os.environ.get("WAKEFUL_STORMS", "1")))


@pytest.mark.parametrize("scenario", long_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_run_that_is_killed_in_any_phase_finishes_as_if_nothing_had_happened(scenario: Callable[..., Any]) -> None:
    sweep(scenario, more_than=20)


def test_a_thread_that_is_killed_while_it_is_put_into_pages_goes_on_with_every_word_of_it() -> None:
    sweep(long_scenarios.thread_in_pages, more_than=10)


@pytest.mark.parametrize("seed", STORMS)
@pytest.mark.parametrize("scenario", long_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_run_that_is_killed_again_and_again_in_its_phases_finishes(
    scenario: Callable[..., Any], seed: int, tmp_path: Path
) -> None:
    assert storm(scenario, seed, tmp_path) == []


def test_without_the_intent_a_request_of_a_phase_is_found_that_the_log_knows_nothing_of() -> None:
    in_the_planner = KillPoint("here", 1, "before")
    with pytest.raises(AssertionError, match=r"~plan, round 1: \d requests and \d intents"):
        kill_everywhere(long_scenarios.planned, open_store=without_requests, points=[in_the_planner])
