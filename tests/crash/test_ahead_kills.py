"""Calls that begin before their intent is on disk, killed at every moment.

What such a kill may cost is one reply, paid for again, and only where that had not been written yet.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crash import ahead_scenarios
from crash.storms import storm
from crash.sweeps import sweep
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ToolStarted
from wakeful.contracts.tools import Effect
from wakeful.ports import Claim, Store
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import Ledger, kill_everywhere
from wakeful.testing.crash_children import Nursery, nursery_for
from wakeful.testing.crash_nurse import ProcessEnd
from wakeful.testing.crash_suite import live
from wakeful.testing.crash_switch import KillPoint
from wakeful.testing.wrapped_store import WrappedStore


@pytest.mark.parametrize("scenario", ahead_scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_a_run_whose_calls_begin_ahead_is_killed_anywhere_and_finishes(scenario: Callable[..., Any]) -> None:
    sweep(scenario)


@pytest.mark.parametrize("scenario", [ahead_scenarios.stormy], ids=lambda scenario: scenario.__name__)
def test_a_run_whose_calls_begin_ahead_is_killed_again_and_again(scenario: Callable[..., Any], tmp_path: Path) -> None:
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
    scenario = ahead_scenarios.quick
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
    in_the_tool = {name for name in places if "ledger" in name}
    assert in_the_tool <= paid_again, "the whole call stands between the reply and its commit"
    assert not any("after append" in name for name in paid_again), "what was committed is not paid for again"


def test_a_call_that_kills_its_process_each_time_is_given_up_after_one_reply_more(tmp_path: Path) -> None:
    scenario = ahead_scenarios.deadly
    with nursery_for(scenario) as nursery:
        endings = [lived(nursery, scenario, tmp_path / "place") for _ in range(5)]
    assert [ending.how for ending in endings] == ["killed"] * 4 + ["done"], endings[-1].words
    assert asked_again(tmp_path / "place").total() == 1
    assert len(Ledger(tmp_path / "place" / "ledger.jsonl").entries()) == 4, "ahead once, then three tries on record"


class Misdeclared(WrappedStore):
    """The log says of every call that it has an effect, and the engine took it for a pure one."""

    def __init__(self, inner: Store, effect: Effect) -> None:
        super().__init__(inner)
        self._effect = effect

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        said = [
            replace(fact, event=fact.event.model_copy(update={"effect": self._effect}))
            if isinstance(fact.event, ToolStarted)
            else fact
            for fact in facts
        ]
        return await super().append(claim, said, barrier=barrier, rest=rest, last=last)


async def misdeclared(path: Path, effect: Effect) -> Store:
    return Misdeclared(await SqliteStore.open(path), effect)


def test_a_pure_call_that_runs_ahead_passes() -> None:
    sweep(ahead_scenarios.one_glance)


@pytest.mark.parametrize("effect", ["keyed", "irreversible"])
def test_inversion_a_call_with_an_effect_that_runs_ahead_is_found_out(effect: Effect) -> None:
    in_the_tool = [KillPoint("ledger", 1, "after"), KillPoint("here", 3, "before")]
    with pytest.raises(AssertionError) as found:
        kill_everywhere(ahead_scenarios.one_glance, open_store=partial(misdeclared, effect=effect), points=in_the_tool)
    assert "happened and its intent is not in the log" in str(found.value)
    assert f"({effect}) happened 2 times" in str(found.value)
