"""Processes to be killed. A nursery imports the scenario once and then forks a child for each run: a fresh process in
a few milliseconds, with nothing of pytest, no threads and no open database in it.

A new nursery takes a second: one is kept for whatever comes next.
"""

import contextlib
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType, TracebackType
from typing import Any

from wakeful.testing.crash_nurse import ChildJob, Load, ProcessEnd, nurse

HANDS = 2
"""Children that a nursery looks after at a time."""


class Nursery:
    """A process that forks children. Everything handed to it must be importable there."""

    def __init__(self, first: Callable[..., object]) -> None:
        """`first` is loaded in the new process before anything is forked, and with it its module."""
        load = _loading(first)
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(HANDS)]
        self._process = context.Process(target=nurse, args=([theirs for _, theirs in pipes],), daemon=True)
        self._process.start()
        self._pipes: list[Connection] = []
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for ours, theirs in pipes:
            theirs.close()
            self._pipes.append(ours)
            self._free.put(ours)
        try:
            self._load(load)
        except TypeError:
            self.close()
            raise

    def load(self, function: Callable[..., object]) -> None:
        """Have one more function there."""
        self._load(_loading(function))

    def run(self, function: Callable[..., object], *arguments: object, output: Path, seconds: float) -> ProcessEnd:
        """Call a function in a child of its own, with the environment of now, and wait for its end."""
        ending = self._ask(ChildJob(function, arguments, output, seconds, dict(os.environ), Path.cwd()))
        assert isinstance(ending, ProcessEnd)
        return ending

    def _load(self, load: Load) -> None:
        problem = self._ask(load)
        if problem:
            raise TypeError(f"the scenario cannot be loaded in a new process:\n{problem}")

    def _ask(self, what: Load | ChildJob) -> Any:
        pipe = self._free.get()
        try:
            pipe.send(what)
            return pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()
            raise RuntimeError(
                f"the process that runs the scenario ended by itself ({self._process.exitcode})"
            ) from None
        finally:
            self._free.put(pipe)

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


@contextlib.contextmanager
def nursery_for(function: Callable[..., object]) -> Iterator[Nursery]:
    """The nursery that is kept, or a new one, which is kept then.

    One that ended is not used again, nor one that has loaded another module under the name of the function's.
    """
    global _kept
    kept, _kept = _kept, None
    name = _home(function)[0]
    module = sys.modules.get(name)
    if kept is not None and not (kept.nursery.is_alive() and kept.modules.get(name, module) is module):
        kept.nursery.close()
        kept = None
    try:
        if kept is None:
            kept = _Kept(Nursery(function), {})
        else:
            kept.nursery.load(function)
    except TypeError:
        if kept is not None:
            kept.nursery.close()
        raise
    kept.modules[name] = module
    try:
        yield kept.nursery
    finally:
        _keep(kept)


def _keep(kept: "_Kept") -> None:
    global _kept
    if _kept is not None:  # somebody else's, who came meanwhile
        _kept.nursery.close()
    _kept = kept


@dataclass(frozen=True)
class _Kept:
    nursery: Nursery
    modules: dict[str, ModuleType | None]
    """What it has loaded, by name, as it is known here."""


_kept: _Kept | None = None


def _loading(function: Callable[..., object]) -> Load:
    try:
        return Load(pickle.dumps(function), *_home(function))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"{getattr(function, '__qualname__', function)} cannot be handed to another process: {error}. "
            f"Define it at the top of a module, not inside a function."
        ) from None


def _home(function: Callable[..., object]) -> tuple[str, str | None]:
    """The module a function is defined in, and that module's file."""
    while isinstance(function, partial):
        function = function.func
    return function.__module__, getattr(sys.modules.get(function.__module__), "__file__", None)
