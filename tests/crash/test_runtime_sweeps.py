"""A runtime's process is killed at every commit of a story and started again: the same end, nothing lost or done twice.

A share of the points here; all of them: `make kills`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from crash import runtime_scenarios as scenarios
from crash.sweeps import sweep

STORIES = [
    scenarios.messages_and_pauses,
    scenarios.a_timer_and_a_wait,
    scenarios.work_from_outside,
    scenarios.a_shutdown_in_the_middle,
    scenarios.deliveries_to_a_trigger,
    scenarios.a_child_that_works,
    scenarios.a_family_that_is_stopped,
    scenarios.a_child_in_a_worktree,
    scenarios.a_file_that_changes,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_life_that_is_killed_anywhere_comes_to_the_same_end(story: Callable[..., Any]) -> None:
    sweep(story)
