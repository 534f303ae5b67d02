"""The page that walks a stranger through the house names functions that are there."""

import ast
import re
from pathlib import Path

LINK = re.compile(r"\[`([\w/]+)\.([\w.]+)`\]\(([^)]+)\)")
MOST = 25


def stops(root: Path) -> set[tuple[str, str, str]]:
    return set(LINK.findall((root / "docs/explain/tour.md").read_text()))


def is_defined(tree: ast.AST, name: str) -> bool:
    """Whether a module has a function, or a class with such a method."""
    first, _, rest = name.partition(".")
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == first:
            return not rest or is_defined(node, rest)
    return False


def test_every_function_of_the_tour_is_where_its_link_leads(root: Path) -> None:
    folder = root / "docs" / "explain"
    for module, name, target in stops(root):
        file = (folder / target).resolve()
        assert file == (root / "src" / "wakeful" / f"{module}.py").resolve()
        assert is_defined(ast.parse(file.read_text()), name), f"{module}.{name}"


def test_the_tour_can_be_walked_in_one_go(root: Path) -> None:
    assert 15 <= len(stops(root)) <= MOST


def test_a_function_that_is_gone_is_noticed() -> None:
    tree = ast.parse("class Gate:\n    def admit(self): ...\n\ndef decide(): ...\n")
    assert is_defined(tree, "decide") and is_defined(tree, "Gate.admit")
    assert not is_defined(tree, "admit") and not is_defined(tree, "Gate.decide")
