"""Work items and briefs of an agent, for readers."""

from collections.abc import Sequence

from wakeful.contracts.errors import CursorGone
from wakeful.contracts.work_items import ActiveWait, TodoItem, WorkItem, WorkItemState
from wakeful.decisions.work_items.readiness import readiness, scheduling_state
from wakeful.engine.brief_texts import brief_text
from wakeful.engine.work_items import active_waits, report_of
from wakeful.ports import BriefRow, Store
from wakeful.service.queries.known_agents import check_known
from wakeful.views.runtime_records import BriefRecord, WorkItemRecord


async def work_items_of(
    store: Store, agent: str, *, completed: bool = False, limit: int = 100, after: str | None = None
) -> list[WorkItemRecord]:
    """An agent's open items, or its completed ones, the one that was made last first; `after`: behind that item.

    Raises CursorGone for an item that is not there.
    """
    last = None if after is None else await store.work_item(after)
    if after is not None and (last is None or last.agent_id != agent):
        raise CursorGone(f"agent {agent!r} has no work item {after} to continue after", "Begin again with the newest.")
    state: WorkItemState = "completed" if completed else "open"
    items = await store.work_items_by_birth(agent, state, limit=limit, after=last)
    if not items:
        await check_known(store, agent)
    focus, waits = await store.current_work_item_id(agent), await active_waits(store, agent)
    return [await work_item_record(store, item, focus, waits) for item in items]


async def work_item_record(
    store: Store, item: WorkItem, focus: str | None, waits: Sequence[ActiveWait] = ()
) -> WorkItemRecord:
    return WorkItemRecord(
        id=item.work_item_id,
        agent=item.agent_id,
        thread=item.thread_id,
        workspace_id=item.workspace_id,
        objective=item.objective,
        state=item.state,
        is_current=item.is_open and item.work_item_id == focus,
        scheduling_state=scheduling_state(item, waits),
        readiness=readiness(item, waits),
        plan_status=item.plan_status,
        todo_list=tuple(TodoItem(**each) for each in item.todo_list),
        blocked_by=item.blocked_by,
        recheck_at=_seconds(item.recheck_at),
        recheck_consumed_at=_seconds(item.recheck_consumed_at),
        completion_report=await report_of(store, item),
        created_by=item.created_by,
        created_at=item.created_at / 1e6,
        updated_at=item.updated_at / 1e6,
        completed_at=_seconds(item.completed_at),
    )


async def briefs_of(store: Store, agent: str, *, limit: int = 100, after: str | None = None) -> list[BriefRecord]:
    """What an agent told its people, the newest first. Raises CursorGone for a brief that is not there."""
    last = None if after is None else await store.brief(after)
    if after is not None and (last is None or last.agent_id != agent):
        raise CursorGone(f"agent {agent!r} has no brief {after} to continue after", "Begin again with the newest.")
    rows = await store.briefs(agent, limit=limit, after=last)
    if not rows:
        await check_known(store, agent)
    return [await _brief(store, row) for row in rows]


async def _brief(store: Store, row: BriefRow) -> BriefRecord:
    return BriefRecord(
        id=row.brief_id,
        agent_id=row.agent_id,
        thread=row.thread_id,
        turn_id=row.turn_id,
        kind=row.kind,
        visibility=row.visibility,
        text=await brief_text(store, row.text_event_id),
        work_item_id=row.work_item_id or None,
        workspace_id=row.workspace_id,
        related_message_id=row.related_message_id or None,
        related_task_id=row.related_task_id or None,
        created_at=row.created_at / 1e6,
    )


def _seconds(at: int | None) -> float | None:
    return None if at is None else at / 1e6
