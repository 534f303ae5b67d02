"""Whether a sweep of kills reached what it aimed at.

Facts that come together may be one commit or two, and a task that stops its own turn may be gone before it is told that
the request is safe: how many commits a program makes is not the same each time, least of all on a busy machine.
"""

from wakeful.testing import KillReport


def assert_reached(report: KillReport, more_than: int = 10) -> None:
    """Nearly every point was reached again, and there were enough of them to show something."""
    assert len(report.unreached) <= report.points // 5, str(report)
    assert report.kills + len(report.unreached) == report.points > more_than, str(report)
