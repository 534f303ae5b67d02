"""A real process, killed around every request to a client, every answer and every continuation: one result each."""

from collections.abc import Callable
from typing import Any

import pytest

from crash import client_scenarios
from wakeful.testing import kill_everywhere


@pytest.mark.parametrize("scenario", client_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_client_is_asked_once_and_answers_once_wherever_the_process_is_killed(scenario: Callable[..., Any]) -> None:
    report = kill_everywhere(scenario)
    assert report.ok and report.kills > 40
