"""Names: of files, packages, events, and the word we do not use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from wakeful.contracts.events import EVENTS

NOT_A_NOUN = {"utils", "util", "helpers", "common", "manager", "core", "misc"}
NOT_PAST_TENSE = {
    "tool.args",
    "tool.progress",
    "tool.result",
    "sandbox.violation",
    "runtime.warning",
    "routing.single_candidate",
    "routing.not_possible",
    "quota.low",
}
"""The runtime standard's own names. This list only shrinks."""
IRREGULAR = {"hit"}
"""Past tense without its usual ending."""
FIXED_BY_CONTRACT = {"callback_event", "http_callback_enqueue", "http_callback_wake"}
"""Literal identifiers of the message and trigger contracts."""


def sources(root: Path) -> list[Path]:
    return sorted((root / "src").rglob("*.py"))


def test_no_file_has_a_name_that_could_hold_anything(root: Path) -> None:
    everywhere = [*sources(root), *(root / "tests").rglob("*.py")]
    assert [path for path in everywhere if NOT_A_NOUN & set(path.stem.removeprefix("test_").split("_"))] == []


def test_every_module_says_what_it_is_for(root: Path) -> None:
    silent = [path for path in sources(root) if not is_described(path.read_text())]
    assert [str(path.relative_to(root)) for path in silent] == []


def test_every_package_says_what_lives_in_it(root: Path) -> None:
    packages = [path for path in sources(root) if path.name == "__init__.py"]
    assert [path for path in packages if not ast.get_docstring(ast.parse(path.read_text()))] == []
    loose = {path.parent for path in sources(root)} - {path.parent for path in packages}
    assert [folder for folder in loose if "__pycache__" not in folder.parts] == []


def is_described(source: str) -> bool:
    tree = ast.parse(source)
    # A file that holds one constant and nothing else needs no more words than its name.
    return bool(ast.get_docstring(tree)) or len(tree.body) <= 1


def test_every_event_says_what_happened_in_the_past_tense() -> None:
    for event in EVENTS:
        assert event.__doc__, event
        assert "." in event.kind, f"{event.kind} has no family"
        last = re.split(r"[._]", event.kind)[-1]
        assert last.endswith("ed") or last in IRREGULAR or event.kind in NOT_PAST_TENSE, (
            f"{event.kind} is not past tense"
        )
    assert {event.kind for event in EVENTS} >= NOT_PAST_TENSE


def words_of(source: str) -> Iterator[str]:
    """What a program says about itself: the names it defines and every text in it, help and docstrings included.

    Names of other libraries that it merely uses are not its own words.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Constant(value=str(text)):
                yield text


def unwanted(text: str) -> bool:
    for fixed in FIXED_BY_CONTRACT:
        text = text.replace(fixed, "")
    return "callback" in text.lower()


@pytest.mark.spec("HOL-SCOPE-01")
def test_names_help_texts_and_docs_do_not_say_callback(root: Path) -> None:
    in_code = [
        f"{path.relative_to(root)}: {word[:80]}"
        for path in sources(root)
        for word in words_of(path.read_text())
        if unwanted(word)
    ]
    docs = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "docs").rglob("*.json")]
    in_docs = [str(path.relative_to(root)) for path in docs if unwanted(path.read_text())]
    assert (in_code, in_docs) == ([], [])
    assert len(docs) > 5


def test_the_search_for_the_word_finds_names_arguments_and_help() -> None:
    sample = "def on(callback_url):\n    'posts to a Callback'\n    app.callback()\n    kind = 'callback_event'\n"
    assert {word for word in words_of(sample) if unwanted(word)} == {"posts to a Callback", "callback_url"}
