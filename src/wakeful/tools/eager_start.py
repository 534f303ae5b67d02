"""Coroutines that begin at once: what never waits is over without a task of its own, and without a tick of the loop.

Whoever starts one runs it up to its first wait. It runs as the task that goes on with it if it does wait: timeouts and
cancel scopes that it opens see one task from beginning to end, and one context of its own.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class EagerStarts:
    """Starts coroutines, one at a time. A task stands by for the one that has to wait."""

    __slots__ = ("_loop", "_spare")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._spare: _Rest | None = _Rest(self._loop)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """The coroutine's result: done already if it did not wait, else the task that goes on with it."""
        spare = self._spare
        if spare is None or not spare.is_ready:
            return self._loop.create_task(coroutine)
        self._spare = None  # whoever is started inside takes another way
        loop, task, context = self._loop, spare.task, copy_context()
        outer = asyncio.current_task(loop)
        if outer is not None:
            asyncio._leave_task(loop, outer)
        asyncio._enter_task(loop, task)
        try:
            waits_for = context.run(coroutine.send, None)
        except StopIteration as returned:
            done: asyncio.Future[T] = loop.create_future()
            done.set_result(returned.value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError:
            done = loop.create_future()
            done.cancel()
        except BaseException as raised:
            done = loop.create_future()
            done.set_exception(raised)
        else:
            spare.go_on(coroutine, context, waits_for)
            self._spare = _Rest(loop)
            return task
        finally:
            asyncio._leave_task(loop, task)
            if outer is not None:
                asyncio._enter_task(loop, outer)
            if self._spare is None:
                self._spare = spare
        return done

    def close(self) -> None:
        """Nothing more is started. What waits goes on."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.leave()


class _Rest:
    """The rest of a coroutine that was begun elsewhere; until there is one, it stands by."""

    __slots__ = ("_context", "_coroutine", "_standing_by", "_waits_for", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._standing_by: asyncio.Future[None] | None = None
        self._coroutine: Coroutine[Any, Any, Any] | None = None
        self._context: Context | None = None
        self._waits_for: Any = None
        self.task: asyncio.Task[Any] = loop.create_task(self._run())

    @property
    def is_ready(self) -> bool:
        """A task that has not begun could not be cancelled without losing what it is to go on with."""
        return self._standing_by is not None and not self._standing_by.done() and not self.task.cancelling()

    def go_on(self, coroutine: Coroutine[Any, Any, Any], context: Context, waits_for: Any) -> None:
        assert self._standing_by is not None
        self._coroutine, self._context, self._waits_for = coroutine, context, waits_for
        self._standing_by.set_result(None)

    def leave(self) -> None:
        """There will be nothing to go on with."""
        if self._standing_by is None:
            self.task.cancel()
        elif not self._standing_by.done():
            self._standing_by.set_result(None)

    async def _run(self) -> Any:
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        self._standing_by = asyncio.get_running_loop().create_future()
        cancelled: asyncio.CancelledError | None = None
        try:
            yield from self._standing_by
        except asyncio.CancelledError as told:
            if self._coroutine is None:
                raise
            cancelled = told  # after its first wait and before we came to run
        if self._coroutine is None:
            return None
        assert self._context is not None
        send, throw, run = self._coroutine.send, self._coroutine.throw, self._context.run
        waits_for, self._waits_for = self._waits_for, None
        try:
            if cancelled is not None:
                waits_for = run(throw, cancelled)
            while True:
                try:
                    answer = yield waits_for
                except BaseException as raised:
                    waits_for = run(throw, raised)
                else:
                    waits_for = run(send, answer)
        except StopIteration as returned:
            return returned.value
