"""Stores for what waits for somebody outside: the one for tests of hosts, and wakeful's own on each backend."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.hosts.actions.records import OwnPendingActionStore
from wakeful.service.client_tools.store import OwnRequestStore
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing.waiting_stores import MemoryPendingActionStore, MemoryRuntimeToolStore

Open = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens the same data again, as a process would after a restart."""


def _opener(name: str, folder: Path, plain: Callable[[], Any], own: Callable[[Any], Any]) -> Open:
    kept, memory = plain(), Memory()

    @asynccontextmanager
    async def in_memory() -> AsyncIterator[Any]:
        yield kept

    @asynccontextmanager
    async def on_memory() -> AsyncIterator[Any]:
        yield own(new_engine(MemoryStore(memory)))

    @asynccontextmanager
    async def on_sqlite() -> AsyncIterator[Any]:
        async with opened_store(str(folder / "store.db")) as store:
            yield own(new_engine(store))

    return {"plain": in_memory, "own-memory": on_memory, "own-sqlite": on_sqlite}[name]


BACKENDS = ("plain", "own-memory", "own-sqlite")


@pytest.fixture(params=BACKENDS)
def open_requests(request: Any, tmp_path: Path) -> Open:
    return _opener(request.param, tmp_path, MemoryRuntimeToolStore, OwnRequestStore)


@pytest.fixture(params=BACKENDS)
def open_actions(request: Any, tmp_path: Path) -> Open:
    return _opener(request.param, tmp_path, MemoryPendingActionStore, OwnPendingActionStore)
