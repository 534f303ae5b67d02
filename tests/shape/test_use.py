"""Code that is there is used: by the runtime itself, by the public API, or by a reader that stands on the list."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from wakeful.contracts.events import EVENTS
from wakeful.service.operations.operation import Operation
from wakeful.service.operations.table import FAMILIES

USED_FROM_OUTSIDE = {
    "hosts.compaction.compaction_items.SCHEMA",
    "hosts.loop.conversation_result.SCHEMA",
    "providers.profiles.CHECKED",  # the reference says when the profiles were looked at
    "sandbox.launcher.main",  # the program that a command is started with
    "service.operations.table.OPERATIONS",  # the whole table, for surfaces that make a door of each line
    "store.sqlite.schema.create",  # the text of a migration, which a test prints
    "processes.supervisor.main",  # a program of its own, started by the text of its line
    "testing.prefixes.stability",
    "testing.validating_store.ValidatingStore",
}
"""Names that nothing in the package uses, with who does. This list only shrinks."""
NO_DOOR_YET = {
    "decisions.failures.exception_failure",
    "decisions.failures.tool_failure",
    "decisions.skills.active_skills",
}
"""Rules and views of the specification that no surface asks for yet. This list only shrinks."""
FOUND_BY_NAME = ("surfaces.cli.", "tools.foreign.", "testing.pytest_plugin.")
"""Where names stand in a table as text: commands, the other frameworks, the fixtures and hooks of pytest."""


def modules(package: Path) -> dict[str, ast.Module]:
    paths = [path for path in package.rglob("*.py") if "__pycache__" not in path.parts]
    named = {path: path.relative_to(package).with_suffix("").parts for path in paths}
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): ast.parse(path.read_text())
        for path, parts in named.items()
    }


def unused(trees: dict[str, ast.Module], name: str = "wakeful") -> set[str]:
    """The names on the top level of modules that no other statement of the package mentions."""
    taken = {(module.removeprefix(f"{name}."), each) for tree in trees.values() for module, each in _taken(tree)}
    found = set()
    for module, tree in trees.items():
        mentions = [(statement, _mentions(statement)) for statement in tree.body]
        count = Counter(word for _, words in mentions for word in words)
        for statement, words in mentions:
            for each in _defined(statement):
                if not each.startswith("__") and (module, each) not in taken and count[each] == (each in words):
                    found.add(f"{module}.{each}")
    return found


def _taken(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a module takes from others: imported, read from an imported module, or named in a lazy table."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    yield module, each.name
                    known[each.asname or each.name] = f"{module}.{each.name}"
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                        yield str(value.value), str(key.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield known[node.value.id], node.attr


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _mentions(statement: ast.stmt) -> set[str]:
    """The words of a statement: its names, and those of short texts, which may be annotations."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            found.update(re.findall(r"\w+", node.value))
    return found


def lines_of_the_table() -> set[str]:
    """Operations are used by the table: it takes all that the module of a family declares."""
    return {
        f"{family.__name__.removeprefix('wakeful.')}.{name}"
        for family in FAMILIES
        for name, value in vars(family).items()
        if isinstance(value, Operation)
    }


def test_nothing_is_there_for_tests_alone(root: Path) -> None:
    events = {event.__name__ for event in EVENTS}
    found = {
        each
        for each in unused(modules(root / "src" / "wakeful"))
        if not each.startswith(FOUND_BY_NAME) and each.rpartition(".")[2] not in events
    }
    assert found - lines_of_the_table() == USED_FROM_OUTSIDE | NO_DOOR_YET


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("def alone():\n    return alone()\n", {"one.alone"}),
        ("LATER = 1\n\ndef used():\n    return LATER\n", {"one.used"}),
        ("def f(): ...\n\nclass C:\n    kind: 'f'\n", {"one.C"}),
    ],
)
def test_a_name_that_nothing_uses_is_found(source: str, left: set[str]) -> None:
    assert unused({"one": ast.parse(source)}) == left
    taking = ast.parse("from wakeful.one import alone, used, C")
    assert unused({"one": ast.parse(source), "two": taking}) == set()
