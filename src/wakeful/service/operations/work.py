"""What may be asked about the work items of an agent: which there are, and to put one into its queue."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.views.runtime_records import WorkItemRecord

_RECORD = "wakeful.views.runtime_records.WorkItemRecord"


@dataclass(frozen=True, slots=True)
class WorkItemQuery:
    """An agent's open items, or its completed ones."""

    agent: str
    completed: bool = False
    """Those that were completed, instead of the open ones."""
    limit: int = PAGE
    after: str | None = None
    """The last item of the page before."""


@dataclass(frozen=True, slots=True)
class NewWorkItem:
    """An objective for the queue of an agent."""

    agent: str
    objective: str
    by: str = ""


async def _list(opened: OpenStore, asked: WorkItemQuery) -> "list[WorkItemRecord]":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.work_items import work_items_of

    await agent_named(opened.store, asked.agent)
    return await work_items_of(
        opened.store, asked.agent, completed=asked.completed, limit=asked.limit, after=asked.after
    )


async def _enqueue(opened: OpenStore, asked: NewWorkItem) -> "WorkItemRecord":
    from wakeful.runtime.refusals import RefusalTally
    from wakeful.service.commands.work_items import enqueue
    from wakeful.service.queries.work_items import work_item_record

    check_no_tool("work items")
    tally = opened.living.refusals if opened.living is not None else RefusalTally(opened.engine)
    async with tally.counting(asked.agent):
        item = await enqueue(opened.engine, asked.agent, asked.objective, by=asked.by)
    return await work_item_record(opened.store, item, await opened.store.current_work_item_id(asked.agent))


LIST_WORK = Operation("runtime.work_items", "observe", WorkItemQuery, _RECORD, _list, many=True)
ENQUEUE_WORK = Operation("runtime.enqueue", "operate", NewWorkItem, _RECORD, _enqueue)
