"""A real process, killed at every moment: nothing acknowledged is lost, nothing is done twice, nothing is hidden.

Each scenario is killed before and after every commit, before and after every effect, and inside every tool and every
model call. Then the same program runs again in a new process until it is finished, and log and world are compared.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crash import scenarios
from crash.storms import storm
from crash.sweeps import sweep

STORMS = range(int(os.environ.get("WAKEFUL_STORMS", "1")))
"""How many storms each scenario goes through; more of them find rarer things and take longer."""


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_run_that_is_killed_anywhere_finishes_as_if_nothing_had_happened(scenario: Callable[..., Any]) -> None:
    sweep(scenario)


@pytest.mark.parametrize(
    ("number", "scenario"), list(enumerate(scenarios.ALL)), ids=lambda each: getattr(each, "__name__", "")
)
def test_a_run_in_bad_weather_that_is_killed_anywhere_finishes_as_if_nothing_had_happened(
    number: int, scenario: Callable[..., Any]
) -> None:
    """The first attempt of each round is lost, so that one dies between and within attempts, too."""
    sweep(partial(scenarios.in_bad_weather, scenario), more_than=3, dealt=(number, len(scenarios.ALL)))


@pytest.mark.parametrize("seed", STORMS)
@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_run_that_is_killed_again_and_again_finishes_in_the_end(
    scenario: Callable[..., Any], seed: int, tmp_path: Path
) -> None:
    assert storm(scenario, seed, tmp_path) == []
