"""What is in the repository names no machine and no package registry, and every mark names a rule there is."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# Written in pieces, so that this file does not hold what it looks for.
HOSTS = [".".join(host) for host in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("anaconda", "org"))]
MACHINE = re.compile(
    r"(?<![\w.~])/(?:" + "|".join(("work", "root", "tmp", "opt", "Users", "home/[a-z]")) + r")(?:/|\b(?!-items))"
)
RULE_ROW = re.compile(r"^\|\s*([A-Z]{2,5}-[A-Z0-9]+-\d{2,3})\s*\|(.*)\|\s*$")


def tracked(root: Path) -> list[Path]:
    """What is in the repository, or would be with the next commit."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("needs a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := root / name).is_file()]


def test_no_file_names_a_machine_or_a_registry(root: Path) -> None:
    found = []
    for path in tracked(root):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(root)}: {host}" for host in HOSTS if host in text]
        found += [f"{path.relative_to(root)}: {hit.group()}" for hit in MACHINE.finditer(text)]
    assert found == []


def test_the_search_for_machine_paths_knows_one_when_it_sees_it() -> None:
    seen = "/" + "work/main"
    assert MACHINE.search(f"cd {seen}")
    assert not MACHINE.search("a/work/b and https://example.com/tmpl and ~/work")


def spec_marks(root: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, list[str]]]:
    for path in sorted((root / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.spec"):
                    ids = [arg.value for arg in decorator.args if isinstance(arg, ast.Constant)]
                    yield f"{path.relative_to(root)}::{node.name}", node, [str(one) for one in ids]


def test_no_mark_stands_on_a_module_a_class_or_a_test_that_may_be_skipped(root: Path) -> None:
    wrong = []
    for where, node, _ in spec_marks(root):
        skips = any("mark.skip" in ast.unparse(decorator) for decorator in node.decorator_list)
        if isinstance(node, ast.ClassDef) or skips or "shared" in [arg.arg for arg in node.args.args]:
            wrong.append(where)
    on_modules = re.compile(r"^pytestmark\b.*\bspec\b", re.M)
    wrong += [str(path) for path in (root / "tests").rglob("*.py") if on_modules.search(path.read_text())]
    assert wrong == []


def test_every_mark_names_a_rule_there_is(root: Path, shared: Path) -> None:
    rules = {
        row[1]
        for page in (shared / "spec").glob("*.md")
        for line in page.read_text().splitlines()
        if (row := RULE_ROW.match(line)) and "(note)" not in row[2]
    }
    assert len(rules) > 1_000
    assert [f"{where}: {one}" for where, _, ids in spec_marks(root) for one in ids if one not in rules] == []


def test_every_waiver_is_one_rule_with_a_reason(root: Path) -> None:
    lines = (root / "docs/spec-waivers.md").read_text().splitlines()
    waivers = [line for line in lines if re.match(r"\W*[A-Z]{2,5}-[A-Z0-9]+-\d{2,3}\b", line)]
    assert [line for line in waivers if not re.match(r"[A-Z]{2,5}-[A-Z0-9]+-\d{2,3}: .{10,}", line)] == []
