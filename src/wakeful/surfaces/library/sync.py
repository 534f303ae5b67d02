"""Waiting for async work from code that is not async.

One event loop in a daemon thread serves every `run_sync` of the process: it works the same inside a running loop
(notebooks), and a tool that answers late still has a loop to answer to.
"""

import asyncio
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from wakeful.contracts.errors import InvalidRequest

T = TypeVar("T")
STOP_SECONDS = 5.0
"""How long an interrupted run may take to put itself down."""


class _LoopThread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, name="wakeful-run-sync", daemon=True).start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                # Raised by code of the caller's, such as a hook: signals go to the main thread. It is passed on by the
                # task it ended; the loop goes on, because others wait for it, and nobody would end their waiting.
                continue
            break


_thread: _LoopThread | None = None
_lock = threading.Lock()


def _forget() -> None:
    """A forked child has no such thread."""
    global _thread, _lock
    _thread, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. An interrupt (Ctrl-C) stops it like a crash: it can be taken up again."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = _LoopThread()
    loop = _thread.loop
    done: concurrent.futures.Future[T] = concurrent.futures.Future()
    context = contextvars.copy_context()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        task = loop.create_task(work, context=context)
        tasks.append(task)
        task.add_done_callback(lambda finished: _pass_on(finished, done))

    loop.call_soon_threadsafe(begin)
    try:
        return done.result()
    except BaseException:
        if not done.done() and tasks:
            loop.call_soon_threadsafe(tasks[0].cancel)
            concurrent.futures.wait([done], timeout=STOP_SECONDS)
        raise


def wait_outside_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. Raises InvalidRequest on a running event loop, which waiting would block."""
    if asyncio._get_running_loop() is not None:
        name = getattr(work, "__name__", "this")
        work.close()
        raise _inside_loop(name)
    return wait_for(work)


def each_outside_loop(items: AsyncGenerator[T] | AsyncIterator[T]) -> Iterator[T]:
    """The items one after the other, each waited for. Raises InvalidRequest on a running event loop."""
    if asyncio._get_running_loop() is not None:
        raise _inside_loop(getattr(items, "__name__", "this"))
    return _each(items)


def _each(items: AsyncGenerator[T] | AsyncIterator[T]) -> Iterator[T]:
    try:
        while True:
            try:
                yield wait_for(_next(items))
            except StopAsyncIteration:
                return
    finally:
        if isinstance(items, AsyncGenerator):
            wait_for(_closed(items))


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _closed(items: AsyncGenerator[T]) -> None:
    await items.aclose()


def _inside_loop(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"store.{name.strip('_')}() would block the running event loop",
        "write `async with open_store(...) as store`, then `await store...` (or `async for` over its events)",
    )


def _pass_on(task: "asyncio.Task[T]", done: "concurrent.futures.Future[T]") -> None:
    if task.cancelled():
        done.cancel()
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())
