"""A real process, killed around every request to a client, every answer and every continuation: one result each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash import client_scenarios
from crash.storms import storm
from crash.sweeps import sweep
from wakeful.testing import KillPoint, kill_everywhere


@pytest.mark.parametrize("scenario", client_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_client_is_asked_once_and_answers_once_wherever_the_process_is_killed(scenario: Callable[..., Any]) -> None:
    sweep(scenario, more_than=40)


def test_inversion_a_client_that_forgets_what_it_was_asked_does_it_twice() -> None:
    with pytest.raises(AssertionError, match="client/pick_file"):
        kill_everywhere(client_scenarios.forgetful, points=[KillPoint("ledger", 2, "after")])


@pytest.mark.parametrize("seed", range(2))
def test_a_run_and_its_client_that_are_killed_again_and_again_come_to_their_end(seed: int, tmp_path: Path) -> None:
    assert storm(client_scenarios.answered, seed, tmp_path) == []
