"""The README: its program, as it stands there, run by a person in an empty folder; its length and its picture."""

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ANSWER = "Order A17 is refunded."


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
        [sys.executable, "refund.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False
    )


def typed(folder: Path, line: str) -> "subprocess.CompletedProcess[str]":
    """A line as a shell would run it, comment and all."""
    words = shlex.split(line, comments=True)
    program = Path(sys.executable).with_name(words[0])
    return subprocess.run([program, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def approved(folder: Path, source: str) -> None:
    """The first run prints the command that approves; it is typed as it stands."""
    asked = run(folder, source)
    assert asked.returncode == 0, asked.stderr
    assert not (folder / "bank.txt").exists(), "nobody has approved yet"
    assert "# refund {'order': 'A17', 'cents': 4200}" in asked.stdout
    done = typed(folder, asked.stdout.strip())
    assert done.returncode == 0, done.stderr


def payments(folder: Path) -> list[str]:
    return (folder / "bank.txt").read_text().splitlines()


def test_asked_approved_killed_and_run_again_it_answers_and_has_paid_once(program: str, tmp_path: Path) -> None:
    approved(tmp_path, program)
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


def test_until_somebody_approves_it_asks_again_and_pays_nothing(program: str, tmp_path: Path) -> None:
    first, second = run(tmp_path, program), run(tmp_path, program, crash=True)
    assert first.stdout == second.stdout != ""
    assert not (tmp_path / "bank.txt").exists()
    assert typed(tmp_path, first.stdout.strip().replace(" approve ", " reject ")).returncode == 0
    run(tmp_path, program)
    assert not (tmp_path / "bank.txt").exists()


def test_without_the_predicate_the_same_program_asks_nobody(program: str, tmp_path: Path) -> None:
    careless = program.replace(', approval=lambda call: call.arguments["cents"] > 1_000', "")
    assert careless != program
    assert run(tmp_path, careless).stdout.strip() == ANSWER
    assert len(payments(tmp_path)) == 1


def test_without_the_key_check_in_the_tool_the_same_story_pays_twice(program: str, tmp_path: Path) -> None:
    careless = program.replace("if not any(line.startswith(ctx.idempotency_key) for line in paid):", "if True:")
    assert careless != program
    approved(tmp_path, careless)
    run(tmp_path, careless, crash=True)
    assert run(tmp_path, careless).returncode == 0
    assert len(payments(tmp_path)) == 2, "keyed means: run again with the same key, and the tool honours it"


def test_once_it_is_finished_the_run_is_answered_from_the_log(program: str, tmp_path: Path) -> None:
    approved(tmp_path, program)
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
    first = run(tmp_path, irreversible)
    assert typed(tmp_path, first.stdout.splitlines()[0]).returncode == 0
    run(tmp_path, irreversible, crash=True)
    finished = run(tmp_path, irreversible)
    assert finished.returncode == 0, finished.stderr
    assert "refund" in finished.stdout.splitlines()[-1]
    assert len(payments(tmp_path)) == 1
    listed = typed(tmp_path, "wakeful unknown --store runs.db")
    assert "refund" in listed.stdout, listed.stderr


def test_the_readme_is_one_short_page(root: Path) -> None:
    assert len((root / "README.md").read_text().splitlines()) < 150


def test_the_picture_shows_what_the_demo_prints_today(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make picture` draws it again."""
    monkeypatch.syspath_prepend(root / "docs" / "pictures")
    spec = importlib.util.spec_from_file_location("crash_demo", root / "docs" / "pictures" / "crash_demo.py")
    assert spec is not None and spec.loader is not None
    crash_demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(crash_demo)
    drawn = crash_demo.PICTURE.read_text()
    assert "docs/pictures/crash-demo.svg" in (root / "README.md").read_text()
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", ""), "a picture fetches nothing"
    assert crash_demo.draw(crash_demo.demo_output()) == drawn
