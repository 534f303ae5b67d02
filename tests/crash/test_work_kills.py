"""An agent is killed in the middle of a work item and started again: the item is finished, and each part built once."""

from pathlib import Path

import pytest

from crash import work_process
from crash.forked import Ended, run_forked


def started(home: Path, point: int) -> Ended:
    home.mkdir(exist_ok=True)
    return run_forked(work_process.main, home, point)


@pytest.mark.parametrize("points", [(1,), (2,), (1, 1, 1)])
def test_a_work_item_is_worked_to_its_end_over_kills(tmp_path: Path, points: tuple[int, ...]) -> None:
    home = tmp_path / "home"
    for point in points:
        killed = started(home, point)
        assert killed.returncode == -9, killed.said
    done = started(home, 0)
    assert (done.returncode, done.said) == (0, "All 3 parts are built.\n"), done.said
    parts = (home / "ledger.txt").read_text().splitlines()
    assert len(parts) == len(set(parts)) == 3, "each call has its key, and built once"
