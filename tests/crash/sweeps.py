"""A sweep of kills over a scenario: a share of its points in `make test`, all of them in `make kills`.

The share is chosen by the day's seed, so that every point has its day; pytest shows the line that repeats it where a
sweep fails. Facts that come together may be one commit or two, and a task that stops its own turn may be gone before it
is told that the request is safe: how many commits a program makes is not the same each time, least of all on a busy
machine. So a few points may not be reached again.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from wakeful.testing import KillReport, kill_everywhere

SEED = int(os.environ.get("WAKEFUL_KILL_SEED", datetime.now(UTC).toordinal()))
POINTS = int(os.environ.get("WAKEFUL_KILL_POINTS", "16"))
"""Kills of each scenario; 0: all there are."""
FEWEST = 4
"""Kills of a scenario whose points are dealt out among several."""


def sweep(scenario: Callable[..., Any], more_than: int = 10, *, dealt: tuple[int, int] = (0, 1)) -> KillReport:
    """Kill at the points of the day. The scenario has more of them than `more_than`.

    Scenarios that are nearly the same deal the points of a day among each other: `dealt` is the number of this one and
    how many they are. Each takes other points, four at least, and in `make kills` all.
    """
    number, of = dealt
    most = max(POINTS // of, min(POINTS, FEWEST))
    seed = SEED * of + number
    print(f"again: WAKEFUL_KILL_SEED={SEED} WAKEFUL_KILL_POINTS={POINTS} pytest ...")  # noqa: T201
    report = kill_everywhere(scenario, most=most or None, seed=seed)
    assert_reached(report, min(more_than, most - 1) if most else more_than)
    return report


def assert_reached(report: KillReport, more_than: int = 10) -> None:
    """Nearly every point was reached again, and there were enough of them to show something."""
    assert len(report.unreached) <= max(1, report.points // 5), str(report)
    assert report.kills + len(report.unreached) == report.points > more_than, str(report)
