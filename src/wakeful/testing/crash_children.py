"""Processes to be killed. A nursery imports the scenario once and then forks a child for each run: a fresh process in
a few milliseconds, with nothing of pytest, no threads and no open database in it.
"""

import importlib.util
import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal

Job = tuple[Callable[..., object], tuple[object, ...], Path, float]
"""What to call, with what, where its output goes, and how many seconds it has."""


@dataclass(frozen=True)
class ProcessEnd:
    """How a child ended."""

    how: Literal["done", "killed", "raised", "hung"]
    value: Any = None
    """What the function returned, when it is done."""
    words: str = ""
    """What it wrote and raised, when it is not."""


class Nursery:
    """A process that forks children. Everything handed to it must be importable there."""

    def __init__(self, first: Callable[..., object]) -> None:
        """`first` is loaded in the new process before anything is forked, and with it its module."""
        try:
            payload = (pickle.dumps(first), *_home(first))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"{getattr(first, '__qualname__', first)} cannot be handed to another process: {error}. "
                f"Define it at the top of a module, not inside a function."
            ) from None
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_nurse, args=(theirs, payload), daemon=True)
        self._process.start()
        theirs.close()
        problem = self._receive()
        if problem:
            self.close()
            raise TypeError(f"the scenario cannot be loaded in a new process:\n{problem}")

    def run(self, function: Callable[..., object], *arguments: object, output: Path, seconds: float) -> ProcessEnd:
        """Call a function in a child of its own and wait for its end."""
        self._pipe.send((function, arguments, output, seconds))
        ending = self._receive()
        assert isinstance(ending, ProcessEnd)
        return ending

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(
                f"the process that runs the scenario ended by itself ({self._process.exitcode})"
            ) from None

    def close(self) -> None:
        self._pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _nurse(pipe: Connection, first: tuple[bytes, str, str | None]) -> None:
    try:
        _load(*first)
    except Exception:
        pipe.send(traceback.format_exc())
        return
    pipe.send("")
    while True:
        try:
            job: Job = pipe.recv()
        except EOFError:
            return
        pipe.send(_raise_a_child(pipe, job))


def _home(function: Callable[..., object]) -> tuple[str, str | None]:
    """The module a function is defined in, and that module's file."""
    while isinstance(function, partial):
        function = function.func
    return function.__module__, getattr(sys.modules.get(function.__module__), "__file__", None)


def _load(pickled: bytes, module: str, file: str | None) -> None:
    """Import the module by its name; a test module may have none that works here, and is then loaded from its file."""
    try:
        pickle.loads(pickled)
    except ModuleNotFoundError:
        spec = importlib.util.spec_from_file_location(module, file) if file else None
        if spec is None or spec.loader is None:
            raise
        for parent in accumulate(module.split(".")[:-1], "{}.{}".format):
            sys.modules.setdefault(parent, ModuleType(parent))
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
        pickle.loads(pickled)


def _raise_a_child(pipe: Connection, job: Job) -> ProcessEnd:
    function, arguments, output, seconds = job
    answer = output.with_suffix(".answer")
    child = os.fork()
    if child == 0:
        pipe.close()
        _live(function, arguments, output, answer)
    status = _wait(child, seconds)
    if status is None:
        return ProcessEnd("hung", words=f"still running after {seconds:g} seconds\n{_tail(output)}")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return ProcessEnd("killed", words=_tail(output))
    if status != 0:
        return ProcessEnd("raised", words=_tail(output) or f"exit status {os.waitstatus_to_exitcode(status)}")
    return ProcessEnd("done", value=pickle.loads(answer.read_bytes()))


def _live(function: Callable[..., object], arguments: tuple[object, ...], output: Path, answer: Path) -> None:
    """The child's whole life. It never returns into the nursery's code."""
    status = 1
    try:
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(written, 1)
        os.dup2(written, 2)
        answer.write_bytes(pickle.dumps(function(*arguments)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int, seconds: float) -> int | None:
    """The child's status, or None after it had to be ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _tail(output: Path) -> str:
    return output.read_text("utf-8", errors="replace")[-2000:].strip() if output.exists() else ""
