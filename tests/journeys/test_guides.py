"""The guides: each begins with a program, which is run as printed, in an empty folder, by a process of its own.

A block of kind `text` right behind the program is what it prints, to the letter. The test supplies nothing but a home.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted(path for path in (ROOT / "docs" / "guides").glob("*.md") if path.name != "README.md")
_BEGINNING = re.compile(r"\A# .*?^```(python|console)\n(.*?)^```$(?:[^`]*?^```text\n(.*?)^```$)?", re.S | re.M)
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)
_RUNS = re.compile(r"^(?:asyncio\.run|print|result = run_sync)\(", re.M)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


class Beginning(NamedTuple):
    """The program at the top of a page, and what the page says it prints."""

    kind: str
    program: str
    output: str | None


def beginning(text: str) -> Beginning | None:
    found = _BEGINNING.match(text)
    return None if found is None else Beginning(found[1], found[2], found[3])


def run(folder: Path, words: list[str]) -> "subprocess.CompletedProcess[str]":
    left = os.environ if "PROVIDER_SERVER" in os.environ else {k: v for k, v in os.environ.items() if k[:6] != "PYTHON"}
    env = {key: value for key, value in left.items() if not key.startswith("WAKEFUL_")}
    env |= {"HOME": str(folder), "WAKEFUL_HOME": str(folder / "home"), "COLUMNS": "80"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)


def commands(text: str) -> str:
    """The lines of a console block that a person types, as a script that stops at the first failure."""
    return "set -e\n" + "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_begins_with_a_program_that_runs_as_printed(page: Path, tmp_path: Path) -> None:
    first = beginning(page.read_text())
    assert first is not None, f"{page.name} does not begin with a program"
    if first.kind == "python":
        (tmp_path / "program.py").write_text(first.program)
        done = run(tmp_path, [sys.executable, "program.py"])
    else:
        done = run(tmp_path, ["sh", "-c", commands(first.program)])
    assert done.returncode == 0, done.stderr
    if first.output is not None:
        assert done.stdout == first.output


def later_programs() -> list[tuple[str, str]]:
    """Programs further down a page that stand alone: they import wakeful and run something."""
    found = []
    for page in GUIDES:
        _, *later = _PROGRAM.findall(page.read_text()) or [""]
        whole = [each for each in later if re.search(r"^(?:from|import) wakeful", each, re.M) and _RUNS.search(each)]
        found += [(f"{page.stem}-{number}", each) for number, each in enumerate(whole, start=1)]
    return [(name, program) for name, program in found if not name.startswith("structured-output")]


@pytest.mark.parametrize(
    "program", [program for _, program in later_programs()], ids=[name for name, _ in later_programs()]
)
def test_a_program_further_down_a_guide_runs_as_printed(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    done = run(tmp_path, [sys.executable, "program.py"])
    assert done.returncode == 0, done.stderr


def test_the_second_program_about_structured_output_runs_behind_the_first(tmp_path: Path) -> None:
    first, second = _PROGRAM.findall((ROOT / "docs/guides/structured-output.md").read_text())
    (tmp_path / "program.py").write_text(first + second)
    done = run(tmp_path, [sys.executable, "program.py"])
    assert done.returncode == 0, done.stderr


def test_a_conversation_is_deleted_as_its_guide_prints_it(tmp_path: Path) -> None:
    page = (ROOT / "docs/guides/conversations.md").read_text()
    first, second, *_ = _PROGRAM.findall(page)
    (tmp_path / "program.py").write_text(first + second)
    done = run(tmp_path, [sys.executable, "program.py"])
    printed = page.split("## Deleting a conversation")[1].split("```text\n")[1].split("```")[0]
    assert (done.returncode, done.stdout.endswith(printed)) == (0, True), done
    (tmp_path / "again.py").write_text(first)
    assert run(tmp_path, [sys.executable, "again.py"]).returncode == 0
    lines = [line[2:] for line in page.splitlines() if line.startswith("$ wakeful thread")]
    assert len(lines) == 2
    for line in lines:
        told = run(tmp_path, [*line.split(), "--store", "runs.db"])
        assert (told.returncode, "mia" in told.stdout) == (0, True), told


def test_a_page_without_a_program_at_its_top_is_found() -> None:
    assert beginning("# Title\n\nWords only.\n") is None
    page = "# Title\n\nWords.\n\n```python\nprint(1)\n```\n\nIt prints:\n\n```text\n1\n```\n"
    assert beginning(page) == ("python", "print(1)\n", "1\n")
    assert beginning(page.replace("```text", "```json")) == ("python", "print(1)\n", None)


def test_every_guide_is_in_the_index_and_every_link_leads_somewhere() -> None:
    index = ROOT / "docs" / "guides" / "README.md"
    listed = {Path(link).name for link in _LINK.findall(index.read_text())}
    assert {page.name for page in GUIDES} <= listed
    for page in [index, *GUIDES]:
        assert [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()] == [], page.name
