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
IRREGULAR = {"forgotten", "given", "hit", "seen"}
"""Past tense without its usual ending."""
FIXED_BY_CONTRACT = {
    "callback_event",
    "http_callback_enqueue",
    "http_callback_wake",
    '"callback"',
    "/callbacks/",
    "callback_query",
    "callback_data",
    "answerCallbackQuery",
}
"""Literal identifiers of the message and trigger contracts. `"callback"` is the `kind` of an origin, as JSON has it;
`/callbacks/` is where the routes of triggers begin. The last three are Telegram's own."""


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
                yield f'"{text}"'


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
    assert {word for word in words_of(sample) if unwanted(word)} == {'"posts to a Callback"', "callback_url"}


PARTICIPLES = {
    "Happened",  # public: what a probe answers reads as a sentence, `return Happened(...)`
}
"""Classes that say what was done and not what they are. This list only shrinks."""
NOUNS_IN_ING = {"Binding", "Pricing", "Spending", "Thinking"}
PARTICIPLE = re.compile(
    r"[A-Z][a-z]+(ed|ing)|Cut|Found|Given|Held|Kept|Known|Lost|Said|Seen|Shown|Spent|Split|Taken|Told|Written"
)
MODULE_PARTICIPLE = re.compile(r"(\w+_)?[a-z]+(ing|ed)")
MODULES_IN_ING = {
    "approval_binding", "context_editing", "encoding", "mapping", "pricing",
    "recording", "routing", "spending", "steering", "waking",
    "operator_feed", "runtime_feed",
}  # fmt: skip
"""Nouns in -ing: bindings and encodings are things, context editing is a provider's own name for what it offers.
A feed is a thing as well."""


def classes(root: Path) -> list[str]:
    """The names of all classes that others may import, once for each place where they stand."""
    trees = [ast.parse(path.read_text()) for path in sources(root)]
    return [
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_a_class_has_a_name_of_its_own(root: Path) -> None:
    found = classes(root)
    assert {name for name in found if found.count(name) > 1} == set()


def test_a_class_is_a_noun(root: Path) -> None:
    assert {name for name in classes(root) if PARTICIPLE.fullmatch(name)} - NOUNS_IN_ING == PARTICIPLES


def test_a_module_is_a_noun(root: Path) -> None:
    stems = {path.stem for path in sources(root) if not path.stem.startswith("_")}
    assert {stem for stem in stems if MODULE_PARTICIPLE.fullmatch(stem)} == MODULES_IN_ING


def test_words_that_say_what_was_done_are_found() -> None:
    assert all(PARTICIPLE.fullmatch(name) for name in ("Given", "Said", "Recorded", "Waiting"))
    assert not any(PARTICIPLE.fullmatch(name) for name in ("RecordedFact", "Level", "ModelAttempt"))


def glossary(root: Path) -> list[str]:
    lines = (root / "docs/explain/glossary.md").read_text().splitlines()
    return [line.split("|")[1].strip() for line in lines if line.startswith("| ") and not line.startswith("| word ")]


def test_the_glossary_has_each_word_once(root: Path) -> None:
    words = glossary(root)
    assert len(words) == len(set(words)) and 40 <= len(words) <= 80
    assert {"agent", "thread", "turn", "round", "level", "message", "fact", "glimpse", "effect", "intent"} <= set(words)
