"""One operation of the table on a store by its path: the way of every surface that asks in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import PathLike
from typing import TYPE_CHECKING, TypeVar

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.keys import own_keys
from wakeful.bootstrap.stores import opened_store
from wakeful.ports import Store

if TYPE_CHECKING:
    from wakeful.service.operations.operation import OpenStore, Operation

Q = TypeVar("Q")
A = TypeVar("A")


@asynccontextmanager
async def reading_store(store: "Store | str | PathLike[str] | None") -> "AsyncIterator[OpenStore]":
    """A store that somebody reads over a longer time: to follow a turn."""
    from wakeful.service.operations.operation import OpenStore

    async with opened_store(store, reading=True) as opened:
        yield OpenStore(opened, new_engine, own_keys)


async def perform(
    operation: "Operation[Q, A]", asked: Q, store: "Store | str | PathLike[str] | None", *, caller: str = "program"
) -> A:
    """Do one operation of the table on a store: the way of every surface that asks in this process.

    `caller` acts, where the request does not say who does.
    """
    from wakeful.service.operations.operation import OpenStore, in_name_of

    async with opened_store(store, reading=not operation.changes) as opened:
        return await operation.handler(OpenStore(opened, new_engine, own_keys), in_name_of(asked, caller))
