"""Where the store is, and asking it: what `--store` says, or the home's own database.

A command that reads makes no store; one that runs makes the file, and the folder only when it is the home.
"""

import asyncio
import shlex
from pathlib import Path
from typing import NamedTuple, TypeVar

from wakeful.bootstrap import check_not_lost, perform
from wakeful.service import home
from wakeful.service.operation import Operation
from wakeful.surfaces.cli.problems import WrongRequest

FILE = "wakeful.db"
Q = TypeVar("Q")
A = TypeVar("A")


class StoreAddress(NamedTuple):
    """A store's place, and what a person types to come back to it."""

    path: str
    is_home: bool

    @property
    def flag(self) -> str:
        """` --store runs.db`, or nothing when the store is the home's."""
        return "" if self.is_home else f" --store {shlex.quote(self.path)}"


def ask(operation: Operation[Q, A], asked: Q, place: StoreAddress) -> A:
    """An operation of the service, done in this process."""
    return asyncio.run(perform(operation, asked, place.path))


def store_to_write(named: Path | None) -> StoreAddress:
    """The store a run goes to. Raises WrongRequest with the command that mends it."""
    place = _place(named)
    path = Path(place.path)
    if path.is_dir():
        raise WrongRequest(f"{path} is a folder, and a store is a file", f"name a file in it: --store {path / FILE}")
    if place.is_home:
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
        raise WrongRequest(f"{path} is a folder, and a store is a file", f"name a file: --store {path / FILE}")
    if not path.exists():
        check_not_lost(path)
        where = f"nothing has been run here yet: there is no {path}" if place.is_home else f"there is no store {path}"
        raise WrongRequest(where, f"this makes it: {made_by}{place.flag}")
    return place


def any_place(named: Path | None) -> StoreAddress:
    """The place, whatever is there."""
    return _place(named)


def _place(named: Path | None) -> StoreAddress:
    return StoreAddress(str(named), False) if named is not None else StoreAddress(str(home() / FILE), True)
