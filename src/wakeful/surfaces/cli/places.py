"""Where a command asks: the daemon of the home when it is there, the store's file when not, or what the person says.

    --store FILE                     the file, whether a daemon runs or not
    --connect, $WAKEFUL_CONNECT      that daemon and nothing else
    neither                          the daemon that serves the store of this home, else its file

A command that reads makes no store; one that runs makes the file, and the folder only when it is the home.
"""

import os
import shlex
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from wakeful.contracts.errors import InvalidConfig
from wakeful.service import default_store, home_store
from wakeful.service.operations.operation import Operation
from wakeful.surfaces.cli.connect_option import connect_to
from wakeful.surfaces.cli.problems import WrongRequest, note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wakeful.service.serving.daemon_client import DaemonAddress, DaemonClient, NotNow

FILE = "runs.db"
UNATTENDED = "no daemon runs: wakeful daemon start"
NO_AGENTS = "no agents yet; make one: wakeful agent create NAME --model PROVIDER:MODEL"
Q = TypeVar("Q")
A = TypeVar("A")
_clients: "dict[DaemonAddress, DaemonClient]" = {}
"""One connection for all that a command asks."""


@contextmanager
def asking(connect: str | None) -> "Iterator[None]":
    """The daemon that one command asks, at the place of `--connect`, over connections that end with the command."""
    token = connect_to.set(connect)
    try:
        yield
    finally:
        connect_to.reset(token)
        while _clients:
            _clients.popitem()[1].close()


class StoreAddress(NamedTuple):
    """A store's place, the daemon that is asked about it, and what a person types to come back to it."""

    path: str
    is_default: bool
    daemon: "DaemonAddress | None" = None

    @property
    def flag(self) -> str:
        """` --store runs.db`, ` --connect NAME`, or nothing where a command finds it by itself."""
        if self.daemon is not None:
            return self.daemon.flag
        return "" if self.is_default else f" --store {shlex.quote(self.path)}"

    @property
    def is_unattended(self) -> bool:
        """It is the home's, and no daemon runs there: what an agent is to do waits for one."""
        return self.daemon is None and self.is_default

    @property
    def is_far(self) -> bool:
        """It is another daemon's: its file is not ours to open."""
        return self.daemon is not None and not self.path


THIS_MACHINE = StoreAddress(":memory:", True)
"""For what belongs to no store, and is not asked of a daemon."""


def ask(operation: Operation[Q, A], asked: Q, place: StoreAddress) -> A:
    """An operation of the service: done by the daemon, or in this process as the user that it runs as."""
    if place.daemon is not None:
        from wakeful.service.serving.remote_operations import ask_daemon, is_routed

        if is_routed(operation, asked):
            return ask_daemon(client_of(place), operation, asked)
        _check_near(place, operation)
    import asyncio

    from wakeful.bootstrap.store_operations import perform

    return asyncio.run(perform(operation, asked, place.path, caller=local_name()))


def follow(operation: "Operation[Q, list[A]]", asked: Q, place: StoreAddress, *, quiet: bool = False) -> "Iterator[A]":
    """A list of a daemon, and what comes to it. While the daemon is away, it is waited for."""
    from wakeful.service.serving.remote_operations import stream_daemon

    return stream_daemon(client_of(place), operation, asked, away=partial(await_daemon, place, quiet=quiet))


def await_daemon(place: StoreAddress, gone: "NotNow", *, quiet: bool, seconds: float | None = None) -> None:
    """Until a daemon that went away is back, which a person is told. Raises what it is given, once that takes too long.

    Without `seconds` it never takes too long.
    """
    if not quiet:
        note("The daemon is gone; waiting for it. Ctrl-C ends the waiting.")
    client_of(place).until_back(gone, seconds)
    if not quiet:
        note("The daemon is back.")


def client_of(place: StoreAddress) -> "DaemonClient":
    """The connection to the daemon of a place."""
    from wakeful.service.serving.daemon_client import DaemonClient

    assert place.daemon is not None
    return _clients.setdefault(place.daemon, DaemonClient(place.daemon))


def local_name() -> str:
    """The user of this process, by the word of the kernel."""
    return f"local:{os.getuid()}"


def place_to_ask(named: Path | None, made_by: str = "") -> StoreAddress:
    """A daemon that answers, else a store that is there. Raises WrongRequest when there is none, or NoAnswer."""
    return _daemon_place(named) or store_to_read(named, made_by)


def place_to_fill(named: Path | None) -> StoreAddress:
    """The same for a command that makes the store where there is none."""
    return _daemon_place(named) or store_to_write(named)


def place_without_store() -> StoreAddress:
    """A daemon that answers, else this machine: for what belongs to no store."""
    return _daemon_place(None) or THIS_MACHINE


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


def store_to_read(named: Path | None, made_by: str = "") -> StoreAddress:
    """A store that is there. Raises WrongRequest when there is none, with a command that makes one.

    One that was there and is gone is a StoreRewound.
    """
    place = _place(named)
    path = Path(place.path)
    if path.is_dir():
        raise WrongRequest(f"{path} is a folder, not a store", f"name a file: --store {path / FILE}")
    if not path.exists():
        from wakeful.bootstrap.stores import check_not_lost

        check_not_lost(path)
        where = f"nothing was run yet: there is no store {path}" if place.is_default else f"there is no store {path}"
        raise WrongRequest(where, f"this creates it: {made_by or _maker(place)}{place.flag}")
    return place


def _maker(place: StoreAddress) -> str:
    """The command that makes a store: where somebody has set up a home, its daemon."""
    files = Path(place.path).parent
    is_set_up = place.is_default and ((files / "wakeful.toml").is_file() or any(files.glob("agents/*.y*ml")))
    if is_set_up:
        return "wakeful daemon start"
    return 'wakeful run "hello", or wakeful daemon start' if place.is_default else 'wakeful run "hello"'


def any_place(named: Path | None) -> StoreAddress:
    """The place, whether there is a store or not."""
    return _place(named)


def place_of_rows(named: Path | None, *, is_file: bool) -> StoreAddress:
    """The place that a command is about, whether something is there or not: what was listed there is meant."""
    return (None if is_file else _daemon_place(named)) or (place_to_check(named) if named is None else _place(named))


def place_to_check(named: Path | None) -> StoreAddress:
    """The same for a report on settings that may be wrong: then it is the store of the home."""
    try:
        return _place(named)
    except InvalidConfig:
        return StoreAddress(str(home_store()), True)


def _place(named: Path | None) -> StoreAddress:
    if named is None and (said := connect_to.get()) is not None:
        raise WrongRequest(
            f"this command works on the file of a store, not on the daemon {said}",
            "run it on the machine where the store is, or name a file: --store FILE",
        )
    return StoreAddress(str(named), False) if named is not None else StoreAddress(str(default_store()), True)


def _daemon_place(named: Path | None) -> StoreAddress | None:
    """The daemon that is to be asked; None: the file is."""
    said = connect_to.get()
    if named is not None:
        if said is not None:
            raise WrongRequest("--store and --connect were both given", "give one of them")
        return None
    from wakeful.service.serving.daemon_addresses import address_named, daemon_of_home

    said = said or os.environ.get("WAKEFUL_CONNECT")
    if said:
        return StoreAddress("", False, address_named(said))
    found = daemon_of_home()
    if found is None:
        return None
    if _clients.setdefault(found.address, found) is not found:
        found.close()  # this command is connected already
    return StoreAddress(found.store, True, found.address)


def _check_near(place: StoreAddress, operation: Operation[Q, A]) -> None:
    from wakeful.service.operations.routes import WITHOUT_ROUTE

    if place.is_far:
        why = WITHOUT_ROUTE.get(operation.name, "its answer is not the one that this command prints")
        raise WrongRequest(
            f"a daemon elsewhere cannot be asked this: {why}",
            "run it on the machine where the store is, or name a file: --store FILE",
        )
