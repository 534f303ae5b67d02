"""Runs of pure calls, killed at every moment.

Such a kill costs one reply, paid for again, where that had not been written yet. No call begins before it is.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash import pure_scenarios
from crash.storms import storm
from crash.sweeps import sweep
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger
from wakeful.testing.crash_children import Nursery, nursery_for
from wakeful.testing.crash_nurse import ProcessEnd
from wakeful.testing.crash_suite import live
from wakeful.testing.crash_switch import KillPoint


@pytest.mark.parametrize("scenario", pure_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_run_of_pure_calls_is_killed_anywhere_and_finishes(scenario: Callable[..., Any]) -> None:
    sweep(scenario)


@pytest.mark.parametrize("scenario", [pure_scenarios.stormy], ids=lambda scenario: scenario.__name__)
def test_a_run_of_pure_calls_is_killed_again_and_again(scenario: Callable[..., Any], tmp_path: Path) -> None:
    assert storm(scenario, 0, tmp_path) == []


def lived(nursery: Nursery, scenario: Callable[..., Any], place: Path, armed: KillPoint | None = None) -> ProcessEnd:
    place.mkdir(exist_ok=True)
    given = (scenario, SqliteStore.open, place, place / "ledger.jsonl", armed)
    return nursery.run(live, *given, output=place / "output", seconds=60.0)


def asked_again(place: Path) -> Counter[str]:
    """Rounds that were asked for more than once, and how often too many."""
    lines = (place / "asked").read_text().splitlines()
    return Counter(lines) - Counter(set(lines))


def test_a_reply_is_paid_for_again_only_when_the_process_died_before_it_was_written(tmp_path: Path) -> None:
    scenario = pure_scenarios.quick
    with nursery_for(scenario) as nursery:
        unharmed = lived(nursery, scenario, tmp_path / "unharmed")
        assert unharmed.how == "done" and not asked_again(tmp_path / "unharmed")
        places = {str(point): point for point in unharmed.value if point.place != "admit"}
        paid_again = set()
        for name, point in places.items():
            place = tmp_path / name.replace(" ", "-")
            assert lived(nursery, scenario, place, point).how == "killed", name
            ending = lived(nursery, scenario, place)
            assert ending.how == "done", f"{name}: {ending.words}"
            if again := asked_again(place):
                assert again.total() == 1, f"{name}: {again}"
                paid_again.add(name)
    assert not any("ledger" in name for name in paid_again), "a call begins when its reply is on disk"
    assert not any("after append" in name for name in paid_again), "what was committed is not paid for again"


def test_a_call_that_kills_its_process_each_time_is_given_up_after_three_tries(tmp_path: Path) -> None:
    scenario = pure_scenarios.deadly
    with nursery_for(scenario) as nursery:
        endings = [lived(nursery, scenario, tmp_path / "place") for _ in range(4)]
    assert [ending.how for ending in endings] == ["killed"] * 3 + ["done"], endings[-1].words
    assert not asked_again(tmp_path / "place")
    assert len(Ledger(tmp_path / "place" / "ledger.jsonl").entries()) == 3
