"""An agent's memory as it is searched: its index, brought up to date from the records before every look.

An index that cannot be used stops nobody: it is made again, and the answer says so.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import apsw

from wakeful.contracts.memory import MemoryEntry
from wakeful.engine.memory_sources import SourceStep, fits, ref_of, steps_after
from wakeful.ports import Store
from wakeful.retrieval.memory_index import FoundEntry, MemoryIndex, OpenedIndex, Reach, discard_index, open_index

SUFFIX = ".memory"
"""The folder of indexes, beside the store: an agent's home may be its workspace, and no agent writes its own index."""
IN_MEMORY = ":memory:"
T = TypeVar("T")


class MemoryAnswer(NamedTuple):
    """What was found, and what was wrong with the index."""

    found: list[FoundEntry]
    problem: str = ""


@dataclass(slots=True)
class _Kept:
    """The indexes of a store that is in memory: they go with it."""

    indexes: dict[str, MemoryIndex] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)


_kept: "WeakKeyDictionary[Store, _Kept]" = WeakKeyDictionary()


def index_place(store: Store, agent_id: str) -> Path | None:
    """The file of an agent's index; None for a store in memory."""
    if store.location == IN_MEMORY:
        return None
    name = hashlib.sha256(agent_id.encode()).hexdigest()[:32]
    return _folder(store) / f"{name}.sqlite3"


def _folder(store: Store) -> Path:
    return Path(f"{Path(store.location).absolute()}{SUFFIX}")


async def drop_index(store: Store, agent_id: str) -> None:
    """Take an agent's index away, with all its words. A search makes it again, of what is on record then."""
    place = index_place(store, agent_id)
    if place is not None:
        await asyncio.to_thread(discard_index, place)
    elif (kept := _kept.get(store)) is not None and (index := kept.indexes.pop(agent_id, None)) is not None:
        index.close()


async def drop_deleted(store: Store) -> None:
    """The same for agents that were deleted: a kill may have come between."""
    if store.location == IN_MEMORY:
        return
    there = await asyncio.to_thread(lambda: {path.name for path in _folder(store).glob("*.sqlite3*")})
    for agent_id in await store.deleted_agents() if there else ():
        await drop_index(store, agent_id)


class AgentMemory:
    """The memory of one agent. `agent_home` is where its memory files are."""

    def __init__(self, store: Store, agent_id: str, agent_home: Path) -> None:
        self._store = store
        self._agent_id = agent_id
        self._home = agent_home
        self._place = index_place(store, agent_id)

    async def search(self, question: str, reach: Reach, limit: int) -> MemoryAnswer:
        """The entries nearest to a question that this reader may find."""
        found, problem = await self._ask(lambda index: index.search(question, reach, limit))
        return MemoryAnswer(found, problem)

    async def get(self, ref: str, reach: Reach) -> MemoryEntry | None:
        """The entry behind a handle; None where there is none, or none that this reader may find."""
        entry, _ = await self._ask(lambda index: index.get(ref))
        if entry is None or (reach.principals is not None and entry.principal not in reach.principals):
            return None
        return entry

    async def newest(self, limit: int, after: str | None = None) -> tuple[list[tuple[str, MemoryEntry]], str]:
        """The entries that were written last, with their handles; `after`: behind that one."""
        return await self._ask(lambda index: index.newest(limit, after))

    async def refs(self, beginning: str, limit: int) -> list[str]:
        """Handles that begin like this."""
        return (await self._ask(lambda index: index.refs(beginning, limit)))[0]

    def ref(self, key: str) -> str:
        return ref_of(self._store, self._agent_id, key)

    async def _ask(self, look: Callable[[MemoryIndex], T]) -> tuple[T, str]:
        """Ask the index, as it is after everything on record. A file that proves to be damaged is made again, once."""
        if self._place is None:
            return await self._ask_kept(look)
        problem = ""
        for last in (False, True):
            opened = await asyncio.to_thread(open_index, self._place, self._identity)
            try:
                unread = await self._refresh(opened)
                found = await asyncio.to_thread(look, opened.index)
                return found, "; ".join(filter(None, (problem or opened.problem, unread)))
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as damage:
                if last:
                    raise
                problem = f"the index was unusable and is made again: {damage}"
            finally:
                await asyncio.to_thread(opened.index.close)
            await asyncio.to_thread(discard_index, self._place)
        raise AssertionError("the second try returns or raises")

    async def _ask_kept(self, look: Callable[[MemoryIndex], T]) -> tuple[T, str]:
        kept = _kept.setdefault(self._store, _Kept())
        async with kept.locks.setdefault(self._agent_id, asyncio.Lock()):
            index = kept.indexes.get(self._agent_id)
            if index is None:
                index = kept.indexes[self._agent_id] = open_index(None, self._identity).index
            unread = await self._refresh(OpenedIndex(index))
            return look(index), unread

    @property
    def _identity(self) -> str:
        return f"{self._store.runtime_id}/{self._agent_id}"

    async def _refresh(self, opened: OpenedIndex) -> str:
        """Read what is new. What cannot be written leaves the index as it was. Says what is wrong, also with files."""
        problems: list[str] = []
        index, marks = opened.index, await asyncio.to_thread(opened.index.marks)
        if not await fits(self._store, self._agent_id, marks):
            raise apsw.NotADBError("the store is not the one that this index was made from")
        try:
            async for step in steps_after(self._store, self._agent_id, self._home, marks):
                if step.entries or step.gone or step.marks != marks:
                    await asyncio.to_thread(self._apply, index, step)
                    marks = step.marks
                problems += [step.problem] if step.problem else []
        except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.BusyError, apsw.LockedError) as problem:
            problems.append(f"the index could not be brought up to date: {problem}")
        return "; ".join(problems)

    def _apply(self, index: MemoryIndex, step: SourceStep) -> None:
        gone = list(step.gone)
        if step.files is not None:
            there = {entry.key for entry in step.entries}
            gone += [key for key in index.keys(f"{step.files}:") if key not in there]
        index.apply([(self.ref(entry.key), entry) for entry in step.entries], gone, step.marks)
