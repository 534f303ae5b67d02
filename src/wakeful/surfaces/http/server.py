"""The serving process: one store, one runtime on it, a socket for this machine and an address for tokens.

It ends in order: no new turn and no new step of one, streams and waiting answers told to come back, turns let go of at
a step (`drain`), no new connection, requests that are being answered brought to their end, the store closed.
"""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from wakeful._version import __version__
from wakeful.bootstrap.homes import owner_problems
from wakeful.bootstrap.installation import doctor
from wakeful.bootstrap.keys import own_keys
from wakeful.bootstrap.runtimes import open_runtime
from wakeful.bootstrap.stores import read_only_store
from wakeful.contracts.errors import InvalidConfig, InvalidRequest, WakefulError
from wakeful.hosts.served_host import ServedHost
from wakeful.service import Places, default_store
from wakeful.service.access import TokenBook, token_of_digest
from wakeful.service.code_loader import load
from wakeful.service.living_runtime import LivingRuntime
from wakeful.service.operations.operation import OpenStore
from wakeful.service.queries.process_status import ServingProcess
from wakeful.service.serving.autostart import notify, watchdog_seconds
from wakeful.service.serving.control import is_listening
from wakeful.service.serving.options import ServeOptions, allowed_hosts, fingerprint
from wakeful.service.serving.package_watch import package_problems, watch_package
from wakeful.service.serving.run_files import (
    clear_failure,
    home_folder,
    make_run_folder,
    record_of_this_process,
    remove_record,
    serving_lock,
    write_record,
)
from wakeful.service.serving.socket_place import socket_path
from wakeful.surfaces.http.application import application, front
from wakeful.surfaces.http.connections import NetworkConnections, raise_file_limit
from wakeful.surfaces.http.drain import ServingDrain
from wakeful.surfaces.http.guard import Guard
from wakeful.surfaces.http.peer_protocol import PeerProtocol

REQUEST_SECONDS = 10
"""How long requests have that are being answered when no turn runs any more."""
BACKLOG = 512
"""Connections that the kernel keeps until they are accepted."""
ACCEPTED_AT_ONCE = 64
"""So many are accepted before any of them is looked at: each is an open file."""
UNSENT_BYTES = 65_536
"""How much the kernel takes for a client that does not read. Otherwise it is up to 4 MB, all of it presented."""
_LEAST_UNSENT = getattr(socket, "TCP_NOTSENT_LOWAT", None)
_log = logging.getLogger("wakeful.serve")


class _Server(uvicorn.Server):
    """A server that ends when it is told to, and leaves signals to others: it has gone before the process is over."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)  # the loop has set it to what it takes at once

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(options: ServeOptions, announce: Callable[[str], None]) -> None:
    """Serve the home until somebody ends it. `announce` tells a person what they need to know."""
    _check_owner_file("daemon")
    make_run_folder()
    PeerProtocol.network = NetworkConnections(raise_file_limit())
    code = load(options.tools, options.folder)
    for note in code.notes:
        announce(note)
    listening = socket_path()
    with contextlib.ExitStack() as sockets:
        local = sockets.enter_context(_local_socket(listening))
        network = sockets.enter_context(network_socket(options)) if options.host is not None else None
        address = _address(network)
        public = options.advertise or (f"http://{address}" if address is not None else "")
        tokens = TokenBook([token_of_digest(options.token_digest)] if options.token_digest else [])
        runtime = open_runtime(
            default_store(),
            code.agents,
            tools=code.tools,
            folder=home_folder() / "agents",
            places=Places(),
            grace=0,  # the drain comes before
            public_url=public,
        )
        async with runtime as living:
            living.default_model = options.model

            def close() -> None:
                server.should_exit = True

            drain = ServingDrain(living, announce, close)
            process = ServingProcess(
                pid=os.getpid(),
                version=__version__,
                home_dir=str(home_folder()),
                store=living.engine.store.location,
                started_at=time.time(),
                shut_down=lambda by, seconds: _shut_down(drain, by, seconds),
                draining=lambda: drain.status,
                access=options.access,
                socket_path=str(listening),
                http_addr=address,
                public_url=public or None,
                fingerprint=fingerprint(options),
                problems=lambda: _problems(living),
                refused=lambda: dict(app.refused),
                examine=lambda: doctor(living.engine.store.location),
                closing=drain.closing,
            )
            engine = living.engine
            host = ServedHost(living.supply)
            await host.take_up()
            opened = OpenStore(engine.store, lambda _: engine, own_keys, living, process, host)
            app = Guard(
                front(application(opened, drain.closing, tokens)),
                tokens,
                allowed_hosts(options, _host(address)),
                closing=drain.closing,
            )
            config = uvicorn.Config(
                app,
                http=PeerProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # who is at the other end is what the kernel says, never a header
                date_header=True,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=REQUEST_SECONDS,
                backlog=ACCEPTED_AT_ONCE,
            )
            server = _Server(config)
            if living.telemetry is not None:
                living.telemetry.refused = lambda: app.refused
            write_record(record_of_this_process(options, listening, address, process.fingerprint, __version__))
            clear_failure()
            announce(f"wakeful {__version__} serves {home_folder()}")
            announce(f"socket {listening}" + (f", http://{address}" if address else ", no network address"))
            alive = asyncio.create_task(_say_alive(living))
            package = asyncio.create_task(watch_package(engine))
            ends = asyncio.create_task(living.parts.keep_up("the records of dispatched runs", host.keep_ends))
            drain.hear_signals()
            try:
                await server.serve([each for each in (local, network) if each is not None])
            finally:
                drain.begin(0)
                alive.cancel()
                package.cancel()
                ends.cancel()
        remove_record(os.getpid())
    announce("ended")


async def check_start(options: ServeOptions, *, binds: bool) -> None:
    """Could a daemon be started with these options? Reads what a start reads, and changes nothing: the file, the code,
    the store, migrated in a private copy where it is older. `binds`: the address is taken for a moment, too.

    Raises what a start would end with.
    """
    _check_owner_file()
    load(options.tools, options.folder)
    store = default_store()
    if await asyncio.to_thread(Path(store).exists):
        async with read_only_store(str(store)):
            pass
    if binds and options.host is not None:
        with network_socket(options):
            pass


def _check_owner_file(table: str = "") -> None:
    """Raises InvalidConfig for the first problem, of this table or any."""
    for problem in owner_problems():
        if problem.level == "error" and (not table or problem.field.partition(".")[0] == table):
            line = f", line {problem.line}" if problem.line is not None else ""
            where = "" if problem.place in problem.message else f"{problem.place}{line}: "
            raise InvalidConfig(f"{where}{problem.message}", "Look at everything that is wrong: wakeful check")


def _problems(living: LivingRuntime) -> list[str]:
    """What a person should see to, in words."""
    found = [*living.problems, *(f"{each.where}: {each.message}" for each in living.supply.problems)]
    found += living.telemetry.problems() if living.telemetry is not None else []
    return found + package_problems()


async def _say_alive(living: LivingRuntime) -> None:
    """Tell the manager of services that it is ready, then that it is alive: while the runtime is well."""
    notify("READY=1")
    seconds = watchdog_seconds()
    while seconds is not None:
        try:
            if await living.is_well("manager"):
                notify("WATCHDOG=1", seconds=0)  # it is said again
            else:
                _log.warning("the runtime is not well: %s", "; ".join(living.problems) or "see above")
        except WakefulError as problem:
            _log.warning("the store does not answer: %s", problem.message)
        await asyncio.sleep(seconds)


def _shut_down(drain: ServingDrain, by: str, seconds: float | None) -> None:
    _log.info("shutdown asked for by %s", by)
    asyncio.get_running_loop().call_later(0.05, drain.begin, seconds)  # the answer goes out first


@contextlib.contextmanager
def _local_socket(path: Path) -> Iterator[socket.socket]:
    """The socket of the home, for its owner alone. Raises InvalidRequest where somebody else listens there.

    Who else begins at the same moment is kept away by a lock: of two that find a stale socket, each would take away
    that of the other.
    """
    with serving_lock(), _bound_socket(path) as found:
        yield found


@contextlib.contextmanager
def _bound_socket(path: Path) -> Iterator[socket.socket]:
    if path.exists():
        if not path.is_socket() or is_listening(path):
            raise InvalidRequest(f"another program has {path}", "Stop it, or use another home: WAKEFUL_HOME")
        path.unlink()
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        found.bind(str(path))
    finally:
        os.umask(before)
    try:
        found.listen(BACKLOG)
        found.setblocking(False)
        yield found
    finally:
        found.close()
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def network_socket(options: ServeOptions) -> Iterator[socket.socket]:
    """Raises InvalidRequest for an address that cannot be had."""
    assert options.host is not None
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio sets no TCP_NODELAY
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if _LEAST_UNSENT is not None:  # connections have it from here
            found.setsockopt(socket.IPPROTO_TCP, _LEAST_UNSENT, UNSENT_BYTES)
        try:
            found.bind((options.host, options.port))
        except OSError as error:
            raise InvalidRequest(
                f"{options.address} cannot be listened on: {error.strerror or error}",
                "Give another port: --port 0 takes any that is free, --listen none takes none.",
            ) from None
        found.listen(BACKLOG)
        found.setblocking(False)
        yield found
    finally:
        found.close()


def _address(network: socket.socket | None) -> str | None:
    if network is None:
        return None
    host, port = network.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host(address: str | None) -> str | None:
    return None if address is None else address.rpartition(":")[0].strip("[]")
