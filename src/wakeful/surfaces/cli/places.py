"""Where the store is, and asking it: `--store`, else the store that holds where none is named.

A command that reads makes no store; one that runs makes the file, and the folder only when it is the home.
"""

import asyncio
import shlex
from pathlib import Path
from typing import NamedTuple, TypeVar

from wakeful.bootstrap import check_not_lost, perform
from wakeful.contracts.errors import InvalidConfig
from wakeful.service import default_store, home_store
from wakeful.service.operations.operation import Operation
from wakeful.surfaces.cli.problems import WrongRequest

FILE = "runs.db"
Q = TypeVar("Q")
A = TypeVar("A")


class StoreAddress(NamedTuple):
    """A store's place, and what a person types to come back to it."""

    path: str
    is_default: bool

    @property
    def flag(self) -> str:
        """` --store runs.db`, or nothing where a command finds the store by itself."""
        return "" if self.is_default else f" --store {shlex.quote(self.path)}"


def ask(operation: Operation[Q, A], asked: Q, place: StoreAddress) -> A:
    """An operation of the service, done in this process."""
    return asyncio.run(perform(operation, asked, place.path))


def store_to_write(named: Path | None) -> StoreAddress:
    """The store a run is written to. Raises WrongRequest with the command that mends it."""
    place = _place(named)
    path = Path(place.path)
    if path.is_dir():
        raise WrongRequest(f"{path} is a folder, not a store", f"name a file in it: --store {path / FILE}")
    if place.is_default:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not path.absolute().parent.is_dir():
        folder = shlex.quote(str(path.parent))
        raise WrongRequest(f"there is no folder {path.parent} to put the store {path.name} in", f"mkdir -p {folder}")
    return place


def store_to_read(named: Path | None, made_by: str = 'wakeful run "hello"') -> StoreAddress:
    """A store that is there. Raises WrongRequest when there is none, with a command that makes one.

    One that was there and is gone is a StoreRewound.
    """
    place = _place(named)
    path = Path(place.path)
    if path.is_dir():
        raise WrongRequest(f"{path} is a folder, not a store", f"name a file: --store {path / FILE}")
    if not path.exists():
        check_not_lost(path)
        where = f"nothing was run yet: there is no store {path}" if place.is_default else f"there is no store {path}"
        raise WrongRequest(where, f"this creates it: {made_by}{place.flag}")
    return place


def any_place(named: Path | None) -> StoreAddress:
    """The place, whether there is a store or not."""
    return _place(named)


def place_to_check(named: Path | None) -> StoreAddress:
    """The same for a report on settings that may be wrong: then it is the store of the home."""
    try:
        return _place(named)
    except InvalidConfig:
        return StoreAddress(str(home_store()), True)


def _place(named: Path | None) -> StoreAddress:
    return StoreAddress(str(named), False) if named is not None else StoreAddress(str(default_store()), True)
