"""The process that forks children to be killed: one thread, which loads what is to be run, forks and looks on.

It has in memory what a child would otherwise make for itself: an empty store, the columns of tables, and what earlier
children told that they needed: modules of wakeful and its libraries that were imported late, models that were built
late. None of it knows a run. Their memory is frozen: a child's garbage collection does not copy it.
"""

import contextlib
import gc
import importlib
import importlib.util
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import BaseModel

from wakeful.store.sqlite.new_file import put_new
from wakeful.store.tables import TABLES

LOOKS_EVERY = 0.001
IMPORTED = frozenset({"wakeful", "anyio", "genai_prices", "h11", "httpcore2", "httpx2", "mcp", "sniffio"})
"""Wakeful, and what it uses and imports late."""


@dataclass(frozen=True)
class Load:
    """Have a function here: pickled, with the name of its module and that module's file."""

    pickled: bytes
    module: str
    file: str | None


@dataclass(frozen=True)
class ChildJob:
    """What to call, with what, where its output goes, and how many seconds it has."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    output: Path
    seconds: float
    environment: dict[str, str]
    folder: Path


@dataclass(frozen=True)
class ProcessEnd:
    """How a child ended."""

    how: Literal["done", "killed", "raised", "hung"]
    value: Any = None
    """What the function returned, when it is done."""
    words: str = ""
    """What it wrote and raised, when it is not."""


def nurse(pipes: list[Connection]) -> None:
    """Answer each pipe: one child at a time for each of them, until the other side is gone."""
    _prepare()
    children: dict[Connection, _Child] = {}
    needs = _Needs()
    while True:
        for pipe in _spoken([pipe for pipe in pipes if pipe not in children], bool(children)):
            try:
                asked = pipe.recv()
            except EOFError:
                return
            if isinstance(asked, Load):
                pipe.send(_load(asked))
                needs = _Needs()
            else:
                children[pipe] = _Child(asked, pipes, needs)
        for pipe, child in [*children.items()]:
            ending = child.look()
            if ending is not None:
                del children[pipe]
                pipe.send(ending)


def _spoken(idle: list[Connection], busy: bool) -> list[Connection]:
    if not idle:
        time.sleep(LOOKS_EVERY)
        return []
    return [pipe for pipe in wait(idle, LOOKS_EVERY if busy else None) if isinstance(pipe, Connection)]


class _Child:
    """A process that lives."""

    def __init__(self, job: ChildJob, pipes: Iterable[Connection], needs: "_Needs") -> None:
        self._job = job
        self._needs = needs
        self._answer = job.output.with_suffix(".answer")
        self._until = time.monotonic() + job.seconds
        self._process = os.fork()
        if self._process == 0:
            for pipe in pipes:
                pipe.close()
            _live(job, self._answer, asked=needs.are_wanted)

    def look(self) -> ProcessEnd | None:
        """How it ended; None while it lives."""
        ended, status = os.waitpid(self._process, os.WNOHANG)
        if not ended:
            if time.monotonic() < self._until:
                return None
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            return ProcessEnd("hung", words=f"still running after {self._job.seconds:g} seconds\n{self._said()}")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return ProcessEnd("killed", words=self._said())
        if status != 0:
            return ProcessEnd("raised", words=self._said() or f"exit status {os.waitstatus_to_exitcode(status)}")
        value, needed = pickle.loads(self._answer.read_bytes())
        if needed is not None:
            self._needs.meet(*needed)
        return ProcessEnd("done", value=value)

    def _said(self) -> str:
        output = self._job.output
        return output.read_text("utf-8", errors="replace")[-2000:].strip() if output.exists() else ""


def _live(job: ChildJob, answer: Path, *, asked: bool) -> None:
    """The child's whole life. It never returns into the nursery's code."""
    status = 1
    try:
        written = os.open(job.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.environ.clear()
        os.environ.update(job.environment)
        os.chdir(job.folder)
        before = set(sys.modules)
        value = job.function(*job.arguments)
        needed = ([name for name in sys.modules if name not in before], [*_built_models()]) if asked else None
        answer.write_bytes(pickle.dumps((value, needed)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _load(what: Load) -> str:
    """Import the module by its name; a test module may have none that works here, and is then loaded from its file.

    Gives what went wrong.
    """
    try:
        try:
            pickle.loads(what.pickled)
        except ModuleNotFoundError:
            spec = importlib.util.spec_from_file_location(what.module, what.file) if what.file else None
            if spec is None or spec.loader is None:
                raise
            for parent in accumulate(what.module.split(".")[:-1], "{}.{}".format):
                sys.modules.setdefault(parent, ModuleType(parent))
            sys.modules[what.module] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[what.module])
            pickle.loads(what.pickled)
    except Exception:
        return traceback.format_exc()
    _freeze()
    return ""


def _prepare() -> None:
    with tempfile.TemporaryDirectory() as folder:
        put_new(Path(folder) / "store.db")
    for table in TABLES:
        assert table.column


class _Needs:
    """What children say they needed, until two in a row needed nothing more."""

    def __init__(self) -> None:
        self._left = 2

    @property
    def are_wanted(self) -> bool:
        return self._left > 0

    def meet(self, modules: Iterable[str], models: Iterable[str]) -> None:
        """Import and build it here, of packages of which it is known that importing them does nothing else."""
        missing = [name for name in modules if name.partition(".")[0] in IMPORTED and name not in sys.modules]
        for name in missing:
            with contextlib.suppress(ImportError):  # made by the run, or taken away since: the next child will see
                importlib.import_module(name)
        unbuilt = set(models).difference(_built_models())
        for name, model in _models():
            if name in unbuilt:
                model.model_rebuild()
        if missing or unbuilt:
            _freeze()
        else:
            self._left -= 1


def _built_models() -> Iterator[str]:
    return (name for name, model in _models() if model.__pydantic_complete__)


def _models() -> Iterator[tuple[str, type[BaseModel]]]:
    """The models of wakeful that are known here, with their names. They are built when they are first used."""
    found = [BaseModel]
    while found:
        model = found.pop()
        found += model.__subclasses__()
        if model.__module__.partition(".")[0] == "wakeful":
            yield f"{model.__module__}:{model.__qualname__}", model


def _freeze() -> None:
    gc.collect()
    gc.freeze()
