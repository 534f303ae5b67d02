"""A real process with a tree of work in it, killed at every moment: every branch goes on where it was.

No call that had finished runs again, in no branch; no round that a model had answered is asked for, and paid for, a
second time; each child begins once and ends once; and the tree comes to the answer it would have come to.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash import tree_scenarios as scenarios
from crash.storms import storm
from crash.sweeps import sweep
from wakeful.testing import KillPoint, kill_everywhere

STORMS = range(int(os.environ.get("WAKEFUL_STORMS", "1")))


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_tree_that_is_killed_anywhere_finishes_as_if_nothing_had_happened(scenario: Callable[..., Any]) -> None:
    sweep(scenario, more_than=20)


def test_a_child_that_does_something_twice_is_found_out() -> None:
    with pytest.raises(AssertionError, match=r"repeated: .*forgetful .* happened 2 times"):
        kill_everywhere(scenarios.child_that_lies, points=[KillPoint("ledger", 1, "after")])


@pytest.mark.parametrize("seed", STORMS)
@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_tree_that_is_killed_again_and_again_finishes_in_the_end(
    scenario: Callable[..., Any], seed: int, tmp_path: Path
) -> None:
    assert storm(scenario, seed, tmp_path) == []
