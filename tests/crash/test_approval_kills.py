"""A real process, killed at every moment round an approval: what was approved happens once, as it was approved, and
what was not approved never happens, whoever takes the turn up."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crash import approval_scenarios as scenarios
from crash.storms import storm
from crash.sweeps import sweep
from wakeful.testing import kill_everywhere

STORMS = range(int(os.environ.get("WAKEFUL_STORMS", "1")))


@pytest.mark.parametrize(("decision", "gated"), scenarios.CALLS, ids=map("-".join, scenarios.CALLS))
def test_a_gated_call_that_is_killed_anywhere_ends_as_it_was_decided(decision: str, gated: str) -> None:
    """The runs differ in one word of a person and one of a tool: they deal the points of a day among each other."""
    number = scenarios.CALLS.index((decision, gated))
    sweep(partial(scenarios.gated_call, decision=decision, gated=gated), dealt=(number, len(scenarios.CALLS)))


def test_a_tool_that_asks_nobody_is_found_out() -> None:
    """The inversion: the same run, whose tool does not wait for the person who says no."""
    with pytest.raises(AssertionError, match="it ran although nobody let it"):
        kill_everywhere(partial(scenarios.gated_call, decision="reject", gated="pay_unasked"))


@pytest.mark.parametrize("scenario", scenarios.OTHERS, ids=lambda scenario: scenario.__name__)
def test_whatever_waits_for_a_person_is_killed_anywhere(scenario: Callable[..., Any]) -> None:
    sweep(scenario)


@pytest.mark.parametrize("seed", STORMS)
@pytest.mark.parametrize("decision", [*scenarios.DECISIONS, "expire"])
def test_kills_that_follow_each_other_change_nothing_either(decision: str, seed: int, tmp_path: Path) -> None:
    scenario = partial(scenarios.gated_call, decision=decision, gated="pay_keyed")
    assert storm(scenario, seed, tmp_path) == []
