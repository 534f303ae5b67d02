"""An agent is killed in the middle of a work item and started again: the item is finished, and each part built once."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("work_process.py")


def started(home: Path, point: int) -> "subprocess.CompletedProcess[str]":
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(home), str(point)], capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("points", [(1,), (2,), (1, 1, 1)])
def test_a_work_item_is_worked_to_its_end_over_kills(tmp_path: Path, points: tuple[int, ...]) -> None:
    home = tmp_path / "home"
    for point in points:
        killed = started(home, point)
        assert killed.returncode == -9, killed.stderr
    done = started(home, 0)
    assert (done.returncode, done.stdout) == (0, "All 3 parts are built.\n"), done.stderr
    parts = (home / "ledger.txt").read_text().splitlines()
    assert len(parts) == len(set(parts)) == 3, "each call has its key, and built once"
