"""The store for programs that are not async is generated from the async one, and is up to date."""

import re
import runpy
from pathlib import Path

import wakeful
from wakeful.service.operations.operation import Operation
from wakeful.service.operations.table import FAMILIES, OPERATIONS


def test_the_view_is_what_the_async_class_makes_of_it(root: Path) -> None:
    script = runpy.run_path(str(root / "scripts" / "write_store_handle.py"))
    made = script["formatted"](script["store_handle"]([source.read_text() for source in script["SOURCES"]]))
    assert script["TARGET"].read_text() == made, "run: make fix"


def test_every_public_method_of_the_async_class_has_its_counterpart() -> None:
    from wakeful import AsyncStore, StoreHandle

    public = {name for name in dir(AsyncStore) if not name.startswith("_")}
    assert {name for name in vars(StoreHandle) if not name.startswith("_")} == public


ELSEWHERE = {
    "approvals.search": "store.approvals",
    "approvals.decision": "store.decide",
    "approvals.edit": "store.decide",
    "approvals.answer": "store.decide",
    "approvals.always": "store.decide",
    "turns.cancel": "wakeful.cancel",
    "turns.pause": "wakeful.pause",
    "turns.interject": "wakeful.interject",
    "turns.unpause": "wakeful.resume",
    "turns.result": "wakeful.resume",
    "turns.events": "store.events",
    "turns.wire": "store.events",
    "turns.lines": "store.events",
    "requests.list": "wakeful.pending_requests",
    "requests.show": "wakeful.pending_requests",
    "requests.submit": "wakeful.submit_result",
    "requests.end": "wakeful.timeout_request",
    "workflows.list": "wakeful.hosts.chat.workflow_registry",
    "workflows.show": "wakeful.hosts.chat.workflow_registry",
    "workflows.delete": "wakeful.hosts.chat.workflow_registry",
}
"""Operations that a program reaches by another name than a method of their own."""


def test_whatever_the_command_line_asks_of_a_store_a_program_can_ask(root: Path) -> None:
    library = root / "src/wakeful/surfaces/library"
    source = "".join((library / f"{name}.py").read_text() for name in ("async_store", "stored_agents"))
    used = set(re.findall(r"\b([A-Z]+(?:_[A-Z]+)*)\b", source))
    named = {
        each.name: where for family in FAMILIES for where, each in vars(family).items() if isinstance(each, Operation)
    }
    assert named.keys() == OPERATIONS.keys()
    of_stores = {name: where for name, where in named.items() if not name.startswith("runtime.")}
    missing = {name for name, where in of_stores.items() if where not in used} - set(ELSEWHERE)
    assert missing == set(), "give AsyncStore a method for it"
    assert {name for name in ELSEWHERE if named.get(name) in used} == set(), "it has a method of its own"
    for address in ELSEWHERE.values():
        where, _, name = address.rpartition(".")
        assert hasattr(wakeful.AsyncStore if where == "store" else __import__(where, fromlist=[name]), name), address
