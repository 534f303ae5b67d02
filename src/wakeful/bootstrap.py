"""Settings to a running system: the only file that names concrete classes.

Stores named by path are opened once for each event loop and shared; the last user closes them.
"""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from wakeful import programs
from wakeful.contracts.errors import (
    ForTheCaller,
    InvalidConfig,
    InvalidRequest,
    StoreLocked,
    StoreProblem,
    StoreReadOnly,
)
from wakeful.contracts.sensitive_names import is_sensitive
from wakeful.decisions.spend_windows import NO_WINDOWS
from wakeful.engine.run_request import Engine
from wakeful.gate.locks import LockTable
from wakeful.ports import Clock, Ids, Model, Store
from wakeful.settings.agent_homes import home_of_store
from wakeful.settings.home import home as own_home
from wakeful.settings.home import home_secret
from wakeful.settings.home_state import check_usable
from wakeful.settings.limit_overrides import limit_overrides, reminder_terms
from wakeful.settings.model_rules import ANY_MODEL, model_rules
from wakeful.settings.owner_file import settings_path
from wakeful.settings.spend_windows import owner_windows
from wakeful.system import SystemClock, UniqueIds
from wakeful.tools.hooks import Hook
from wakeful.tools.source import Surroundings

if TYPE_CHECKING:
    from wakeful.contracts.catalogue import Catalogue, ModelPage, ModelProbe
    from wakeful.contracts.file_problems import FileProblem, FilesReport
    from wakeful.contracts.mcp import McpParkedTool, McpServerState, McpToolState
    from wakeful.contracts.notices import NotifyTarget
    from wakeful.contracts.retention import Retention
    from wakeful.engine.agent import Agent
    from wakeful.engine.trusted_files import AcceptedFile
    from wakeful.ports.channels import Channel, ChannelRow
    from wakeful.runtime.scheduler import Places
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.service.operations.operation import OpenStore, Operation
    from wakeful.service.queries.doctor import DoctorReport
    from wakeful.service.telemetry import TelemetryReader
    from wakeful.settings.owner_file import OwnerFile
    from wakeful.tools.mcp.source import McpSource
    from wakeful.tools.tool import Tool
    from wakeful.views.home_backup import BackupReport, RestoreReport

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(slots=True)
class _Shared:
    store: Store
    users: int


_open_stores: dict[tuple[int, str], _Shared] = {}
_opening: dict[tuple[int, str], asyncio.Lock] = {}
_lingering: set[asyncio.Task[None]] = set()
_lock_tables: "WeakKeyDictionary[asyncio.AbstractEventLoop, LockTable]" = WeakKeyDictionary()


@asynccontextmanager
async def opened_store(store: "Store | str | PathLike[str] | None", *, reading: bool = False) -> AsyncIterator[Store]:
    """A store by its path, a store as it is, or one in memory. Closed when its last user is done with it.

    With `reading`, one that cannot be written (a read-only file system, no permission) is read all the same.
    """
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
    shared = await _share(fspath(store), may_fail=reading)
    if shared is None:
        async with _read_only(fspath(store)) as read:
            yield read
        return
    try:
        yield shared.store
    finally:
        await _give_back(fspath(store), shared)


@asynccontextmanager
async def _read_only(location: str) -> AsyncIterator[Store]:
    from wakeful.store.sqlite import SqliteReader

    store = await SqliteReader.open(location, key=home_secret())
    try:
        yield store
    finally:
        await store.close()


async def _share(location: str, *, may_fail: bool) -> _Shared | None:
    """The store, opened for writing. None where nothing can be written and that `may_fail`."""
    from wakeful.store.sqlite import SqliteStore

    place = _place(location)
    async with _opening.setdefault(place, asyncio.Lock()):
        shared = _open_stores.get(place)
        if shared is None:
            try:
                check_usable(Path(place[1]).parent)
                shared = _open_stores[place] = _Shared(await SqliteStore.open(location, key=home_secret()), 0)
            except StoreReadOnly:
                if may_fail:
                    return None
                raise
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


def _surroundings(store: Store) -> Surroundings:
    """What tools that run foreign code are kept away from: keys of providers, the database, the owner's settings."""
    files = [] if store.location == ":memory:" else [str(Path(store.location).absolute())]
    return Surroundings(_key_variables, own_keys, tuple(files), str(home_of_store(store.location)))


def _key_variables() -> frozenset[str]:
    from wakeful.providers.catalogue import key_variables

    return key_variables()


def _owner_hooks() -> tuple[Hook, ...]:
    """What the owner's file wants asked about every call. Looked for before each run, read when it is another one."""
    from wakeful.service.owner_hooks import owner_hooks

    return owner_hooks(os.environ, _key_variables)


def _has_owner_file() -> bool:
    return bool(os.environ.get("WAKEFUL_CONFIG")) or settings_path().exists()


def own_keys() -> frozenset[str]:
    """The keys this process holds in its environment: what nothing that is shown or stored may repeat.

    By the names of the variables, and by what providers say: their tables are not loaded for the sake of it.
    """
    named = {name for name in os.environ if is_sensitive(name)}
    if "wakeful.providers.endpoints" in sys.modules:
        named |= _key_variables_once()
    # A path says where a secret is, and is none.
    return frozenset(value for name in named if (value := os.environ.get(name, "")) and not value.startswith("/"))


@lru_cache(maxsize=1)
def _key_variables_once() -> frozenset[str]:
    return _key_variables()


def _locks_of_this_loop() -> LockTable:
    """One table for everything that runs here: a lock is a name, whoever asks for it."""
    loop = asyncio.get_running_loop()
    table = _lock_tables.get(loop)
    if table is None:
        table = _lock_tables[loop] = LockTable()
    return table


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
        linger=partial(_linger, store),
        limit_overrides=limit_overrides(os.environ),
        reminder_terms=reminder_terms(os.environ),
        model_rules=model_rules(os.environ) if owned or os.environ.get("WAKEFUL_OFFLINE") else ANY_MODEL,
        owner_windows=owner_windows(os.environ) if owned else NO_WINDOWS,
    )


@asynccontextmanager
async def open_runtime(
    store: "Store | str | PathLike[str]",
    agents: "Sequence[Agent[Any, Any]]",
    *,
    tools: "Sequence[Tool[Any]]" = (),
    folder: Path | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    places: "Places",
    grace: float | None,
    retention: "Retention | None" = None,
    notify: "NotifyTarget | None" = None,
    public_url: str = "",
) -> "AsyncIterator[LivingRuntime]":
    """Agents at work on a store, until it is closed. Raises StoreLocked while another runtime has the store."""
    from wakeful.runtime.agent_roster import AgentRoster, RosterEntry
    from wakeful.runtime.home_lock import runtime_lock
    from wakeful.runtime.tasks import RuntimeTasks, tasks_folder
    from wakeful.service.agent_supply import AgentSupply
    from wakeful.service.commands.agent_homes import seed_home
    from wakeful.service.commands.trigger_control import trigger_tools
    from wakeful.service.living_runtime import living_runtime
    from wakeful.service.owner_hooks import command_environment
    from wakeful.service.owner_terms import OwnerTerms
    from wakeful.service.queries.agent_details import RuntimeAgentBoard
    from wakeful.settings.retention import owner_retention
    from wakeful.tools.notice_sender import NoticeSender

    kept = owner_retention() if retention is None else retention
    roster = AgentRoster()
    for agent in agents:
        roster.add(RosterEntry(agent))
    clock, ids = clock if clock is not None else SystemClock(), ids if ids is not None else UniqueIds()
    async with opened_store(store) as opened:
        with runtime_lock(opened.location), tasks_folder(opened.location) as place:
            engine = new_engine(opened, clock=clock, ids=ids)
            tasks = RuntimeTasks(engine, place, roster.names)
            board, given = RuntimeAgentBoard(), trigger_tools(engine, public_url)
            around = replace(engine.surroundings, wakes=True, lives=True, tasks=tasks, tools=given, agents=board)
            board.engine = engine = replace(engine, surroundings=around)
            await seed_home(engine)
            sender = NoticeSender(lambda: command_environment(engine.surroundings.keys()))
            owner = OwnerTerms(_owner_problems, _key_variables)
            supply = AgentSupply(engine, roster, tuple(tools), folder, owner)
            runtime = living_runtime(
                engine,
                supply,
                places,
                tasks,
                owner_retention if retention is None else lambda: kept,
                sender.send,
                partial(_channel, opened),
                sender.ping,
                notify,
                public_url,
            )
            owner.hold()
            try:
                runtime.telemetry = _telemetry(engine)
                await runtime.start()
                try:
                    yield runtime
                finally:
                    await runtime.close(grace=grace)
            finally:
                owner.release()


def _telemetry(engine: Engine) -> "TelemetryReader | None":
    """What the owner's file wants told of the turns of a store. Raises InvalidConfig when it cannot be done."""
    from wakeful.settings.telemetry import endpoint_headers, owner_telemetry, place_of

    wanted = owner_telemetry()
    if not wanted.is_on:
        return None
    from wakeful.telemetry.packages import check_packages

    check_packages(wanted)
    from wakeful.service.telemetry import TelemetryReader, cursor_name
    from wakeful.telemetry.meters import open_meters
    from wakeful.telemetry.span_sender import otlp_sender, telemetry_resource

    store, headers = engine.store, endpoint_headers(wanted)
    resource = telemetry_resource(wanted, store.runtime_id)
    is_file = store.location != ":memory:"
    return TelemetryReader(
        store,
        engine.clock,
        otlp_sender(wanted, headers, resource) if wanted.endpoint and wanted.traces else None,
        open_meters(wanted, headers, resource) if wanted.metrics_route or wanted.metrics else None,
        home_of_store(store.location) / "run" / cursor_name(store.runtime_id) if is_file else None,
        wanted.content,
        place_of(wanted.endpoint),
        own_keys,
    )


def _channel(store: Store, row: "ChannelRow") -> "Channel":
    """The service that a channel is reached by. Raises InvalidConfig for a token that is not there."""
    from wakeful.decisions.channels import topic_of
    from wakeful.tools.channels.ntfy import NtfyChannel
    from wakeful.tools.channels.service_calls import ServiceCalls
    from wakeful.tools.channels.telegram import TelegramChannel

    token = os.environ.get(row.token_env, "") if row.token_env is not None else ""
    if row.token_env is not None and not token:
        raise InvalidConfig(
            f"the channel {row.name} needs its token, and the variable {row.token_env} is not set",
            f"Write {row.token_env}=... in secrets.env of the home, and restart: wakeful daemon restart",
        )
    if row.kind == "telegram":
        return TelegramChannel(ServiceCalls(row.server, row.allow_private, hides=(token,)), token)
    topics = [topic_of(store.secret, row.name, row.generation, which) for which in ("out", "in")]
    headers = {"authorization": f"Bearer {token}"} if token else {}
    calls = ServiceCalls(row.server, row.allow_private, headers, hides=(*topics, token))
    return NtfyChannel(calls, topics[0], topics[1], since=row.added_at // 1_000_000)


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


def check_home(home: "Path | None", tools: "Sequence[Tool[Any]] | None" = None) -> "FilesReport":
    """The files of a home, checked; None: the home of this installation. Writes nothing.

    Without `tools`, those that files name are taken to be there.
    """
    from wakeful.contracts.file_problems import FileProblem
    from wakeful.runtime.agent_definitions import definition_files
    from wakeful.service.queries.file_checks import check_agent_files, check_owner_file, files_report
    from wakeful.settings.agent_homes import FOLDER
    from wakeful.settings.owner_file import SETTINGS_FILE

    folder = own_home() if home is None else home
    used = settings_path()
    owned = used if home is None else folder / SETTINGS_FILE
    files = definition_files(folder / FOLDER)
    problems = []
    if owned.is_file():
        files.append(owned)
        problems += check_owner_file(owned, _check_providers, _key_variables)
        if owned.absolute() != used.absolute():
            message = f"it is not in force: the owner's file is {used}"
            hint = f"Set WAKEFUL_HOME={folder} or WAKEFUL_CONFIG={owned}."
            problems.append(FileProblem(place=str(owned), message=message, hint=hint, level="warning"))
    can_ask = _owner_is_readable()
    agents, wrong = check_agent_files(folder, tools, _model_at_hand if can_ask else lambda _: "")
    problems += wrong
    return files_report(folder, files, agents, problems)


def _owner_problems() -> "list[FileProblem]":
    """Everything that is wrong with the owner's file as it is on the disk."""
    from wakeful.service.queries.file_checks import check_owner_file

    return check_owner_file(settings_path(), _check_providers, _key_variables) if settings_path().is_file() else []


def _owner_is_readable() -> bool:
    """Can models be looked up? Not while the owner's file cannot be read: that is told about that file."""
    from wakeful.settings.owner_file import owner_file

    try:
        owner_file()
    except InvalidConfig:
        return False
    return True


def _model_at_hand(reference: str) -> str:
    """Blank: the model can be asked; else what is missing. Raises UnknownProvider, InvalidConfig or MalformedScript."""
    from wakeful.providers.catalogue import SCRIPTED, model_page
    from wakeful.providers.endpoints import split

    if split(reference)[0] == SCRIPTED:
        resolve_model(reference)
        return ""
    page = model_page(reference)
    ruled_out = model_rules(os.environ).against(page.model.ref, leaves_machine=False)
    if ruled_out is not None:
        raise InvalidConfig(f"the owner's file rules out {reference}: {ruled_out.detail}", "Name another model.")
    if page.provider.status != "available":
        return f"{reference} cannot be asked here: {page.provider.note}"
    near = " or ".join(page.near)
    return f"{reference} is not in the list of models; did you mean {near}?" if near else ""


def _check_providers(file: "OwnerFile") -> None:
    from wakeful.providers.endpoint_settings import tables
    from wakeful.providers.endpoints import endpoint

    for name in tables(file.data, str(file.path)):
        endpoint(name, environ={}, settings=file.data)


async def doctor(location: str | Path, live: Sequence[str] = (), *, timeout: float | None = None) -> "DoctorReport":
    """The report on a store by its path, and on this installation. Makes no store where there is none.

    The models in `live` are asked for a word each.
    """
    from wakeful.providers.catalogue import provider_states
    from wakeful.sandbox.level_probe import probe as confinement_here
    from wakeful.sandbox.own_code import exposures
    from wakeful.service.queries.doctor import with_providers

    level = await asyncio.to_thread(confinement_here)
    report = (await _store_report(location)).model_copy(
        update={
            "confinement": level.mode,
            "confinement_reason": level.reason,
            "warnings": exposures(_write_roots_here()),
        }
    )
    try:
        states = provider_states()
    except InvalidConfig as problem:
        return with_providers(report, (), (), unreadable=str(problem))
    return with_providers(report, states, [await _probed(reference, timeout) for reference in live])


def _write_roots_here() -> tuple[str, ...]:
    """Where agents write: those of this process, and the current folder, where one works unless told otherwise."""
    return tuple(sorted({str(Path.cwd().resolve()), *programs.agent_roots()}))


async def _store_report(location: str | Path) -> "DoctorReport":
    from wakeful.service.queries.doctor import StoreFigures, cannot_be_opened, examine, nothing_stored
    from wakeful.store.sqlite.figures import figures

    measured = StoreFigures(location=str(location), **figures(Path(location)))
    try:
        if not measured.exists:
            check_not_lost(location)
            return nothing_stored(measured)
        async with opened_store(location, reading=True) as store:
            return await examine(store, measured)
    except StoreProblem as problem:
        return cannot_be_opened(measured, problem)


def check_not_lost(location: str | Path) -> None:
    """Raises StoreRewound where there is no store, or an empty one, and its anchor says that there was more."""
    from wakeful.store.sqlite.anchor import read_anchor
    from wakeful.store.sqlite.anchor_checks import refuse_missing

    path = Path(location).absolute()
    refuse_missing(path, read_anchor(path))


def forget_store_end(location: str | Path) -> int:
    """Forget what the anchor of a store says; of how many agents it had records. Raises StoreLocked while in use."""
    from wakeful.store.sqlite.anchor import forget_anchor
    from wakeful.store.sqlite.owners import LivingOwners

    path = Path(location).absolute()
    holder = LivingOwners(path).anybody()
    if holder is not None:
        raise StoreLocked(f"{location} is in use by {holder}", "Wait until that process has ended, or stop it.")
    return forget_anchor(path)


async def back_up_home(file: Path | None, *, final: bool = False) -> "BackupReport":
    """Write the home to one file, while it is in use. With `final` it must not be, and starts no more afterwards.

    Raises InvalidRequest, StoreProblem; then there is no file.
    """
    import time
    from contextlib import ExitStack

    from wakeful.runtime.home_lock import runtime_lock
    from wakeful.service.backups.backup import back_up, file_name
    from wakeful.settings.store_file import default_store
    from wakeful.store.sqlite.owners import LivingOwners
    from wakeful.store.sqlite.transfer import copy_database

    store = default_store()
    if not store.is_file():
        check_not_lost(store)
        raise InvalidRequest(f"there is no store {store} to back up", 'One is made by: wakeful run "hello"')
    with ExitStack() as held:
        if final:
            held.enter_context(runtime_lock(str(store)))
            holder = LivingOwners(store.absolute()).anybody()
            if holder is not None:
                raise StoreLocked(f"{store} is in use by {holder}", "Wait until that process has ended, or stop it.")
        return await asyncio.to_thread(
            back_up,
            own_home(),
            store,
            file if file is not None else Path(file_name(time.time())),
            copy_database=copy_database,
            inspect=lambda copy: asyncio.run(_agents_and_tasks(copy)),
            final=final,
        )


async def _agents_and_tasks(copy: Path) -> tuple[list[str], list[str]]:
    async with _read_only(str(copy)) as store:
        agents = [row.agent_id for row in await store.runtime_agents()]
        tasks = [row for row in await store.open_tasks() if row.kind == "command_task"]
        return agents, [f"{row.task_id} of {row.agent_id}: {row.summary}" for row in tasks]


async def restore_home(file: Path) -> "RestoreReport":
    """A home from a backup, paused. Raises InvalidRequest, StoreProblem; then the home is as empty as before."""
    from wakeful.service.backups.restore import missing_folders, read_backup, restoring, settle
    from wakeful.store.sqlite import SqliteStore
    from wakeful.views.home_backup import RestoreReport

    home = own_home()
    record, contents = await asyncio.to_thread(read_backup, file)
    with restoring(home, file, record, contents) as store:
        opened = await SqliteStore.open(str(store), key=home_secret())
        try:
            log = await settle(new_engine(opened), file)
        finally:
            await opened.close()
    checked = check_home(None)
    wanted: list[str] = record.manifest.get("secrets") or []
    return RestoreReport(
        file=str(file),
        home=str(home),
        taken_at=float(record.header.get("created_at") or 0),
        agents=tuple(log.agents),
        files=len(record.manifest["files"]),
        missing_paths=missing_folders(log.paths),
        missing_secrets=tuple(each for each in wanted if each.partition(" ")[0] not in secret_names()),
        problems=tuple(f"{each.where}: {each.message}" for each in checked.problems),
        lost_tasks=tuple(log.lost_tasks),
    )


def secret_names() -> frozenset[str]:
    """Variables that hold something here: in the environment, or in `secrets.env` of the home."""
    from wakeful.service.serving.run_files import read_secrets

    return frozenset({*(name for name, value in os.environ.items() if value), *read_secrets()})


async def _probed(reference: str, timeout: float | None) -> "ModelProbe":
    """In a report, a model that cannot even be asked is one more finding."""
    from wakeful.contracts.catalogue import ModelProbe

    try:
        return await try_model(reference, timeout=timeout)
    except ForTheCaller as problem:
        return ModelProbe(model_ref=reference, ok=False, duration_ms=0.0, message=problem.message, advice=problem.hint)


async def try_model(reference: str, *, timeout: float | None = None) -> "ModelProbe":
    """One tiny live call. Raises UnknownProvider, InvalidConfig or MalformedScript before anything is sent."""
    from wakeful.providers.catalogue import model_page
    from wakeful.providers.pricing import ListPricing
    from wakeful.service.queries.model_probe import TIMEOUT, probe

    model = resolve_model(reference)
    provider = model_page(reference).provider
    return await probe(model, provider, pricing=ListPricing(), timeout=TIMEOUT if timeout is None else timeout)


def model_catalogue() -> "Catalogue":
    """Every provider and every model that is described here. Raises InvalidConfig for a file that cannot be read."""
    from wakeful.providers.catalogue import catalogue

    return catalogue()


def model_page(reference: str) -> "ModelPage":
    """One model: its provider, what it can do, what it costs. Raises UnknownProvider or InvalidConfig."""
    from wakeful.providers.catalogue import model_page

    return model_page(reference)


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for a child process: no provider's key is in it."""
    from wakeful.providers.catalogue import key_variables

    keys = key_variables(environ)
    return {name: value for name, value in environ.items() if name not in keys}


def script_schema() -> dict[str, Any]:
    """The JSON Schema of a scripted model's file."""
    from wakeful.providers.scripted.schema import ScriptFile

    return ScriptFile.model_json_schema()


def mcp_states(config: Path | None) -> "tuple[McpServerState, ...]":
    """The MCP servers of a file; of none, those of the owner and of the current folder, once trusted. Starts none."""
    from wakeful.engine.named_servers import server_files
    from wakeful.tools.mcp.config import mcp_servers, servers_of
    from wakeful.tools.mcp.overview import states

    if config is not None:
        return states(mcp_servers(config))
    known: dict[str, Any] = {}
    for file in server_files(Path.cwd()):
        if file.is_trusted:
            for each in servers_of(file.data, str(file.path), file.path.absolute().parent):
                known.setdefault(each.server.name, each)
    return states(known.values())


def mcp_untrusted() -> list[Path]:
    """Files of the current folder that name MCP servers and were not trusted as they are."""
    from wakeful.engine.named_servers import server_files

    return [file.path for file in server_files(Path.cwd()) if not file.is_trusted]


def _mcp_server(config: Path | None, name: str) -> "McpSource":
    from wakeful.engine.named_servers import find_server
    from wakeful.tools.mcp.overview import source

    return source(config, name) if config is not None else find_server(name, Path.cwd())


async def mcp_tools(config: Path | None, name: str) -> "tuple[McpToolState, ...]":
    """A server's tools; the server is started or connected to for it. Raises InvalidConfig."""
    from wakeful.tools.mcp.overview import tools_of

    return await tools_of(_mcp_server(config, name))


def trust(path: "str | PathLike[str]") -> "list[AcceptedFile]":
    """Trust a file as it is now; of a folder, its `AGENTS.md`, `CLAUDE.md`, skills and `mcp.json`.

    Returns the trusted files. Raises InvalidConfig where there is nothing to trust.
    """
    from wakeful.engine.trusted_files import TrustedFiles

    return TrustedFiles().accept(Path(path).expanduser())


def accepted_files() -> "list[AcceptedFile]":
    """Every file that the owner accepted, by path."""
    from wakeful.engine.trusted_files import TrustedFiles

    return TrustedFiles().all()


def mcp_approve(name: str, tools: tuple[str, ...] = ()) -> "tuple[McpParkedTool, ...]":
    """Accept the changed tools of a server."""
    from wakeful.tools.mcp.overview import approve

    return approve(name, tools)


async def mcp_login(config: Path | None, name: str, principal: str | None, show: Callable[[str], None]) -> None:
    """Log in to a server; `show` gets the address a person has to go to. Raises InvalidConfig."""
    from wakeful.tools.mcp.failures import NotReached

    found = _mcp_server(config, name)
    from wakeful.tools.mcp.login import browser_login

    try:
        await browser_login(found, show, principal)
    except NotReached as problem:
        raise InvalidConfig(f"the MCP server {name!r} did not let wakeful in: {problem.message}") from None
