"""A process is killed while it writes memory, its index, or a correction: nothing is lost, and nothing comes back."""

import json
from pathlib import Path
from typing import Any

import pytest

from crash import memory_process
from crash.forked import Ended, run_forked

POINTS = 4


def started(home: Path, where: str, point: int) -> Ended:
    home.mkdir(exist_ok=True)
    return run_forked(memory_process.main, home, where, point)


def told(done: Ended) -> dict[str, Any]:
    assert done.returncode == 0, done.said
    return dict(json.loads(done.said))


@pytest.mark.parametrize("where", ["index", "store"])
def test_memory_and_its_index_survive_kills(tmp_path: Path, where: str) -> None:
    whole = told(started(tmp_path / "whole", where, 0))
    kept = [f"Noted: walrus {number}" for number in (0, 2, 3, 4)]
    assert whole["found"] == ["# Keep\nThe walrus is kept.", *kept]
    assert whole["working"] == [f"result: {text}" for text in reversed(kept)]
    assert whole["file"] == "# Keep\nThe walrus is kept.\n\n"
    statements = whole.pop("statements")
    for sample in range(1, POINTS + 1):
        home = tmp_path / f"{where}-{sample}"
        killed = started(home, where, sample * statements // (POINTS + 1))
        assert killed.returncode == -9, killed.said
        after = told(started(home, where, 0))
        after.pop("statements")
        assert after == whole, f"killed at {sample} of {POINTS}"
