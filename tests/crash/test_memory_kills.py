"""A process is killed while it writes memory, its index, or a correction: nothing is lost, and nothing comes back."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("memory_process.py")
POINTS = 4


def started(home: Path, where: str, point: int) -> "subprocess.CompletedProcess[str]":
    home.mkdir(exist_ok=True)
    arguments = [sys.executable, str(PROGRAM), str(home), where, str(point)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False)


def told(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


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
        assert killed.returncode == -9, killed.stderr
        after = told(started(home, where, 0))
        after.pop("statements")
        assert after == whole, f"killed at {sample} of {POINTS}"
