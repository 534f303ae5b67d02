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


def sweep(scenario: Callable[..., Any], more_than: int = 10) -> KillReport:
    """Kill at the points of the day. The scenario has more of them than `more_than`."""
    print(f"again: WAKEFUL_KILL_SEED={SEED} WAKEFUL_KILL_POINTS={POINTS} pytest ...")  # noqa: T201
    report = kill_everywhere(scenario, most=POINTS or None, seed=SEED)
    assert_reached(report, min(more_than, POINTS - 1) if POINTS else more_than)
    return report


def assert_reached(report: KillReport, more_than: int = 10) -> None:
    """Nearly every point was reached again, and there were enough of them to show something."""
    assert len(report.unreached) <= report.points // 5, str(report)
    assert report.kills + len(report.unreached) == report.points > more_than, str(report)
