"""Stores by their path: opened once for each event loop and shared; the last user closes them."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from wakeful import programs
from wakeful.contracts.errors import StoreLocked, StoreReadOnly
from wakeful.ports import Store
from wakeful.settings.home import home_secret
from wakeful.settings.home_state import check_usable


@dataclass(slots=True)
class _Shared:
    store: Store
    users: int


_open_stores: dict[tuple[int, str], _Shared] = {}
_opening: dict[tuple[int, str], asyncio.Lock] = {}
_lingering: set[asyncio.Task[None]] = set()


@asynccontextmanager
async def opened_store(store: "Store | str | PathLike[str] | None", *, reading: bool = False) -> AsyncIterator[Store]:
    """A store by its path, a store as it is, or one in memory. Closed when its last user is done with it.

    With `reading`, one that cannot be written (a read-only file system, no permission) is read all the same.
    """
    if store is None or store == ":memory:":  # as SQLite spells it, and not a file of that name
        from wakeful.store.memory import MemoryStore

        memory = MemoryStore()
        try:
            yield memory
        finally:
            await memory.close()
        return
    if not isinstance(store, str | PathLike):
        await _distrust_workspaces(store)
        yield store
        return
    shared = await _share(fspath(store), may_fail=reading)
    if shared is None:
        async with read_only_store(fspath(store)) as read:
            yield read
        return
    try:
        yield shared.store
    finally:
        await _give_back(fspath(store), shared)


@asynccontextmanager
async def read_only_store(location: str) -> AsyncIterator[Store]:
    from wakeful.store.sqlite import SqliteReader

    store = await SqliteReader.open(location, key=home_secret())
    try:
        await _distrust_workspaces(store)
        yield store
    finally:
        await store.close()


async def _share(location: str, *, may_fail: bool) -> _Shared | None:
    """The store, opened for writing. None where nothing can be written and that `may_fail`."""
    from wakeful.store.sqlite import SqliteStore

    place = _place(location)
    async with _opening.setdefault(place, asyncio.Lock()):
        shared = _open_stores.get(place)
        if shared is None:
            try:
                check_usable(Path(place[1]).parent)
                opened = await SqliteStore.open(location, key=home_secret())
            except StoreReadOnly:
                if may_fail:
                    return None
                raise
            try:
                await _distrust_workspaces(opened)
            except BaseException:
                await opened.close()
                raise
            shared = _open_stores[place] = _Shared(opened, 0)
        shared.users += 1
        return shared


async def _distrust_workspaces(store: Store) -> None:
    """From now on no program is taken from where agents of this store work, whether or not they run here."""
    programs.add_write_roots(row.workspace_anchor for row in await store.all_attached_workspaces())


async def _give_back(location: str, shared: _Shared) -> None:
    place = _place(location)
    async with _opening.setdefault(place, asyncio.Lock()):
        shared.users -= 1
        if shared.users == 0:
            _open_stores.pop(place, None)
            await shared.store.close()
    if place not in _open_stores:
        _opening.pop(place, None)


def linger(store: Store, work: Coroutine[Any, Any, None]) -> None:
    """Let work outlive the run that began it: a store of ours stays open until it is done."""

    shared = next((shared for shared in _open_stores.values() if shared.store is store), None)
    if shared is not None:
        shared.users += 1  # before the run gives its own back

    async def hold() -> None:
        try:
            await work
        finally:
            if shared is not None:
                await _give_back(store.location, shared)

    task = asyncio.get_running_loop().create_task(hold())
    _lingering.add(task)
    task.add_done_callback(_lingering.discard)


def _place(location: str) -> tuple[int, str]:
    return id(asyncio.get_running_loop()), str(Path(location).absolute())


def check_not_lost(location: str | Path) -> None:
    """Raises StoreRewound where there is no store, or an empty one, and its anchor says that there was more."""
    from wakeful.store.sqlite.anchor import read_anchor
    from wakeful.store.sqlite.anchor_checks import refuse_missing

    path = Path(location).absolute()
    refuse_missing(path, read_anchor(path))


def forget_store_end(location: str | Path) -> int:
    """Forget what the anchor of a store says; of how many agents it had records. Raises StoreLocked while in use."""
    from wakeful.store.sqlite.anchor import forget_anchor
    from wakeful.store.sqlite.owners import LivingOwners

    path = Path(location).absolute()
    holder = LivingOwners(path).anybody()
    if holder is not None:
        raise StoreLocked(f"{location} is in use by {holder}", "Wait until that process has ended, or stop it.")
    return forget_anchor(path)
