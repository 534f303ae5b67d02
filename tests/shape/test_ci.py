"""What CI makes of a test that fails beside others: `.ci/steady`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STEADY = Path(__file__).resolve().parents[2] / ".ci" / "steady"

FAILS_ONCE = """
from pathlib import Path

def test_once():
    mark = Path(__file__).with_suffix(".ran")
    if not mark.exists():
        mark.touch()
        raise AssertionError("a machine that stood still")
"""
FAILS = """
def test_broken():
    raise AssertionError("broken")
"""
PASSES = """
def test_well():
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(STEADY, tmp_path / ".ci")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def steady(project: Path, **files: str) -> tuple[int, str]:
    for name, text in files.items():
        (project / f"test_{name}.py").write_text(text)
    tests = [sys.executable, "-m", "pytest", "-q"]
    done = subprocess.run(
        [project / ".ci" / "steady", sys.prefix, *tests],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_test_that_passes_three_times_alone_is_named_and_let_through(project: Path) -> None:
    code, said = steady(project, once=FAILS_ONCE, well=PASSES)
    assert code == 0, said
    assert said.count("\n1 passed in") == 3, "it is run alone, three times"
    named = "NOT STEADY: failed once beside others and passed three times alone:\n    test_once.py::test_once\n"
    assert said.endswith(named)


def test_a_test_that_fails_alone_fails_all(project: Path) -> None:
    code, said = steady(project, once=FAILS_ONCE, broken=FAILS)
    assert code == 1 and "NOT STEADY" not in said


def test_more_than_three_failures_are_not_tried_again(project: Path) -> None:
    code, said = steady(project, **{f"once{number}": FAILS_ONCE for number in "1234"}, well=PASSES)
    assert code == 1 and "time 1 of 3" not in said


def test_what_ends_without_a_failed_test_fails(project: Path) -> None:
    code, said = steady(project, wrong="not python")
    assert code != 0 and "NOT STEADY" not in said


def test_what_passes_passes(project: Path) -> None:
    code, said = steady(project, well=PASSES)
    assert code == 0 and "alone" not in said
