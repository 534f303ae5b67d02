"""A real process, killed at every moment: nothing acknowledged is lost, nothing is done twice, nothing is hidden."""

from collections.abc import Callable
from typing import Any

import pytest

from crash import scenarios
from wakeful.testing import kill_everywhere


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_it_finishes_as_if_nothing_had_happened(scenario: Callable[..., Any]) -> None:
    report = kill_everywhere(scenario)
    assert report.kills == report.points > 10
