"""What a type checker says about programs that use wakeful: mypy --strict and pyright agree on every line."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs"


def wrong_lines(program: Path) -> set[int]:
    lines = program.read_text().splitlines()
    return {number for number, line in enumerate(lines, start=1) if line.endswith("# wrong")}


def mypy(program: Path, cache: Path) -> dict[int, str]:
    """The lines mypy refuses, with what it says."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(cache)]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 1), done.stderr
    found = re.findall(rf"^{re.escape(str(program))}:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    found += re.findall(rf"^{re.escape(str(program.relative_to(ROOT)))}:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return {int(line): said for line, said in found}


def pyright(program: Path) -> dict[int, str]:
    """The lines pyright refuses, with what it says."""
    command = shutil.which("pyright", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if command is None:
        pytest.skip("pyright is not installed")
    done = subprocess.run(
        [command, "--outputjson", "--pythonpath", sys.executable, str(program)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {(done.stderr or done.stdout).strip()[:200]}")
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1: each["message"] for each in found if each["severity"] == "error"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize("name", ["readme.py", "right.py"])
def test_mypy_accepts_what_is_right(name: str, cache: Path) -> None:
    assert mypy(PROGRAMS / name, cache) == {}


def test_mypy_refuses_every_wrong_line_and_no_other(cache: Path) -> None:
    found = mypy(PROGRAMS / "wrong.py", cache)
    assert set(found) == wrong_lines(PROGRAMS / "wrong.py"), found


@pytest.mark.parametrize("name", ["readme.py", "right.py"])
def test_pyright_accepts_what_is_right(name: str) -> None:
    assert pyright(PROGRAMS / name) == {}


def test_pyright_refuses_every_wrong_line_and_no_other() -> None:
    found = pyright(PROGRAMS / "wrong.py")
    assert set(found) == wrong_lines(PROGRAMS / "wrong.py"), found
