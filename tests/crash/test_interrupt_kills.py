"""A process that is killed while its turn is paused, spoken to or stopped: what was acknowledged holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash import interrupt_scenarios
from crash.storms import storm
from crash.sweeps import sweep


@pytest.mark.parametrize("scenario", interrupt_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_turn_that_is_steered_and_killed_ends_as_it_was_told_to(scenario: Callable[..., Any]) -> None:
    sweep(scenario)


@pytest.mark.parametrize("scenario", interrupt_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_turn_that_is_steered_and_killed_again_and_again_ends(scenario: Callable[..., Any], tmp_path: Path) -> None:
    assert storm(scenario, 1, tmp_path) == []
