"""Everything turns are run with, around a store: models, prices, locks, and what the owner's file says."""

import asyncio
import os
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from wakeful.bootstrap.keys import key_variables, own_keys
from wakeful.bootstrap.stores import linger
from wakeful.contracts.models import spelled_reference
from wakeful.decisions.spend_windows import NO_WINDOWS
from wakeful.engine.run_request import Engine
from wakeful.gate.locks import LockTable
from wakeful.ports import Clock, Ids, Model, Store
from wakeful.settings.agent_homes import home_of_store
from wakeful.settings.limit_overrides import limit_overrides, reminder_terms
from wakeful.settings.model_rules import ANY_MODEL, model_rules
from wakeful.settings.owner_file import settings_path
from wakeful.settings.spend_windows import owner_windows
from wakeful.system import SystemClock, UniqueIds
from wakeful.tools.hooks import Hook
from wakeful.tools.source import Surroundings

_lock_tables: "WeakKeyDictionary[asyncio.AbstractEventLoop, LockTable]" = WeakKeyDictionary()


def _surroundings(store: Store) -> Surroundings:
    """What tools that run foreign code are kept away from: keys of providers, the database, the owner's settings."""
    files = [] if store.location == ":memory:" else [str(Path(store.location).absolute())]
    return Surroundings(key_variables, own_keys, tuple(files), str(home_of_store(store.location)))


def _owner_hooks() -> tuple[Hook, ...]:
    """What the owner's file wants asked about every call. Looked for before each run, read when it is another one."""
    from wakeful.service.owner_hooks import owner_hooks

    return owner_hooks(os.environ, key_variables)


def _has_owner_file() -> bool:
    return bool(os.environ.get("WAKEFUL_CONFIG")) or settings_path().exists()


def _locks_of_this_loop() -> LockTable:
    """One table for everything that runs here: a lock is a name, whoever asks for it."""
    loop = asyncio.get_running_loop()
    table = _lock_tables.get(loop)
    if table is None:
        table = _lock_tables[loop] = LockTable()
    return table


def resolve_model(choice: "str | Model") -> Model:
    """`provider:model` to a model. Raises UnknownProvider with what there is."""
    if not isinstance(choice, str):
        return choice
    provider, _, name = spelled_reference(choice).partition(":")
    if provider == "scripted" and name:
        from wakeful.providers.scripted import scripted_from_reference

        return scripted_from_reference(name)
    from wakeful.providers.model_references import model_from_reference

    return model_from_reference(choice)


def own_price(table: Mapping[str, Any], where: str) -> object:
    """What somebody says in code that a model costs, as a model carries it. Raises InvalidConfig with the place."""
    from wakeful.providers.prices import price_in_code

    return price_in_code(table, where)


def new_engine(
    store: Store,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    jitter: Callable[[], float] = random.random,
    hooks: Sequence[Hook] = (),
) -> Engine:
    """Everything turns are run with, around a store. `jitter` draws which part of a backoff is waited.

    `hooks` are asked about every call, besides those of the owner's file. Raises InvalidConfig for a file that cannot
    be read: what the owner wants asked is asked, or nothing runs. The same goes for the limits of the environment.
    """
    from wakeful.providers.pricing import ListPricing

    owned = _has_owner_file()
    return Engine(
        store=store,
        clock=clock if clock is not None else SystemClock(),
        ids=ids if ids is not None else UniqueIds(),
        jitter=jitter,
        resolve_model=resolve_model,
        pricing=ListPricing(),
        locks=_locks_of_this_loop(),
        surroundings=_surroundings(store),
        hooks=(*(_owner_hooks() if owned else ()), *hooks),
        linger=partial(linger, store),
        limit_overrides=limit_overrides(os.environ),
        reminder_terms=reminder_terms(os.environ),
        model_rules=model_rules(os.environ) if owned or os.environ.get("WAKEFUL_OFFLINE") else ANY_MODEL,
        owner_windows=owner_windows(os.environ) if owned else NO_WINDOWS,
    )
