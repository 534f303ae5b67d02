"""The rooms of the house: modules that know each other in a circle, and what users are sent to."""

import re
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

INSIDE = re.compile(
    r"(?<!logger `)\bwakeful\.(service|surfaces|contracts|bootstrap|engine|gate|store|ports|views|decisions|tools"
    r"|skills|guidance|retrieval|processes|workspaces|sandbox|settings|programs)\b"
)
"""Rooms that are nobody's but ours. What a user needs of them has its address in `wakeful`, `wakeful.hosts`,
`wakeful.providers`, `wakeful.testing` or `wakeful.errors`; loggers are named after their rooms."""


def imports() -> dict[str, set[str]]:
    """Every module with those it imports. The package itself only names what others are: it is no part of a circle."""
    graph = grimp.build_graph("wakeful", exclude_type_checking_imports=False)
    return {
        module: graph.find_modules_directly_imported_by(module) - {"wakeful"} for module in graph.modules - {"wakeful"}
    }


def circle(known: Mapping[str, Collection[str]]) -> list[str] | None:
    """Modules of which each imports the next and the last the first, if there are any."""
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(imports()) is None


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) is not None
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


SMALL = 60
SMALL_WITH_ONE_READER = {
    "wakeful.surfaces.cli.turn_progress": "loaded at a terminal alone, with what draws its lines",
    "wakeful.surfaces.tui.composer": "a widget of its own: keys in their order",
    "wakeful.store.kind_numbers": "a list that never changes a line: rows of every store name kinds by it",
    "wakeful.runtime.home_lock": "one concern of the runtime, like its neighbours",
    "wakeful.retrieval.named_collections": "the door of its room",
    "wakeful.sandbox.late_imports": "what the sandbox knows of Python, asked by a tool: two rooms",
    "wakeful.settings.limit_overrides": "one section of the owner's file, like its neighbours",
    "wakeful.store.single_facts": "how facts were stored before rows were packed",
    "wakeful.store.sqlite.figures": "the numbers of a database, asked by `wakeful doctor`",
    "wakeful.store.sqlite.schema": "the text of tables, as their declarations give it",
    "wakeful.store.sqlite.workflows": "one concern of the store, like its neighbours",
    "wakeful.decisions.message_header": "what the model reads above a message of a queue",
    "wakeful.providers.gemini.contents": "one part of a wire format, like those of its neighbours",
    "wakeful.views.partial_answer": "what a stream shows of an answer that is not whole yet",
    "wakeful.providers.azure": "an address, which must not import endpoints",
    "wakeful.views.citations": "what a reader gets of citations",
    "wakeful.testing.crash_rows": "rows against the log, which is another question than what the log says",
    "wakeful.service.queries.views": "asked by operations",
}
"""Modules of a few lines that one other module imports, and why they stand apart. This list only shrinks."""


def test_a_few_lines_for_one_reader_stand_with_that_reader(root: Path) -> None:
    graph = grimp.build_graph("wakeful", exclude_type_checking_imports=False)
    found = set()
    for module in graph.modules:
        path = root / "src" / f"{module.replace('.', '/')}.py"
        readers = graph.find_modules_that_directly_import(module)
        is_room = any((root / "src" / reader.replace(".", "/")).is_dir() for reader in readers)
        if path.is_file() and len(readers) == 1 and not is_room and len(path.read_text().splitlines()) < SMALL:
            found.add(module)
    assert found - set(SMALL_WITH_ONE_READER) == set(), "put them into the module that tells their story"


def pages(root: Path) -> dict[str, str]:
    """What is written for users: not the decisions, which are about the house, nor what generates a page."""
    found = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "examples").glob("*.py")]
    named = {str(path.relative_to(root)): path.read_text() for path in found}
    return {name: text for name, text in named.items() if not name.startswith("docs/explain/decisions/")}


def test_no_page_sends_a_user_inside_the_house(root: Path) -> None:
    assert [name for name, text in pages(root).items() if INSIDE.search(text)] == []


@pytest.mark.parametrize(
    "text", ["from wakeful.service.hooks import hooks", "`wakeful.contracts.errors`", "`wakeful.ports`"]
)
def test_an_address_inside_the_house_is_found(text: str) -> None:
    assert INSIDE.search(text)
    for fine in ("from wakeful.errors import WakefulError", "the logger `wakeful.tools`", "wakeful.toml"):
        assert not INSIDE.search(fine)


OPEN_A_STORE = {
    "agent_in_question", "host_setup", "resume", "run", "workflow_nodes", "workflow_run", "workflows",
}  # fmt: skip
"""Commands that need the code of an agent, or follow a log while it grows. All others ask an operation."""


def test_a_command_asks_an_operation_instead_of_opening_a_store(root: Path) -> None:
    commands = (root / "src/wakeful/surfaces/cli").glob("*.py")
    assert {path.stem for path in commands if "opened_store" in path.read_text()} == OPEN_A_STORE
