"""Reads the files of a home again when they change, where `watchfiles` is installed; elsewhere when somebody asks.

Whoever asks writes a fact, which makes the runtime look, in whatever process it is. Without a runtime nothing is lost:
the next one reads the files when it starts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import StoreLocked, WakefulError
from wakeful.contracts.events import FilesReloadRequested
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.file_problems import FileProblem, ReloadReport
from wakeful.engine.run_request import Engine
from wakeful.ports.notices import RuntimeHolds
from wakeful.runtime.home_lock import runtime_lock
from wakeful.runtime.parked_providers import append_to_runtime

LOG = logging.getLogger(__name__)
OWNER_MS = 5_000
"""How often the owner's file is looked at, in milliseconds; it stands beside the database, which always changes. And
the folder itself: no watch tells that another one was put in its place."""
ANSWER_SECONDS = 30.0


def can_watch() -> bool:
    """Is there something that tells of changed files?"""
    return find_spec("watchfiles") is not None


async def watch_files(
    folder: Path,
    owner_changed: Callable[[], bool],
    reload: Callable[[], Awaitable[object]],
    *,
    every_ms: int = OWNER_MS,
) -> None:
    """Reload whenever a file in the folder, or the owner's file, was written, and when another folder takes the place
    of this one. Until it is cancelled.

    A watch tells nothing of what was written before it began: the files are read once more when it has begun.
    """
    from watchfiles import awatch

    async def look() -> None:
        try:
            await reload()
        except WakefulError as problem:  # the store cannot be written now; the next change tries again
            LOG.warning("the files of %s could not be reloaded: %s", folder, problem.message)

    seen = await asyncio.to_thread(_stamp, folder)
    while True:
        while not await asyncio.to_thread(folder.is_dir):
            await asyncio.sleep(every_ms / 1_000)
            if owner_changed():
                await look()
        is_first = True
        changes = awatch(
            folder, recursive=False, rust_timeout=every_ms, yield_on_timeout=True, watch_filter=_is_of_agents
        )
        try:
            watched = await asyncio.to_thread(_stamp, folder)
            async for found in changes:
                now = await asyncio.to_thread(_stamp, folder)
                if found or is_first or owner_changed() or now != seen:
                    seen, is_first = now, False
                    await look()
                if now is None or watched is None or now.inode != watched.inode:
                    break  # another folder stands there, or none
        except (OSError, RuntimeError) as problem:  # too many watches on this machine, say
            if await asyncio.to_thread(folder.is_dir):
                LOG.warning("%s cannot be watched (%s): run `wakeful reload` after a change", folder, problem)
                return
        finally:
            await changes.aclose()


class _Stamp(NamedTuple):
    """What changes when something is put in a folder or taken out of it, or another folder is put in its place."""

    inode: tuple[int, int]
    changed_at: int


def _stamp(folder: Path) -> _Stamp | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return _Stamp((found.st_dev, found.st_ino), found.st_mtime_ns)


async def request_reload(engine: Engine, *, by: str) -> ReloadReport:
    """Have the files read again by the runtime of this store, and wait for what it says of them."""
    store = engine.store
    before = await store.runtime_files()
    watch = store.watch(RUNTIME_STREAM)
    try:
        await append_to_runtime(engine, Fact(FilesReloadRequested(requested_by=by), engine.clock.now()))
        if not _has_runtime(store.location):
            return ReloadReport(loaded=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                while (row := await store.runtime_files()) == before:
                    await watch.wait()
                assert row is not None
                return ReloadReport(loaded=True, problems=await file_problems(store))
        return ReloadReport(loaded=False)
    finally:
        watch.close()


async def file_problems(store: RuntimeHolds) -> tuple[FileProblem, ...]:
    """What was wrong with the files when they were last read."""
    row = await store.runtime_files()
    return () if row is None else tuple(FileProblem(**each) for each in row.problems)


def _has_runtime(location: str) -> bool:
    try:
        with runtime_lock(location):
            return False
    except StoreLocked:
        return True


def _is_of_agents(_: Any, path: str) -> bool:
    """Homes of agents stand there, too; hidden files and backups of editors are none of ours."""
    name = Path(path).name
    return not name.startswith(".") and not name.endswith(("~", ".swp", ".tmp")) and not Path(path).is_dir()
