"""The tests that docs/explain/resume-contract.md names are there, and each property that is kept has one."""

import ast
import re
from pathlib import Path

PAGE = "docs/explain/resume-contract.md"
KEPT = ("Prefix continuation", "Effect exactly once", "Checkpoint validity", "Consume once", "Recovery determinism")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ANY = re.compile(r"`(tests/[^`]*)`")


def named(page: str) -> list[tuple[str, str]]:
    """Every path and name of a test. Raises ValueError for one that is written otherwise."""
    for written in _ANY.findall(page):
        if not _NAMED.fullmatch(f"`{written}`"):
            raise ValueError(f"{written} is not PATH::NAME")
    return _NAMED.findall(page)


def absent(root: Path, tests: list[tuple[str, str]]) -> list[str]:
    return [f"{path}::{name}" for path, name in tests if name not in _functions(root / path)]


def _functions(file: Path) -> set[str]:
    if not file.exists():
        return set()
    defined = ast.parse(file.read_text("utf-8")).body
    return {each.name for each in defined if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_of_the_page_is_there(root: Path) -> None:
    assert absent(root, named((root / PAGE).read_text("utf-8"))) == []


def test_each_property_that_is_kept_names_a_test_and_the_other_one_none(root: Path) -> None:
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", (root / PAGE).read_text("utf-8"), re.M | re.S))
    assert {title for title, text in sections.items() if named(text)} == set(KEPT)
    assert set(sections) - set(KEPT) == {"Fork determinism"}


def test_a_test_that_is_gone_or_misspelt_is_found(root: Path) -> None:
    here = "tests/shape/test_resume_contract.py"
    gone = [(here, "test_nobody_wrote"), ("tests/gone.py", "test_x"), (here, "test_every_test_of_the_page_is_there")]
    assert absent(root, gone) == [f"{here}::test_nobody_wrote", "tests/gone.py::test_x"]
