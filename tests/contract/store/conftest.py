"""The backends the suite runs on. Another one joins by adding a factory to `BACKENDS`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol

import apsw
import pytest

from wakeful.ports import Store
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.streams import SHIFT


class Hands:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def changed(body: bytes) -> bytes:
    """The same but for one bit of what it says."""
    return bytes([*body[:-3], body[-3] ^ 1, *body[-2:]])


class Backend(Protocol):
    """One place where data is kept. Each store that is opened on it is an owner of its own, as a process would be."""

    hands: Hands

    async def open(self) -> Store: ...

    async def forge(self, agent_id: str, seq: int) -> None:
        """Change the stored bytes of an event behind the store's back."""
        ...

    async def forge_blob(self, digest: str) -> None: ...


class InMemory:
    def __init__(self, folder: Path) -> None:
        self.hands = Hands()
        self._memory = Memory()

    async def open(self) -> Store:
        return MemoryStore(self._memory, clock=self.hands)

    async def forge(self, agent_id: str, seq: int) -> None:
        agent = self._memory.agents[agent_id]
        place = agent.firsts.index(seq)
        header, body, digest = agent.log[place]
        agent.log[place] = (header, changed(body), digest)

    async def forge_blob(self, digest: str) -> None:
        self._memory.blobs[digest] = b"something else"


class InSqlite:
    def __init__(self, folder: Path) -> None:
        self.hands = Hands()
        self._path = folder / "runs.db"

    async def open(self) -> Store:
        return await SqliteStore.open(self._path, clock=self.hands)

    async def forge(self, agent_id: str, seq: int) -> None:
        sql = "UPDATE appends SET body = changed(body) WHERE id = ?"
        self._change(sql, lambda agent: (agent << SHIFT | seq,), agent_id)

    async def forge_blob(self, digest: str) -> None:
        name = digest.removeprefix("sha256:")
        self._change("UPDATE blobs SET data = CAST('something else' AS BLOB) WHERE digest = ?", lambda _: (name,))

    def _change(self, sql: str, values: Callable[[int], tuple[Any, ...]], agent_id: str = "") -> None:
        connection = apsw.Connection(str(self._path))
        connection.create_scalar_function("changed", changed, 1)
        connection.set_busy_timeout(1000)
        found = connection.execute("SELECT id FROM agents WHERE agent_id = ?", (agent_id,)).fetchall()
        connection.execute(sql, values(found[0][0] if found else 0))
        assert connection.changes() == 1
        connection.close()


BACKENDS: dict[str, Callable[[Path], Backend]] = {"memory": InMemory, "sqlite": InSqlite}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return BACKENDS[request.param](tmp_path)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    store = await backend.open()
    yield store
    await store.close()


@pytest.fixture
async def other(backend: Backend, store: Store) -> AsyncIterator[Store]:
    """A second owner on the same data."""
    store = await backend.open()
    yield store
    await store.close()
