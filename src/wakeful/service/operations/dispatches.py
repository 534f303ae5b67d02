"""What may be asked about runs that were handed to a target or to a package, and about agents that came in bundles."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.views.dispatch_records import DispatchDetails, DispatchedRun, ImportedAgentRecord

_RECORDS = "wakeful.views.dispatch_records"


@dataclass(frozen=True, slots=True)
class DispatchQuery:
    """The newest runs that were handed to a target, or those of packages."""

    kind: Literal["target", "package"] = "target"
    limit: int = PAGE


@dataclass(frozen=True, slots=True)
class DispatchName:
    """One run by its id."""

    run: str


@dataclass(frozen=True, slots=True)
class ImportedName:
    """An agent that came in a bundle."""

    slug: str


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


LIST_DISPATCHES = Operation(
    "runtime.dispatches", "observe", DispatchQuery, f"{_RECORDS}.DispatchedRun", _runs, many=True
)
SHOW_DISPATCH = Operation("runtime.dispatch", "observe", DispatchName, f"{_RECORDS}.DispatchDetails", _run)
LIST_IMPORTED = Operation(
    "runtime.imported_agents", "observe", NoRequest, f"{_RECORDS}.ImportedAgentRecord", _imported, many=True
)
SHOW_IMPORTED = Operation("runtime.imported_agent", "observe", ImportedName, f"{_RECORDS}.ImportedAgentRecord", _one)
