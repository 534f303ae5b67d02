"""A change of files, killed at every step of it, is made once and whole."""

import os
from pathlib import Path

import pytest

from crash import edit_scenarios
from crash.storms import storm
from crash.sweeps import sweep
from wakeful.testing import KillPoint, kill_everywhere

STORMS = range(int(os.environ.get("WAKEFUL_STORMS", "2")))


def test_a_killed_edit_is_neither_lost_nor_doubled() -> None:
    report = sweep(edit_scenarios.edits, more_than=40)
    assert report.unknown == 0


def test_without_the_record_the_kills_find_a_doubled_edit() -> None:
    with pytest.raises(AssertionError, match="one more more"):
        kill_everywhere(edit_scenarios.unrecorded, points=[KillPoint("here", 4, "before")])


@pytest.mark.parametrize("seed", STORMS)
def test_edits_that_are_killed_again_and_again_are_made_in_the_end(seed: int, tmp_path: Path) -> None:
    assert storm(edit_scenarios.edits, seed, tmp_path) == []
