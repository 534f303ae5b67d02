"""The helper thread: makes commits safe against a power cut, and keeps the write-ahead log short.

A barrier is one `fdatasync` of the log file, shared by all who wait for it; then what it made safe is noted in the
anchor. It also sees whether the files are still those that have the store's name: what goes to a deleted file is lost,
however well it is synced. A checkpoint first copies pages while appends go on, then starts the log anew while they
queue: a passive checkpoint alone never does that under load.
"""

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, TypeAlias

import apsw

from wakeful.contracts.errors import StoreProblem
from wakeful.store.sqlite.anchor import Anchor
from wakeful.store.sqlite.connection import connect

Sync: TypeAlias = Callable[[int], None]
Waiting: TypeAlias = "tuple[asyncio.Future[Any], Any]"
"""Who waits for a barrier, and the answer to give then."""
SPACE_RELEASED = "pages left"
"""In `meta`: how many pages the database had when space was last given back."""
_LOST_HINT = (
    "Put the files back, or restore the store from a backup, then run again. A program that opens the database with "
    "another SQLite library in the same process (Python's sqlite3) also has this effect: give it a copy."
)
_WAL_HEADER, _FRAME_HEADER = 32, 24
"""Bytes in front of all frames, and in front of each page."""


class _Barrier(NamedTuple):
    waiting: list[Waiting]
    marks: dict[int, tuple[int, bytes]]
    """What was committed since the barrier before: agents' numbers, with sequence and hash."""


_Job: TypeAlias = "_Barrier | Literal['checkpoint', 'stop']"


def sync_data(descriptor: int) -> None:
    """On disk, not only in the kernel. macOS needs its own call for that."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def sync_folder(folder: Path) -> None:
    """The names in a folder, on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Helper:
    """One thread, one connection. On the loop, `pause` is called before the log is started anew, and `resume` after
    every checkpoint, however it went."""

    def __init__(
        self,
        path: Path,
        anchor: Anchor,
        *,
        pause: Callable[[], None],
        resume: Callable[[], None],
        sync: Sync,
        vfs: str | None,
    ) -> None:
        self._path = path
        self._anchor = anchor
        self._pause = pause
        self._resume = resume
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._asked: _Barrier | None = None
        """What was asked for since the thread was woken last."""
        self._broken: tuple[str, str] | None = None
        """What is wrong with the files, and what to do: from then on nothing is made safe any more."""
        self._is_clean_end = False
        self._over: asyncio.Future[None] | None = None
        """Done when the thread is: waiting for it needs no other thread."""
        self._connection = connect(path, vfs)
        self._connection.pragma("user_version")  # the first read opens the write-ahead log
        self._log = os.open(f"{path}-wal", os.O_RDWR)
        self._page = int(self._connection.pragma("page_size"))
        self._files = {name: _found(name) for name in (path, path.with_name(f"{path.name}-wal"))}
        self._thread = threading.Thread(target=self._run, name="wakeful-store", daemon=True)
        self._thread.start()

    def barrier(self, marks: Mapping[int, tuple[int, bytes]], waiting: Sequence[Waiting]) -> None:
        """These are answered when everything committed before this call is on disk, and the anchor says so of
        `marks`."""
        if self._asked is None:
            # Callers whose facts were committed together ask one after the other: the thread is woken once for all.
            self._asked = _Barrier([], {})
            self._loop.call_soon(self._hand_over)
        self._asked.waiting.extend(waiting)
        for agent, mark in marks.items():
            self._asked.marks.pop(agent, None)  # the newest commit is noted last
            self._asked.marks[agent] = mark

    def _hand_over(self) -> None:
        if self._asked is not None:
            self._jobs.put(self._asked)
            self._asked = None

    def checkpoint(self) -> None:
        """Soon, and without waiting for it."""
        self._jobs.put("checkpoint")

    async def close(self, *, is_clean_end: bool) -> None:
        """`is_clean_end`: nobody else uses the store."""
        self._is_clean_end = is_clean_end
        self._over = self._loop.create_future()
        self._hand_over()
        self._jobs.put("stop")
        await self._over
        self._thread.join()  # it has nothing left to do

    def _run(self) -> None:
        while True:
            jobs = [self._jobs.get()]
            while not self._jobs.empty():
                jobs.append(self._jobs.get())
            barriers = [job for job in jobs if isinstance(job, _Barrier)]
            if barriers:
                problem = self._make_safe()
                if problem is None:
                    self._note(barriers)
                self._on_loop(partial(_settle, [each for barrier in barriers for each in barrier.waiting], problem))
            if "stop" in jobs:
                break
            if "checkpoint" in jobs:
                self._checkpoint()
        os.close(self._log)
        self._anchor.close(clean=self._is_clean_end and self._broken is None)
        if self._broken is not None:  # nothing of a log that has holes, or belongs to another file, is copied
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            self._connection.close()  # the last connection: SQLite copies the rest and removes the log
        except apsw.Error:
            pass  # then the next one to open does it
        if self._over is not None:
            self._on_loop(partial(_settle, [(self._over, None)], None))

    def _make_safe(self) -> Exception | None:
        try:
            if self._broken is None:
                self._sync(self._log)
                self._broken = self._changed_place()
        except OSError as error:
            # The kernel may have dropped the pages it could not write: a later success would mean nothing.
            self._broken = (
                f"{self._path} could not be made safe against a power cut: {error}",
                "Check the disk, then open the store again; what was acknowledged before is safe.",
            )
        return None if self._broken is None else StoreProblem(*self._broken)

    def _changed_place(self) -> tuple[str, str] | None:
        """What became of the files' names, if they do not lead to the files any more."""
        for name, before in self._files.items():
            now = _found(name)
            if now is None:
                became = "deleted"
            elif before is None or now.place != before.place:
                became = "replaced"
            elif self._is_cut_off(name, before.size, now.size):
                became = "cut off"
            else:
                self._files[name] = now
                continue
            return f"{name} was {became} while it was in use: what this process writes goes to no store", _LOST_HINT
        return None

    def _is_cut_off(self, name: Path, before: int, now: int) -> bool:
        if name != self._path:
            return now < before or self._has_hole(before, now)
        return now < before and not self._gave_space_back(now)

    def _gave_space_back(self, size: int) -> bool:
        """Did retention make the database as short as this? Every step of it says how many pages it left."""
        try:
            pages = self._connection.execute("SELECT value FROM meta WHERE key = ?", (SPACE_RELEASED,)).get
        except apsw.Error:
            return False
        return pages is not None and size >= int(pages) * self._page

    def _has_hole(self, before: int, now: int) -> bool:
        """Is a frame missing between the log's last end and this one? After a cut, writing goes on at the old end."""
        step = _FRAME_HEADER + self._page
        last = _WAL_HEADER + max(0, (before - _WAL_HEADER) // step - 1) * step
        return any(not any(os.pread(self._log, _FRAME_HEADER, at)) for at in range(last, now - step + 1, step))

    def _note(self, barriers: "list[_Barrier]") -> None:
        marks: dict[int, tuple[int, bytes]] = {}
        for barrier in barriers:
            for agent, mark in barrier.marks.items():
                marks.pop(agent, None)  # the newest commit is noted last
                marks[agent] = mark
        if marks:
            self._anchor.write(marks)

    def _checkpoint(self) -> None:
        paused = threading.Event()

        def pause() -> None:
            self._pause()
            paused.set()

        try:
            if self._broken is not None:
                return
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._on_loop(pause)
            if paused.wait(1.0):
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except apsw.Error:
            pass  # a reader elsewhere, or no room: the log grows until the next one, and nothing is lost
        finally:
            self._on_loop(self._resume)

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more


class _Found(NamedTuple):
    """Which file has a name. The log never becomes shorter while it is in use, and the database only where retention
    gave space back and said so."""

    place: tuple[int, int]
    size: int


def _found(path: Path) -> _Found | None:
    # By name, and never opened: closing any handle of the database would drop SQLite's locks on it.
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _Found((found.st_dev, found.st_ino), found.st_size)


def _settle(waiting: list[Waiting], error: Exception | None) -> None:
    for future, answer in waiting:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)
