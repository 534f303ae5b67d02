"""Group commit: what one tick of the loop wants to write shares a transaction.

Each piece of work checks before it writes, so that one which is refused leaves nothing behind and the others go on.
A lock held elsewhere is waited for by trying again later, never by blocking the loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import apsw

from wakeful.contracts.errors import StoreProblem, WakefulError
from wakeful.store.sqlite.connection import UNREADABLE, locked, not_text, translated
from wakeful.store.sqlite.helper import Waiting
from wakeful.store.watches import Wake

GROUP = 32
"""At most so many pieces a transaction: all who wait for it go on in one tick, so the longest stall follows from it."""
IN_A_ROW = 16
"""At most so many lone commits until the loop gets its turn: a tick would starve who else is there."""
PATIENCE = 10.0
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)

T = TypeVar("T")
P = TypeVar("P")
Joint: TypeAlias = Callable[[Sequence[P]], Sequence[T | WakefulError]]
"""Does several pieces of one kind at once: the result of each, or why it is refused."""


class _Work:
    __slots__ = ("agent_id", "error", "future", "joint", "piece", "result", "run", "safe", "wake")

    def __init__(
        self,
        run: Callable[[], Any] | None,
        future: "asyncio.Future[Any]",
        agent_id: str,
        wake: Wake | None,
        safe: bool,
        joint: Joint[Any, Any] | None = None,
        piece: Any = None,
    ) -> None:
        self.run = run
        self.joint = joint
        self.piece = piece
        self.future = future
        self.agent_id = agent_id
        self.wake = wake
        self.safe = safe
        self.result: Any = None
        self.error: Exception | None = None


class Writer:
    """The one writing connection, on the loop's thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        began: Callable[[], None],
        committed: Callable[[Sequence[Wake], list[Waiting]], None],
        rolled_back: Callable[[], None],
        patience: float = PATIENCE,
    ) -> None:
        self.commits = 0
        self._cursor = connection.cursor()
        self._path = path
        self._began = began
        self._committed = committed
        self._rolled_back = rolled_back
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Work] = deque()
        self._scheduled = False
        self._paused = False
        self.unusable: Callable[[], StoreProblem] | None = None
        self._in_a_row = 0
        self._tries = 0
        self._waiting_since = 0.0

    def submit(
        self, run: Callable[[], T], agent_id: str = "", wake: Wake | None = None, *, safe: bool = False
    ) -> "asyncio.Future[T]":
        """Run this inside the next transaction; done when that is committed, or `safe` from a power cut. `wake`: whom
        to wake once it is committed."""
        self._check_open()
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(_Work(run, future, agent_id, wake, safe))
        self._schedule()
        return future

    def submit_jointly(
        self, joint: Joint[P, T], piece: P, agent_id: str = "", wake: Wake | None = None
    ) -> "asyncio.Future[T]":
        """The same for a piece that is done together with its neighbours of the same kind; done when it is safe. A
        `joint` that raises anything but a refusal is asked again for each piece by itself."""
        self._check_open()
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(_Work(None, future, agent_id, wake, True, joint, piece))
        self._schedule()
        return future

    def alone(self, run: Callable[[], T], agent_id: str = "", wake: Wake | None = None) -> T | None:
        """Run this in a transaction of its own, now: for a piece that nobody could share it with. No future, no tick.

        None when it has to be submitted like any other: work is queued, the log is being started anew, the database
        is locked elsewhere, or it is time for the loop's other work. Raises what the piece or the disk raises.
        """
        self._check_open()
        if self._in_a_row >= IN_A_ROW or self._queue or self._scheduled or self._paused:
            return None
        self._in_a_row += 1
        execute = self._cursor.execute
        try:
            execute("BEGIN IMMEDIATE")
            try:
                self._began()
                result = run()
                execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        except apsw.BusyError:
            return None
        except UNREADABLE as error:
            raise translated(error, self._path, agent_id) from error
        except UnicodeEncodeError as error:
            raise not_text(error) from None
        self.commits += 1
        self._committed((wake,) if wake is not None else (), [])
        return result

    def _check_open(self) -> None:
        if self.unusable is not None:
            raise self.unusable()

    def pause(self) -> None:
        """Let work queue up; there is no transaction open when this returns."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    async def close(self) -> None:
        """Write what is queued, then take no more."""
        self.unusable = lambda: StoreProblem(f"the store {self._path} was closed", "Open it again.")
        while self._queue:
            await asyncio.wait([self._queue[-1].future])
            await asyncio.sleep(0)

    def _schedule(self) -> None:
        if not self._scheduled and not self._paused and self._queue:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        self._in_a_row = 0
        if self._paused:
            return
        group: list[_Work] = []
        while self._queue and len(group) < GROUP:
            work = self._queue.popleft()
            if not work.future.cancelled():
                group.append(work)
        if group and not self._commit(group):
            self._queue.extendleft(reversed(group))
            self._again()
            return
        self._tries = 0
        self._schedule()

    def _again(self) -> None:
        """The database is locked elsewhere: later, or not at all."""
        now = self._loop.time()
        if self._tries == 0:
            self._waiting_since = now
        if now - self._waiting_since > self._patience:
            self._tries = 0
            for work in self._queue:
                _settle(work, locked(self._path))
            self._queue.clear()
            return
        pause = _PAUSES[min(self._tries, len(_PAUSES) - 1)]
        self._tries += 1
        self._scheduled = True
        self._loop.call_later(pause, self._flush)

    def _commit(self, group: list[_Work]) -> bool:
        """False when the database is locked and nothing was done."""
        cursor = self._cursor
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            self._fail(group, error)
            return True
        try:
            self._began()
            for joint, works in groupby(group, _JOINT):
                if joint is None:
                    _do_each(works)
                else:
                    _do_together(joint, [*works])
            cursor.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            if isinstance(error, apsw.BusyError):
                return False
            if len(group) > 1:  # one agent's trouble is not the others'
                for work in group:
                    if not self._commit([work]):
                        self._queue.append(work)
                self._schedule()
            else:
                self._fail(group, error)
            return True
        self.commits += 1
        waiting: list[Waiting] = []
        for work in group:
            if work.safe and work.error is None:
                waiting.append((work.future, work.result))
            else:
                _settle(work, work.error)
        self._committed([work.wake for work in group if work.wake is not None and work.error is None], waiting)
        return True

    def _roll_back(self) -> None:
        self._rolled_back()
        try:
            self._cursor.execute("ROLLBACK")
        except apsw.Error:
            pass  # a full disk may have rolled it back already

    def _fail(self, group: list[_Work], error: Exception) -> None:
        for work in group:
            if isinstance(error, UNREADABLE):
                error = translated(error, self._path, work.agent_id)
            elif isinstance(error, UnicodeEncodeError):
                error = not_text(error)
            _settle(work, error)


_JOINT = attrgetter("joint")


def _do_each(works: Iterable[_Work]) -> None:
    for work in works:
        assert work.run is not None
        try:
            work.result, work.error = work.run(), None
        except WakefulError as refusal:
            work.error = refusal


def _do_together(joint: Joint[Any, Any], works: Sequence[_Work]) -> None:
    for work, done in zip(works, joint([work.piece for work in works]), strict=True):
        work.result, work.error = (None, done) if isinstance(done, WakefulError) else (done, None)


def _settle(work: _Work, error: Exception | None) -> None:
    if work.future.done():
        return
    if error is not None:
        work.future.set_exception(error)
    else:
        work.future.set_result(work.result)
