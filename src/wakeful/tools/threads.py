"""Threads for sync tools: reused while they idle, never too few, never in the way of the interpreter's exit.

The standard pools join their threads at exit, so that one hung tool would hold up the whole program; these are daemons.
There is no upper limit: a tool that waits for another tool of the same pool must not wait for a free thread. How many
calls run at a time is the gate's business.
"""

import asyncio
import contextvars
import functools
import inspect
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any

IDLE_SECONDS = 30.0
"""A thread that had nothing to do for this long goes away."""

_lock = threading.Lock()
_idle: list["_Worker"] = []


class ToolExited(RuntimeError):
    """A tool tried to end the process or its task; that ends the call and nothing else."""


class _Worker:
    __slots__ = ("_jobs",)

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._work, name="wakeful-tool", daemon=True).start()

    def give(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                with _lock:
                    if self in _idle:
                        _idle.remove(self)
                        return
                continue  # somebody took this thread off the list in the same moment: the job is on its way
            job()
            del job  # an idle thread must not keep the last call's objects alive
            with _lock:
                _idle.append(self)


def _forget_threads() -> None:
    """A fork has none of its parent's threads."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget_threads)


def run_in_thread(call: Callable[[], Any]) -> "asyncio.Future[Any]":
    """Run `call` off the loop. The future gets its result whenever it comes, however long nobody has waited for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def job() -> None:
        try:
            outcome, failed = context.run(call), False
        except (SystemExit, KeyboardInterrupt, StopIteration, asyncio.CancelledError) as error:
            # Handed to a future these would end the loop, be refused by it, or look like a cancel of ours.
            outcome, failed = _contained(error), True
        except BaseException as error:
            outcome, failed = error, True
        try:
            loop.call_soon_threadsafe(_deliver, future, outcome, failed)
        except RuntimeError:  # the loop is closed: the process goes on without anybody who could be told
            pass

    with _lock:
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).give(job)
    return future


def contained_exit(error: SystemExit | KeyboardInterrupt) -> BaseException:
    """What to raise on the loop instead: as it is, it would end the loop and every other turn with it.

    An interrupt that a person's key may have raised stays what it is.
    """
    return error if isinstance(error, KeyboardInterrupt) and _may_be_a_signal() else _contained(error)


def _may_be_a_signal() -> bool:
    """Only the main thread gets signals, and only Python's own handler makes exceptions of them; asyncio's cancels."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def _awaited(work: "Coroutine[Any, Any, Any]") -> Any:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise contained_exit(error) from None


def _contained(error: BaseException) -> ToolExited:
    contained = ToolExited(f"the tool raised {type(error).__name__}: {error}".rstrip(": "))
    contained.__cause__ = error
    return contained


def _deliver(future: "asyncio.Future[Any]", outcome: Any, failed: bool) -> None:
    if future.done():
        return
    if not failed and inspect.iscoroutine(outcome):  # a plain function that only passes a coroutine on
        asyncio.ensure_future(_awaited(outcome)).add_done_callback(functools.partial(_pass_on, future))
    elif failed:
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _pass_on(future: "asyncio.Future[Any]", task: "asyncio.Future[Any]") -> None:
    if task.cancelled():
        future.cancel()
    elif error := task.exception():
        _deliver(future, error, failed=True)
    else:
        _deliver(future, task.result(), failed=False)
