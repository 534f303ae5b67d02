"""The README's program, as it stands there, run by a person in an empty folder."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ANSWER = "order='A17' refunded_cents=4200"


@pytest.fixture
def program(root: Path) -> str:
    """The first Python block of the README."""
    block = re.search(r"^```python\n(.*?)^```$", (root / "README.md").read_text(), re.S | re.M)
    assert block is not None
    return block[1]


def run(folder: Path, source: str, *, crash: bool = False) -> "subprocess.CompletedProcess[str]":
    (folder / "refund.py").write_text(source)
    env = {key: value for key, value in os.environ.items() if key != "CRASH"}
    if crash:
        env["CRASH"] = "1"
    return subprocess.run(
        [sys.executable, "refund.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def payments(folder: Path) -> list[str]:
    return (folder / "bank.txt").read_text().splitlines()


def test_killed_after_paying_and_run_again_it_answers_and_has_paid_once(program: str, tmp_path: Path) -> None:
    killed = run(tmp_path, program, crash=True)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, ""), killed.stderr
    assert len(payments(tmp_path)) == 1, "the worst moment: paid, not yet recorded"

    finished = run(tmp_path, program)
    assert (finished.returncode, finished.stdout.strip()) == (0, ANSWER), finished.stderr
    assert len(payments(tmp_path)) == 1

    again = run(tmp_path, program)
    assert (again.returncode, again.stdout.strip()) == (0, ANSWER), again.stderr
    assert len(payments(tmp_path)) == 1
    assert payments(tmp_path)[0].endswith(" A17 4200")


def test_without_the_key_check_in_the_tool_the_same_story_pays_twice(program: str, tmp_path: Path) -> None:
    careless = program.replace("if not any(line.startswith(ctx.idempotency_key) for line in paid):", "if True:")
    assert careless != program
    run(tmp_path, careless, crash=True)
    assert run(tmp_path, careless).returncode == 0
    assert len(payments(tmp_path)) == 2, "keyed means: run again with the same key, and the tool honours it"


def test_once_it_is_finished_the_run_is_answered_from_the_log(program: str, tmp_path: Path) -> None:
    first = run(tmp_path, program)
    assert (first.returncode, first.stdout.strip()) == (0, ANSWER), first.stderr
    # Nothing is left to crash in: neither the model nor a tool is called again.
    second = run(tmp_path, program, crash=True)
    assert (second.returncode, second.stdout.strip()) == (0, ANSWER), second.stderr
    assert len(payments(tmp_path)) == 1


def test_an_irreversible_refund_is_never_repeated_and_its_unknown_outcome_is_shown(
    program: str, tmp_path: Path
) -> None:
    irreversible = program.replace('effect="keyed"', 'effect="irreversible"') + "print(result.unknown)\n"
    run(tmp_path, irreversible, crash=True)
    finished = run(tmp_path, irreversible)
    assert finished.returncode == 0, finished.stderr
    assert "refund" in finished.stdout.splitlines()[-1]
    assert len(payments(tmp_path)) == 1
    listed = subprocess.run(
        [Path(sys.executable).with_name("wakeful"), "unknown", "--store", "runs.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "refund" in listed.stdout, listed.stderr
