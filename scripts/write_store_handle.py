"""Writes `wakeful/surfaces/library/store_handle.py` from the async classes: `python scripts/write_store_handle.py`.

`make fix` runs it, and a test compares the two: no method of the view is written by hand.
"""

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "src" / "wakeful" / "surfaces" / "library"
SOURCES = (LIBRARY / "async_store.py", LIBRARY / "stored_agents.py")
TARGET = LIBRARY / "store_handle.py"
HEAD = '''\
"""The store for programs that are not async, and `open_store`. Generated from `async_store` and
`stored_agents` by `make fix`.

Each method waits for the method of the same name. Inside a running event loop it would block everything else there:
it raises InvalidRequest and names the line to write.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wakeful.contracts.approvals import Always, Answer, Approve, Edit, Reject
from wakeful.contracts.budgets import Money
from wakeful.contracts.probes import DidNotHappen, Happened
from wakeful.contracts.spending import Period
from wakeful.service.operations.turns import PAGE
from wakeful.surfaces.library.async_store import AsyncStore, Groups, TurnStates, checked_path
from wakeful.surfaces.library.sync import each_outside_loop, wait_outside_loop

if TYPE_CHECKING:
{typed}


def open_store(path: "str | PathLike[str]", *, must_exist: bool = False) -> "StoreHandle":
    """A store by its path: its turns, threads, approvals, unknown outcomes, artifacts, cost and events.

    `store = open_store("runs.db")` in a program that is not async, `async with open_store("runs.db") as store` in one
    that is. A missing file is made, as `run` makes it, unless `must_exist`. Raises StoreProblem, or InvalidRequest.
    """
    return StoreHandle(checked_path(path, must_exist=must_exist))


class StoreHandle(PathLike[str]):
    """A store, for programs that are not async. `run_sync(..., store=store)` takes it wherever a path is taken.

    `with` keeps the file open from call to call. `async with` gives the same store with async methods.
    """

    def __init__(self, path: "str | PathLike[str]") -> None:
        self._store = AsyncStore(path)

    def __fspath__(self) -> str:
        return self._store.__fspath__()

    def __repr__(self) -> str:
        return f"{{type(self).__name__}}({{self.__fspath__()!r}})"

    def __enter__(self) -> Self:
        wait_outside_loop(self._store.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wait_outside_loop(self._store.__aexit__(kind, error, trace))

    async def __aenter__(self) -> AsyncStore:
        return await self._store.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._store.__aexit__(kind, error, trace)
'''


def store_handle(sources: Sequence[str]) -> str:
    """The module, from the texts of the async ones."""
    typed: dict[str, None] = {}
    methods: list[ast.AsyncFunctionDef] = []
    for tree in map(ast.parse, sources):
        (types,) = (n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
        typed.update((f"    {ast.unparse(line)}", None) for line in types.body)
        (made,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
        methods += [n for n in made.body if isinstance(n, ast.AsyncFunctionDef) and not n.name.startswith("_")]
    return HEAD.format(typed="\n".join(typed)) + "".join(f"\n{_method(node)}" for node in methods)


def _method(node: ast.AsyncFunctionDef) -> str:
    yields = any(isinstance(inner, ast.Yield) for inner in ast.walk(node))
    assert node.returns is not None
    returned = ast.unparse(node.returns).replace("AsyncIterator", "Iterator")
    given = [argument.arg for argument in node.args.args[1:]]
    given += [f"{argument.arg}={argument.arg}" for argument in node.args.kwonlyargs]
    wait = "each_outside_loop" if yields else "wait_outside_loop"
    words = (ast.get_docstring(node, clean=False) or "").strip()
    return (
        f"    def {node.name}({ast.unparse(node.args)}) -> {returned}:\n"
        f'        """{words}{chr(10) + "        " if chr(10) in words else ""}"""\n'
        f"        return {wait}(self._store.{node.name}({', '.join(given)}))\n"
    )


def formatted(text: str) -> str:
    """As `make fix` leaves it."""
    for command in (["check", "--fix-only", "--select", "I,F401", "-q"], ["format", "-q"]):
        place = ["--stdin-filename", str(TARGET), "-"]
        ruff = str(Path(sys.executable).with_name("ruff"))
        text = subprocess.run([ruff, *command, *place], input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    TARGET.write_text(formatted(store_handle([source.read_text() for source in SOURCES])))
