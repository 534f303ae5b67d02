"""Kills that follow each other: the recovery is killed, too, and the recovery from that."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_checks import BrokenPromise, Moment, check_kill, check_recovery
from wakeful.testing.crash_children import Nursery, nursery_for
from wakeful.testing.crash_nurse import ProcessEnd
from wakeful.testing.crash_snapshot import Snapshot
from wakeful.testing.crash_suite import acknowledged, live, look_at
from wakeful.testing.crash_switch import KillPoint
from wakeful.testing.effect_ledger import Ledger

MOST_KILLS = 5
SECONDS = 60.0


def storm(scenario: Callable[..., Any], seed: int, folder: Path) -> list[BrokenPromise]:
    """Kill at random points until the run has finished or five processes have died; then let one live."""
    luck = Random(f"{getattr(scenario, 'func', scenario).__name__} {seed}")
    with nursery_for(scenario) as nursery:
        unharmed_at = folder / "unharmed"
        unharmed_at.mkdir()
        ending = _run(nursery, scenario, unharmed_at, None)
        assert ending.how == "done", ending.words
        unharmed, points = _seen(nursery, unharmed_at), ending.value
        place = folder / "storm"
        place.mkdir()
        found: list[BrokenPromise] = []
        moments: list[tuple[KillPoint, Moment]] = []
        for _ in range(MOST_KILLS):
            # What is left to do is less each time: aim at the beginning.
            point = luck.choice(points[: max(4, len(points) // (len(moments) + 1))])
            ending = _run(nursery, scenario, place, point)
            assert ending.how in ("killed", "done"), ending.words
            if ending.how == "done":
                break
            moments.append((point, _seen(nursery, place)))
            found += check_kill(point, unharmed, moments[-1][1], acknowledged(place))
        ending = _run(nursery, scenario, place, None)
        assert ending.how == "done", ending.words
        after = _seen(nursery, place)
    for point, killed in moments:
        found += check_recovery(point, unharmed, killed, after)
    return found


def _run(nursery: Nursery, scenario: Callable[..., Any], place: Path, armed: KillPoint | None) -> ProcessEnd:
    given = (scenario, SqliteStore.open, place, place / "ledger.jsonl", armed)
    return nursery.run(live, *given, output=place / "output", seconds=SECONDS)


def _seen(nursery: Nursery, place: Path) -> Moment:
    ending = nursery.run(look_at, SqliteStore.open, [place], output=place / "look", seconds=SECONDS)
    assert ending.how == "done", ending.words
    (seen,) = ending.value
    assert isinstance(seen, Snapshot), seen
    return Moment(seen, Ledger(place / "ledger.jsonl").entries())
