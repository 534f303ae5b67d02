"""Settings to a running system: the only file that names concrete classes.

Stores named by path are opened once for each event loop and shared; the last user closes them.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import StoreProblem, UnknownProvider
from wakeful.ports import Clock, Ids, Model, Store
from wakeful.service.requests import Runtime
from wakeful.system import SystemClock, UniqueIds

if TYPE_CHECKING:
    from wakeful.service.doctor import DoctorReport

PROVIDERS = ("scripted",)


@dataclass(slots=True)
class _Shared:
    store: Store
    users: int


_open_stores: dict[tuple[int, str], _Shared] = {}
_opening: dict[tuple[int, str], asyncio.Lock] = {}
_lingering: set[asyncio.Task[None]] = set()


@asynccontextmanager
async def opened_store(store: "Store | str | PathLike[str] | None") -> AsyncIterator[Store]:
    """A store by its path, a store as it is, or one in memory. Closed when its last user is done with it."""
    if store is None or store == ":memory:":  # as SQLite spells it, and not a file of that name
        from wakeful.store.memory import MemoryStore

        memory = MemoryStore()
        try:
            yield memory
        finally:
            await memory.close()
        return
    if not isinstance(store, str | PathLike):
        yield store
        return
    shared = await _share(fspath(store))
    try:
        yield shared.store
    finally:
        await _give_back(fspath(store), shared)


async def _share(location: str) -> _Shared:
    from wakeful.store.sqlite import SqliteStore

    place = _place(location)
    async with _opening.setdefault(place, asyncio.Lock()):
        shared = _open_stores.get(place)
        if shared is None:
            shared = _open_stores[place] = _Shared(await SqliteStore.open(location), 0)
        shared.users += 1
        return shared


async def _give_back(location: str, shared: _Shared) -> None:
    place = _place(location)
    async with _opening.setdefault(place, asyncio.Lock()):
        shared.users -= 1
        if shared.users == 0:
            _open_stores.pop(place, None)
            await shared.store.close()
    if place not in _open_stores:
        _opening.pop(place, None)


def _linger(store: Store, work: Coroutine[Any, Any, None]) -> None:
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


def resolve_model(choice: "str | Model") -> Model:
    """`provider:model` to a model. Raises UnknownProvider with what there is."""
    if not isinstance(choice, str):
        return choice
    provider, _, name = choice.replace("/", ":", 1).partition(":") if ":" not in choice else choice.partition(":")
    if provider == "scripted" and name:
        from wakeful.providers.scripted import scripted_from_reference

        return scripted_from_reference(name)
    raise UnknownProvider(
        f"no provider {provider!r} for model {choice!r}",
        f"this version has: {', '.join(PROVIDERS)}. Try --model scripted:demo, or scripted:path/to/script.yaml",
    )


def runtime(store: Store, *, clock: Clock | None = None, ids: Ids | None = None) -> Runtime:
    """Everything turns are run with, around a store."""
    return Runtime(
        store=store,
        clock=clock if clock is not None else SystemClock(),
        ids=ids if ids is not None else UniqueIds(),
        jitter=random.random,
        resolve_model=resolve_model,
        linger=partial(_linger, store),
    )


async def doctor(location: str | Path) -> "DoctorReport":
    """The report on a store by its path, and on this installation. Makes no store where there is none."""
    from wakeful.service.doctor import ProviderState, StoreFigures, cannot_be_opened, examine, nothing_stored
    from wakeful.store.sqlite.figures import figures

    measured = StoreFigures(location=str(location), **figures(Path(location)))
    providers = tuple(ProviderState(name=name, status="available") for name in PROVIDERS)
    if not measured.exists:
        return nothing_stored(measured, providers)
    try:
        async with opened_store(location) as store:
            return await examine(store, measured, providers)
    except StoreProblem as problem:
        return cannot_be_opened(measured, providers, problem)


def script_schema() -> dict[str, Any]:
    """The JSON Schema of a scripted model's file."""
    from wakeful.providers.scripted.schema import ScriptFile

    return ScriptFile.model_json_schema()
