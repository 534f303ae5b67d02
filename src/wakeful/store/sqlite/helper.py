"""The helper thread: makes commits safe against a power cut, and keeps the write-ahead log short.

A barrier is one `fdatasync` of the log file, shared by all who wait for it. A checkpoint first copies pages while
appends go on, then starts the log anew while they queue: a passive checkpoint alone never does that under load.
"""

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, TypeAlias

import apsw

from wakeful.contracts.errors import StoreProblem
from wakeful.store.sqlite.connection import connect

Sync: TypeAlias = Callable[[int], None]
_Job: TypeAlias = "asyncio.Future[None] | Literal['checkpoint', 'stop']"


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
        self, path: Path, *, pause: Callable[[], None], resume: Callable[[], None], sync: Sync, vfs: str | None
    ) -> None:
        self._path = path
        self._pause = pause
        self._resume = resume
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._broken: OSError | None = None
        self._over: asyncio.Future[None] | None = None
        """Done when the thread is: waiting for it needs no other thread."""
        self._connection = connect(path, vfs)
        self._connection.pragma("user_version")  # the first read opens the write-ahead log
        self._log = os.open(f"{path}-wal", os.O_RDWR)
        self._thread = threading.Thread(target=self._run, name="wakeful-store", daemon=True)
        self._thread.start()

    def barrier(self) -> "asyncio.Future[None]":
        """Done when everything committed before this call is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put(future)
        return future

    def checkpoint(self) -> None:
        """Soon, and without waiting for it."""
        self._jobs.put("checkpoint")

    async def close(self) -> None:
        self._over = self._loop.create_future()
        self._jobs.put("stop")
        await self._over
        self._thread.join()  # it has nothing left to do

    def _run(self) -> None:
        while True:
            jobs = [self._jobs.get()]
            while not self._jobs.empty():
                jobs.append(self._jobs.get())
            waiting = [job for job in jobs if isinstance(job, asyncio.Future)]
            if waiting:
                self._on_loop(partial(_settle, waiting, self._make_safe()))
            if "stop" in jobs:
                break
            if "checkpoint" in jobs:
                self._checkpoint()
        os.close(self._log)
        try:
            self._connection.close()  # the last connection: SQLite copies the rest and removes the log
        except apsw.Error:
            pass  # then the next one to open does it
        if self._over is not None:
            self._on_loop(partial(_settle, [self._over], None))

    def _make_safe(self) -> Exception | None:
        try:
            if self._broken is None:
                self._sync(self._log)
                return None
        except OSError as error:
            # The kernel may have dropped the pages it could not write: a later success would mean nothing.
            self._broken = error
        return StoreProblem(
            f"{self._path} could not be made safe against a power cut: {self._broken}",
            "Check the disk, then open the store again; what was acknowledged before is safe.",
        )

    def _checkpoint(self) -> None:
        paused = threading.Event()

        def pause() -> None:
            self._pause()
            paused.set()

        try:
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


def _settle(waiting: "list[asyncio.Future[None]]", error: Exception | None) -> None:
    for future in waiting:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(None)
