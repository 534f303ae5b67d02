"""What may be asked about runs that were handed to a target or to a package, and about agents that came in bundles."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.service.host_door import HostDoor
    from wakeful.views.dispatch_records import DispatchDetails, DispatchedRun, ImportedAgentRecord

_RECORDS = "wakeful.views.dispatch_records"


@dataclass(frozen=True, slots=True)
class DispatchQuery:
    """The newest runs that were handed to a target, or those of packages."""

    kind: Literal["target", "package"] = "target"
    """Runs that were handed to an agent here, or those of packages."""
    limit: int = PAGE


@dataclass(frozen=True, slots=True)
class DispatchName:
    """One run by its id, or the beginning of it."""

    run: str


@dataclass(frozen=True, slots=True)
class ImportedName:
    """An agent that came in a bundle."""

    slug: str


@dataclass(frozen=True, slots=True)
class NewDispatch:
    """Work for an agent of the runtime, which runs it as a turn in a session of its own unless one is named."""

    agent: str
    instructions: str
    """What is to be done."""
    task: str = "task"
    """A name for the kind of work."""
    input: Mapping[str, Any] = field(default_factory=dict)
    """Data for it."""
    session: str | None = None
    """The conversation that it belongs to. None: one of its own."""
    run: str | None = None
    """The id of the run, used once."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class DispatchToCancel:
    """A run that is to end, and who wants it."""

    run: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class BundleToImport:
    """A bundle with an agent in it. Tools that the agent names are those of this runtime."""

    bundle: Mapping[str, Any] = field(default_factory=dict)
    """The bundle, as a document."""
    slug: str | None = None
    """Another name for its agent."""
    on_conflict: str = "upgrade"
    """What becomes of an agent of the same name."""
    by: str = ""


def host_of(opened: OpenStore) -> "HostDoor":
    """Raises InvalidRequest where no process serves the store."""
    from wakeful.contracts.errors import InvalidRequest

    if opened.host is None:
        raise InvalidRequest("no process runs the agents of this store", "Start one: wakeful daemon start")
    return opened.host


async def _runs(opened: OpenStore, asked: DispatchQuery) -> "list[DispatchedRun]":
    from wakeful.service.queries.dispatches import dispatched_runs

    return await dispatched_runs(opened.engine, asked.kind, asked.limit)


async def _run(opened: OpenStore, asked: DispatchName) -> "DispatchDetails":
    from wakeful.service.queries.dispatches import dispatched_run

    return await dispatched_run(opened.engine, asked.run)


async def _imported(opened: OpenStore, asked: NoRequest) -> "list[ImportedAgentRecord]":
    from wakeful.service.queries.dispatches import imported_agents

    return await imported_agents(opened.engine)


async def _one(opened: OpenStore, asked: ImportedName) -> "ImportedAgentRecord":
    from wakeful.service.queries.dispatches import imported_agent

    return await imported_agent(opened.engine, asked.slug)


async def _dispatch(opened: OpenStore, asked: NewDispatch) -> "DispatchDetails":
    from wakeful.service.host_door import WorkToDispatch

    check_no_tool("dispatched work")
    work = WorkToDispatch(asked.agent, asked.instructions, asked.task, asked.input, asked.session, asked.run)
    return await _run(opened, DispatchName(await host_of(opened).dispatch(work, by=asked.by)))


async def _cancel(opened: OpenStore, asked: DispatchToCancel) -> "DispatchDetails":
    check_no_tool("dispatched work")
    await host_of(opened).cancel(asked.run, by=asked.by)
    return await _run(opened, DispatchName(asked.run))


async def _import(opened: OpenStore, asked: BundleToImport) -> "ImportedAgentRecord":
    check_no_tool("packages")
    slug = await host_of(opened).import_bundle(asked.bundle, slug=asked.slug, on_conflict=asked.on_conflict)
    return await _one(opened, ImportedName(slug))


START_DISPATCH = Operation("runtime.start_dispatch", "operate", NewDispatch, f"{_RECORDS}.DispatchDetails", _dispatch)
CANCEL_DISPATCH = Operation(
    "runtime.cancel_dispatch", "operate", DispatchToCancel, f"{_RECORDS}.DispatchDetails", _cancel, repeatable=True
)
IMPORT_BUNDLE = Operation(
    "runtime.import_bundle", "operate", BundleToImport, f"{_RECORDS}.ImportedAgentRecord", _import
)
LIST_DISPATCHES = Operation(
    "runtime.dispatches", "observe", DispatchQuery, f"{_RECORDS}.DispatchedRun", _runs, many=True
)
SHOW_DISPATCH = Operation("runtime.dispatch", "observe", DispatchName, f"{_RECORDS}.DispatchDetails", _run)
LIST_IMPORTED = Operation(
    "runtime.imported_agents", "observe", NoRequest, f"{_RECORDS}.ImportedAgentRecord", _imported, many=True
)
SHOW_IMPORTED = Operation("runtime.imported_agent", "observe", ImportedName, f"{_RECORDS}.ImportedAgentRecord", _one)
